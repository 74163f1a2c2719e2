"""``report.json`` and ``report.html`` beside a compiled program: was it worth it, and why?"""

import json
from collections.abc import Sequence
from html import escape
from itertools import accumulate
from pathlib import Path
from typing import Any

from ..calibration import Bin, Reliability
from ..evaluation import Evaluation
from ..sorters import Reranker
from .plots import plot
from .proof import COMPILED, UNCOMPILED, learning_curve, proof

STYLE = """
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
h1,h2{line-height:1.2}table{border-collapse:collapse}td,th{padding:.2rem .7rem;text-align:right}
th{border-bottom:1px solid #999}td:first-child,th:first-child{text-align:left}
pre{background:#f5f5f5;padding:.8rem;overflow-x:auto;white-space:pre-wrap}
svg{width:32rem;max-width:100%}svg text{font:11px system-ui,sans-serif;fill:#555}
.axis{fill:none;stroke:#999}.line{fill:none;stroke:#06c;stroke-width:1.5}.dot{fill:#9ab}
.chosen{fill:#c30}.add{background:#dfd}.del{background:#fdd}.win{color:#060}.loss{color:#a00}
details{margin:.4rem 0}.cols{display:grid;grid-template-columns:1fr 1fr;gap:1rem}
li{overflow-wrap:anywhere}
"""


def write_report(
    folder: str | Path, student: Reranker, compiled: Reranker, found: Evaluation, test: Any
) -> Path:
    """Write ``report.json`` and ``report.html``, which needs nothing beside itself.

    Args:
        folder: Made where it is missing.
        student: The reranker before it was compiled.
        compiled: With its card.
        found: :func:`dspy_rerank.evaluate` of ``{"uncompiled": student, "compiled": compiled}`` in
            one metric, on queries that nothing was chosen by.
        test: Those queries.

    Returns:
        The path of the HTML file.
    """
    content = proof(student, compiled, found, test)
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    text = json.dumps(content, indent=1, ensure_ascii=False, default=str)
    (target / "report.json").write_text(text + "\n", encoding="utf-8")
    page = target / "report.html"
    page.write_text(html_of(content), encoding="utf-8")
    return page


def html_of(content: dict[str, Any]) -> str:
    """The report as one page; every text in it is escaped."""
    parts = [
        f"<h1>Compiled reranker: {content['prompt']['program']} over {content['prompt']['judge']}"
        "</h1>",
        _words(content),
        _measured(content),
        _optimized(content["card"]),
        _search(content),
        _weights(content["card"]),
        _prompt(content["prompt"]),
        _wins_and_losses(content),
        _calibrated(content),
        _cost(content),
    ]
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Compiled reranker'
        f"</title><style>{STYLE}</style></head><body>{''.join(parts)}</body></html>\n"
    )


def _words(content: dict[str, Any]) -> str:
    count = content["test"]["queries"]
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in content["words"])
    return (
        f"<p>Measured on {count} queries that nothing was chosen by, the compiled program is:</p>"
        f"<ul>{items}</ul>"
    )


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Cells as an HTML table, escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_said(cell))}</td>" for cell in row) + "</tr>"
        for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"


def _said(cell: Any) -> str:
    if cell is None:
        return "unknown"
    return (
        f"{cell:,.4f}"
        if isinstance(cell, float)
        else f"{cell:,}"
        if isinstance(cell, int)
        else str(cell)
    )


def _interval(value: dict[str, Any] | None) -> str:
    return "" if value is None else f"{value['mean']:+.4f} [{value['lo']:+.4f}, {value['hi']:+.4f}]"


def _measured(content: dict[str, Any]) -> str:
    header = ["test queries", content["metric"], "over incoming order", "over uncompiled",
              "unknown", "degraded"]  # fmt: skip
    rows = [
        [
            row["name"], row["mean"]["mean"], _interval(row["gain_over_incoming"]),
            _interval(row["gain_over_uncompiled"]), row["unknowns"], row["degraded"],
        ]
        for row in content["test"]["rows"]
    ]  # fmt: skip
    return (
        f"<h2>Quality</h2>{table(header, rows)}<p>In brackets: 95% intervals, paired by query.</p>"
    )


def _search(content: dict[str, Any]) -> str:
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
        [n, t["value"], t["calls_per_query"], t["rounds_per_query"], t["tokens_per_query"],
         t["money_per_query"], t["calls"]]
        for n, t in zip(names, trials, strict=True)
    ]  # fmt: skip
    header = ["setting", metric, "calls a query", "rounds", "tokens", "dollars", "calls to try it"]
    pareto = plot(points, front, x=f"{card['cost']} a query", y=metric, names=names,
                  chosen=(chosen[cost], chosen["value"]))  # fmt: skip
    return (
        "<h2>Search</h2><p>Validation queries. Left: the best so far against calls spent. Right: "
        "quality against cost; the line is the Pareto front, the large dot was chosen.</p>"
        f'<div class="cols">{plot(curve, curve, x="judge calls", y=metric)}{pareto}</div>'
        f"<details><summary>{len(trials)} settings</summary>{table(header, rows)}</details>"
    )


