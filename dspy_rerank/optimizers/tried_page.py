"""What a compiling has tried, as HTML: settings, prompts and weights."""

from html import escape
from itertools import accumulate
from typing import Any

from .plots import plot
from .proof import learning_curve
from .tables import figure, money, table

OWN = (
    "A setting named <i>own</i> has the instructions that the program had before it was compiled; "
    "<i>prior</i> is the weight of the incoming order."
)


def search_page(content: dict[str, Any]) -> str:
    """What was tried: the learning curve, quality against cost, and every trial."""
    card, metric = content["card"], content["metric"]
    trials = card.get("trials") or []
    if not trials:
        return ""
    cost = f"{card['cost']}_per_query"
    points = [(t[cost], t["value"]) for t in trials if t[cost] is not None]
    front = [(t[cost], t["value"]) for t in card["pareto"] if t[cost] is not None]
    if not points:
        return ""
    chosen = next(t for t in trials if _is(t, card["chosen"]))
    curve = [(float(calls), best) for calls, best in learning_curve(trials)]
    names = [f"{t['variant']}, prior {t['prior']:g}" for t in trials]
    rows = [
        [n, t["value"], figure(t["calls_per_query"]), figure(t["rounds_per_query"]),
         figure(t["tokens_per_query"]), money(t["money_per_query"]), t["calls"]]
        for n, t in zip(names, trials, strict=True)
    ]  # fmt: skip
    header = ["setting", metric, "calls a query", "rounds", "tokens", "dollars", "calls to try it"]
    pareto = plot(points, front, x=f"{card['cost']} a query", y=metric, names=names, top=1.0,
                  chosen=(chosen[cost], chosen["value"]))  # fmt: skip
    return (
        "<h2>Search</h2><p>Validation queries. Left: the best so far against calls spent. Right: "
        "quality against cost; the line is the Pareto front, the large dot was chosen.</p>"
        f'<div class="cols">{plot(curve, curve, x="judge calls", y=metric, top=1.0)}{pareto}</div>'
        f"<p>{OWN}</p>"
        f"<details><summary>{len(trials)} settings</summary>{table(header, rows)}</details>"
    )


def left_out_page(card: dict[str, Any]) -> str:
    """Candidates that a search could not try, and why."""
    rows = [[name, why] for name, why in (card.get("left_out") or {}).items()]
    return f"<h3>Not tried</h3>{table(['candidate', 'why'], rows)}" if rows else ""


def optimizer_page(card: dict[str, Any]) -> str:
    """The prompts that an optimizer has tried on single questions, and what they were worth."""
    judge = card.get("judge") or card
    tried = judge.get("tried") or []
    if not tried:
        return ""
    points = [(float(each["after"]), each["value"]) for each in tried]
    best = list(accumulate(points, lambda a, b: (b[0], max(a[1], b[1]))))
    rows = [
        [f"{n}. {' '.join(each['instructions'].split())}", each["demos"], each["value"],
         each["questions"]]
        for n, each in enumerate(tried, 1)
    ]  # fmt: skip
    header = ["instructions", "demonstrations", "score", "questions"]
    kept = "was kept" if judge["chosen"]["kept"] else "was not: the prompt is as it was"
    return (
        f"<h2>Single questions</h2><p>{escape(judge['optimizer'])} tried {len(tried)} prompts on "
        f"{judge['validation']['questions']} validation questions; what it returned {kept} "
        f"({judge['validation']['uncompiled']:.4f} to {judge['validation']['compiled']:.4f}).</p>"
        f"{plot(points, best, x='answers scored', y='score, and the best so far', top=1.0)}"
        f"<details><summary>{len(tried)} prompts</summary>{table(header, rows)}</details>"
    )


def weights_page(card: dict[str, Any]) -> str:
    """How much each judge counts, and what stronger and weaker fits gave."""
    weights = (card.get("chosen") or {}).get("weights")
    if not weights:
        return ""
    rows = [[each["judge"], each["weight"]] for each in weights]
    rows.append(["first stage, as a share", card["chosen"]["prior"]])
    fits = [
        ["none: the student's weights" if p["penalty"] is None else p["penalty"], p["value"]]
        for p in card["penalties"]
    ]
    judges = table(["judge", "weight"], rows)
    tried = table(["penalty of leaving the student", f"{card['metric']}, cross-validated"], fits)
    return f"<h2>Weights</h2>{judges}<h3>How closely labels were followed</h3>{tried}"


def _is(trial: dict[str, Any], chosen: dict[str, Any]) -> bool:
    return (trial["variant"], trial["prior"]) == (chosen["variant"], chosen["prior"])
