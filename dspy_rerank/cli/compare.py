"""``dspy-rerank compare``: two programs or runs on the same queries, with the paired difference."""

import argparse
from dataclasses import dataclass, replace
from typing import Any

from ..errors import InputError
from ..evaluation import Evaluation, Row, baseline
from ..evaluation_table import finite
from ..stats import sign_test
from ..unlabelled import unlabelled
from ._app import positive
from ._common import add_data, add_json, add_model, model, read_data
from ._problems import measured_part
from ._rerankers import program_and_model
from ._runs import (
    Labelled,
    is_program,
    looks_like_qrels,
    of_dataset,
    of_qrels,
    run_of,
    run_row,
)
from ._show import emit, say, show_evaluation, show_table
from .evaluating import add_metrics, exit_code, measured, metrics_of

KINDS = "a saved program (.json), results of rerank --out (.jsonl), or a TREC run"


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser("compare", help="two programs or runs on the same queries")
    command.add_argument("first", help=KINDS)
    command.add_argument("second", help=KINDS)
    add_data(command)
    command.add_argument("--split", help="one split of the data set, such as test")
    command.add_argument("--each", type=positive, metavar="N", help="show the N queries with the "
                         "largest differences, too")  # fmt: skip
    add_metrics(command)
    add_model(command)
    add_json(command)
    command.set_defaults(command=run)


@dataclass(frozen=True, slots=True)
class Score:
    """On how many queries the second is better, worse, and alike."""

    wins: int
    losses: int
    ties: int
    p: float


def run(arguments: argparse.Namespace) -> int:
    """Measure both and print their difference."""
    first, second = arguments.first, arguments.second
    if first == second:
        raise InputError(f"{first} twice; expected two different programs or runs")
    metrics = metrics_of(arguments)
    asked = {
        path: program_and_model(path, arguments) for path in (first, second) if is_program(path)
    }
    programs = {path: reranker for path, (reranker, _) in asked.items()}
    runs = {path: run_of(path) for path in (first, second) if path not in programs}
    labelled = _labelled(arguments, bool(programs))
    rows = [run_row(path, found, labelled, metrics) for path, found in runs.items()]
    lms = [lm for _, lm in asked.values()]
    lm = model(arguments) if None in lms else next(iter(lms), None)
    found = _evaluated(programs, labelled, metrics, lm, arguments.json)
    found = replace(found, rows=(*found.rows, *rows), unlabelled=labelled.left)
    _show(found, list(labelled.labels), arguments)
    return exit_code(found)


def _labelled(arguments: argparse.Namespace, has_programs: bool) -> Labelled:
    """The labels: for runs qrels are enough; programs need queries and documents."""
    if not looks_like_qrels(arguments.data):
        given = read_data(arguments, arguments.split)
        return replace(of_dataset(measured_part(given)), left=unlabelled(given))
    if has_programs:
        raise InputError(
            f"{arguments.data}: holds judgments only; programs need queries and documents, too"
        )
    return of_qrels(arguments.data)


def _evaluated(
    programs: dict[str, Any], labelled: Labelled, metrics: list[str], lm: Any, quiet: bool
) -> Evaluation:
    """The programs measured, below the incoming order where that is known."""
    if programs:
        return measured(programs, labelled.data, metrics, lm, quiet)
    base = () if labelled.data is None else (baseline(labelled.data, metrics),)
    return Evaluation(labelled.name, len(labelled.labels), tuple(metrics), base)


def _show(found: Evaluation, queries: list[str], arguments: argparse.Namespace) -> None:
    first, second = found[arguments.first], found[arguments.second]
    gains = {m: found.gain(m, second.name, first.name) for m in found.metrics}
    scores = {m: score(second, first, m) for m in found.metrics}
    if arguments.json:
        difference = {m: {**finite(gains[m]), **_counts(scores[m])} for m in found.metrics}
        emit({**found.to_dict(), "query_ids": queries, "difference": difference})
        return
    show_evaluation(found)
    for metric, gain in gains.items():
        verdict = "a real difference" if gain.significant else "no difference that can be told"
        say(f"{metric}: {second.name} - {first.name} = {gain}: {verdict}")
        told = scores[metric]
        say(
            f"  wins {told.wins}, losses {told.losses}, ties {told.ties} (sign test p={told.p:.3f})"
        )
        if arguments.each:
            _show_each(queries, first, second, metric, arguments.each)


def score(second: Row, first: Row, metric: str) -> Score:
    """Wins and losses of the second, query by query."""
    ours, theirs = second.values[metric], first.values[metric]
    each = [a - b for a, b in zip(ours, theirs, strict=True)]
    wins, losses = sum(d > 0 for d in each), sum(d < 0 for d in each)
    return Score(wins, losses, len(each) - wins - losses, sign_test(ours, theirs))


def _counts(told: Score) -> dict[str, Any]:
    return {"wins": told.wins, "losses": told.losses, "ties": told.ties, "sign_p": told.p}


def _show_each(queries: list[str], first: Row, second: Row, metric: str, most: int) -> None:
    """The queries that differ most."""
    rows = sorted(
        zip(queries, first.values[metric], second.values[metric], strict=True),
        key=lambda row: -abs(row[2] - row[1]),
    )
    cells = [[q, f"{a:.4f}", f"{b:.4f}", f"{b - a:+.4f}"] for q, a, b in rows[:most] if a != b]
    if not cells:
        say(f"  no query differs in {metric}")
        return
    show_table([["query", "first", "second", metric], *cells])
