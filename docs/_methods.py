"""Writes the tables of docs/methods.md from what `choose_sorter` knows.

    python docs/_methods.py

Quality is the measurement in `dspy_rerank/sorters/measured.py` (written by
`benchmarks/sorting.py --constants`), cost the sorters' own estimates.
"""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import dspy_rerank as dr
from dspy_rerank.sorters.candidates import CANDIDATES, Candidate
from dspy_rerank.sorters.measured import NDCG
from dspy_rerank.types import Kind

PAGE = Path(__file__).with_name("methods.md")
TOP_K = 10
JUDGES: dict[Kind, Any] = {
    "listwise": dr.ListwiseJudge,
    "setwise": dr.SetwiseJudge,
    "pairwise": dr.PairwiseJudge,
    "pointwise": dr.PointwiseJudge,
}
BUDGETS: list[tuple[Kind, int, dict[str, int]]] = [
    ("listwise", 100, {}),
    ("listwise", 100, {"max_calls": 10}),
    ("listwise", 100, {"max_rounds": 3, "max_reads": 160}),
    ("listwise", 100, {"max_reads": 150}),
    ("listwise", 50, {"max_reads": 100}),
    ("listwise", 20, {"max_calls": 3}),
    ("listwise", 20, {"max_rounds": 1}),
    ("setwise", 100, {}),
    ("setwise", 100, {"max_calls": 70}),
    ("pairwise", 100, {}),
    ("pairwise", 100, {"max_calls": 1000}),
    ("pairwise", 100, {"max_calls": 500}),
    ("pairwise", 20, {"max_calls": 200}),
    ("pointwise", 100, {}),
]
WORDS = {"max_calls": "{} calls", "max_rounds": "{} rounds", "max_reads": "{} reads"}
COST = ("calls", "rounds", "passages_read")


def page(text: str) -> str:
    """The page's text with its tables written anew."""
    for name, table in (("budgets", budgets()), ("sorters", sorters())):
        marked = re.compile(f"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        text = marked.sub(lambda found, table=table: found[1] + table + found[2], text)
    return text


def budgets() -> str:
    """What is chosen within each budget."""
    head = ["judge", "candidates", "at most", "choose", *_COLUMNS]
    return _table(head, (_choice(*budget) for budget in BUDGETS))


def sorters() -> str:
    """Every candidate at 100 candidates, by judge, from the best down."""
    head = ["judge", "sorter", *_COLUMNS]
    rows: list[tuple[Kind, Candidate]] = [
        (kind, candidate)
        for kind in JUDGES
        for candidate in CANDIDATES
        if kind in candidate.kinds and (100, kind, candidate.name) in NDCG
    ]
    ranked = sorted(rows, key=lambda row: (list(JUDGES).index(row[0]), -_mean(row[0], row[1])))
    return _table(head, (_sorter(kind, candidate) for kind, candidate in ranked))


_COLUMNS = ["calls", "rounds", "reads", "noise 0", "0.5", "1.0"]


def _choice(kind: Kind, n: int, limits: dict[str, int]) -> list[str]:
    choice = dr.choose_sorter(n, TOP_K, judge=JUDGES[kind](), **limits)
    within = ", ".join(WORDS[name].format(limit) for name, limit in limits.items())
    within = re.sub(r"\b1 (\w+)s\b", r"1 \1", within)
    cost = [str(getattr(choice.expected, name)) for name in COST]
    return [kind, str(n), within or "anything", f"`{choice.name}`", *cost, *_points(choice.ndcg)]


def _sorter(kind: Kind, candidate: Candidate) -> list[str]:
    expected = candidate.build(JUDGES[kind]()).estimate(100, TOP_K)
    cost = [str(getattr(expected, name)) for name in COST]
    return [kind, f"`{candidate.name}`", *cost, *_points(NDCG[100, kind, candidate.name])]


def _mean(kind: Kind, candidate: Candidate) -> float:
    return sum(NDCG[100, kind, candidate.name])


def _points(values: tuple[float, ...]) -> list[str]:
    return [f"{value:.1f}" for value in values]


def _table(head: list[str], rows: Iterator[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