def _optimized(card: dict[str, Any]) -> str:
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
        f"{plot(points, best, x='answers scored', y='score, and the best so far')}"
        f"<details><summary>{len(tried)} prompts</summary>{table(header, rows)}</details>"
    )


def _weights(card: dict[str, Any]) -> str:
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


def _prompt(prompt: dict[str, Any]) -> str:
    kinds = {"+": "add", "-": "del"}
    lines = "\n".join(
        f'<span class="{kinds[line[0]]}">{escape(line)}</span>'
        if line[:1] in kinds
        else escape(line)
        for line in prompt["diff"]
    )
    change = f"<pre>{lines}</pre>" if prompt["diff"] else "<p>The prompt is unchanged.</p>"
    demos = "".join(
        "<li>" + "<br>".join(f"<b>{escape(k)}</b>: {escape(str(v))}" for k, v in demo.items())
        for demo in prompt["demos"]
    )
    shown = f"<h3>Demonstrations</h3><ol>{demos}</ol>" if demos else ""
    settings = [[name, *map(_setting, both)] for name, both in prompt["settings"].items()]
    changed = table(["setting", "uncompiled", "compiled"], settings) if settings else ""
    told = prompt["instructions"].strip()
    wording = f"<h3>Instructions</h3><pre>{escape(told)}</pre>" if told else ""
    return (
        f"<h2>Prompt</h2>{wording}{shown}<h3>Sent for each question</h3>"
        f"<details><summary>the whole prompt</summary><pre>{escape(prompt['sent'])}</pre></details>"
        f"<h3>Against the uncompiled prompt</h3>{change}{changed}"
    )


def _setting(value: Any) -> str:
    return "none" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)


def _wins_and_losses(content: dict[str, Any]) -> str:
    queries = content["queries"]
    wins, losses = (sum(sign * q["gain"] > 0 for q in queries) for sign in (1, -1))
    alike = [query for query in queries if not query["gain"]]
    changed = [query for query in queries if query["gain"]]
    rest = "".join(map(_query, alike))
    folded = f"<details><summary>{len(alike)} alike</summary>{rest}</details>" if alike else ""
    return (
        f"<h2>Query by query</h2><p>{wins} won, {losses} lost, {len(alike)} alike.</p>"
        f"{''.join(map(_query, changed))}{folded}"
    )


def _calibrated(content: dict[str, Any]) -> str:
    """Reliability diagrams of both programs, where their judges say how sure they are."""
    found = content["calibration"]
    shown = "".join(
        f"<div><b>{name}</b>{_diagram(told) if told else '<p>gives no confidence</p>'}</div>"
        for name, told in found.items()
    )
    return (
        "<h2>Calibration</h2><p>Confidence of single answers against how often they were right; "
        f'on the diagonal both agree.</p><div class="cols">{shown}</div>'
    )


def _diagram(told: dict[str, Any]) -> str:
    bars = [Bin(**{**each}) for each in told["bins"]]
    values = {name: value for name, value in told.items() if name != "bins"}
    return Reliability(**values, bins=tuple(bars)).to_svg()


def _query(entry: dict[str, Any]) -> str:
    kind = "win" if entry["gain"] > 0 else "loss" if entry["gain"] < 0 else ""
    title = (
        f'<span class="{kind}">{entry["gain"]:+.4f}</span> {escape(entry["query"])} '
        f"({entry[UNCOMPILED]:.4f} to {entry[COMPILED]:.4f})"
    )
    if "documents" not in entry:
        return f"<div>{title}</div>"
    lists = "".join(
        f"<div><b>{name}</b><ol>{''.join(map(_document, shown))}</ol></div>"
        for name, shown in entry["documents"].items()
    )
    return f'<details><summary>{title}</summary><div class="cols">{lists}</div></details>'


def _document(item: dict[str, Any]) -> str:
    grade = "not graded" if item["grade"] is None else f"grade {item['grade']:g}"
    text = " ".join(str(item["text"]).split())
    short = text if len(text) <= 300 else text[:299] + "…"
    return f"<li><b>{grade}</b>, came {item['was']}.: {escape(short)}</li>"


def _cost(content: dict[str, Any]) -> str:
    spent = content["card"].get("spent") or {}
    names = ["calls", "prompt_tokens", "completion_tokens", "cost"]
    rows = [["compiling, in all", *(spent.get(name) for name in names)]]
    rows += [
        [f"1,000 queries, {row['name']}{', tokens estimated' if row['estimated'] else ''}",
         *(row[n] for n in names)]
        for row in content["serving"]
    ]  # fmt: skip
    header = ["", "calls", "prompt tokens", "completion tokens", "US dollars"]
    return f"<h2>Cost</h2>{table(header, rows)}"
