"""``report.json`` and ``report.html`` beside a compiled program: was it worth it, and why?"""

import json
from collections.abc import Sequence
from html import escape
from pathlib import Path
from textwrap import shorten
from typing import Any

from ..calibration import Bin, Reliability
from ..evaluation import Evaluation
from ..sorters import Reranker
from .plain import PlainRun
from .proof import proof
from .rows import COMPILED, PLAIN, UNCOMPILED
from .seeds import SeedRun
from .tables import interval, money, table
from .tried_page import left_out_page, optimizer_page, search_page, weights_page

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
    folder: str | Path, student: Reranker, compiled: Reranker, found: Evaluation, test: Any, *,
    runs: Sequence[SeedRun] = (), plain: PlainRun | None = None, lm: Any = None,
) -> Path:  # fmt: skip
    """Write ``report.json`` and ``report.html``, which needs nothing beside itself.

    Args:
        folder: Made where it is missing.
        student: The reranker before it was compiled.
        compiled: With its card.
        found: :func:`dspy_rerank.evaluate` of ``{"uncompiled": student, "compiled": compiled}`` in
            one metric, on queries that nothing was chosen by.
        test: Those queries.
        runs: One for each seed, where there were several, from
            :func:`~dspy_rerank.optimizers.compile_and_prove`; their programs are in rows of
            ``found``, too.
        plain: Plain DSPy's run, likewise.
        lm: What answers programs that have no LM of their own: a DSPy LM or a model name, by whose
            price the cost of known answers is estimated; ``None`` is the one that is configured.

    Returns:
        The path of the HTML file.
    """
    content = proof(student, compiled, found, test, runs=runs, plain=plain, lm=lm)
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
        _seeds(content),
        optimizer_page(content["card"]),
        search_page(content),
        left_out_page(content["card"]),
        weights_page(content["card"]),
        _prompt(content["prompt"]),
        _plain(content),
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


def _measured(content: dict[str, Any]) -> str:
    header = ["test queries", content["metric"], "over incoming order", "over uncompiled",
              "unknown", "degraded"]  # fmt: skip
    rows = [
        [
            row["name"], row["mean"]["mean"], interval(row["gain_over_incoming"]),
            interval(row["gain_over_uncompiled"]), row["unknowns"], row["degraded"],
        ]
        for row in content["test"]["rows"]
    ]  # fmt: skip
    failed = content.get("plain", {}).get("failed")
    if failed:
        rows.append([f"{PLAIN} failed: {failed}", *[""] * (len(header) - 1)])
    return (
        f"<h2>Quality</h2>{table(header, rows)}<p>In brackets: 95% intervals, paired by query.</p>"
    )


def _seeds(content: dict[str, Any]) -> str:
    """What each seed gave; nothing where there was one."""
    told = content.get("seeds")
    if told is None:
        return ""
    rows = [
        [run["seed"], run["validation"], run["test"], "yes" if run["kept"] else "no", run["calls"],
         run["cached_calls"], run["failed"] or ("saved" if run["saved"] else "")]
        for run in told["runs"]
    ]  # fmt: skip
    named = {"mean": "mean", "sd": "standard deviation", "min": "lowest", "max": "highest"}
    rows += [
        [named[name], told["validation"][name], told["test"][name], *[""] * 4] for name in named
    ]
    header = ["seed", "validation", "held out", "a change kept", "LM calls", "of them cached", ""]
    return (
        f"<h2>Seeds</h2>{table(header, rows)}<p>The program that is saved was chosen by the "
        "validation queries alone; the held-out ones had no say.</p>"
    )


def _plain(content: dict[str, Any]) -> str:
    """The prompt that plain DSPy came to."""
    sent = content.get("plain", {}).get("sent")
    if not sent:
        return ""
    return (
        f"<h3>Sent by {PLAIN}</h3><details><summary>the whole prompt</summary>"
        f"<pre>{escape(sent)}</pre></details>"
    )


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
    if isinstance(value, float):
        return f"{value:.4g}"
    return "none" if value is None else shorten(str(value), 80, placeholder=" ...")


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
    bills = {"compiling, in all": content["card"].get("spent") or {}}
    if "seeds" in content:
        seeds = content["seeds"]
        bills = {f"compiling, seed {seeds['saved']}": bills.popitem()[1]}
        bills["compiling, all seeds"] = seeds["spent"]
    if "plain" in content:
        bills[f"{PLAIN}, for the comparison"] = content["plain"]["spent"]
    rows = [[name, *_bill(bill)] for name, bill in bills.items()]
    rows += [
        [f"1,000 queries, {row['name']}{', estimated: at most' if row['estimated'] else ''}",
         *_bill({**row, "cached_calls": ""})]
        for row in content["serving"]
    ]  # fmt: skip
    header = ["", "calls", "from DSPy's cache", "prompt tokens", "completion tokens", "US dollars"]
    reasons = {bill["cost_reason"]: None for bill in bills.values() if bill.get("cost_reason")}
    why = "".join(f"<p>Dollars unknown: {escape(reason)}.</p>" for reason in reasons)
    return f"<h2>Cost</h2>{table(header, rows)}{why}"


def _bill(bill: dict[str, Any]) -> list[Any]:
    names = ("calls", "cached_calls", "prompt_tokens", "completion_tokens")
    return [*(bill.get(name) for name in names), money(bill.get("cost"))]
