"""``dspy-rerank evaluate``: measure a reranker on labelled queries."""

import argparse
import warnings
from dataclasses import replace
from typing import Any

import dspy

from ..datasets import check
from ..evaluation import Evaluation, baseline, evaluate
from ..leaks import seen
from ..metrics import parse_metric
from ..sorters import Reranker
from ..unlabelled import unlabelled
from ._app import FAILED
from ._common import add_data, add_json, add_model, names_of, read_data
from ._problems import measured_part, warned
from ._progress import progress
from ._rerankers import add_reranker, name_of, reranker_and_model
from ._show import complain, complain_of_degraded, emit, model_failed, show_evaluation, unlogged

MEANS = """\
nDCG has linear gain (grade / log2(rank + 1)), as in trec_eval, and the ideal order is that of all
judged documents. Documents that nobody has judged count as not relevant. A query of which nobody
has judged any document is left out of all means, which is said; one whose grades are all 0 counts
as 0. Exit code 1: the model failed on every query.
"""


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser(
        "evaluate", help="measure a reranker on labelled queries", epilog=MEANS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    add_data(command)
    command.add_argument("--split", help="one split of the data set, such as test")
    add_reranker(command)
    command.add_argument(
        "--incoming", action="store_true", help="measure only the order in which documents come"
    )
    add_metrics(command)
    add_model(command)
    add_json(command)
    command.set_defaults(command=run)


def add_metrics(command: argparse.ArgumentParser) -> None:
    """``--metrics``."""
    command.add_argument(
        "--metrics", default="nDCG@10", help="comma-separated: nDCG@10,MRR,Recall@5,MAP"
    )


def metrics_of(arguments: argparse.Namespace) -> list[str]:
    """The metrics named, each checked."""
    names = names_of(arguments.metrics)
    for name in names:
        parse_metric(name)
    return names


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    metrics = metrics_of(arguments)
    given = read_data(arguments, arguments.split)
    problems = warned(check(given))
    data = measured_part(given)
    if arguments.incoming:
        found = Evaluation(data.name, len(data), tuple(metrics), (baseline(data, metrics),))
    else:
        reranker, lm = reranker_and_model(arguments)
        rerankers = {name_of(arguments): reranker}
        found = measured(rerankers, data, metrics, lm, arguments.json)
    found = replace(found, unlabelled=unlabelled(given))
    if arguments.json:
        emit({**found.to_dict(), "problems": problems})
        complain_of_degraded(found)
    else:
        show_evaluation(found)
    return exit_code(found)


def exit_code(found: Evaluation) -> int:
    """That of a failing model, where it answered nothing."""
    return FAILED if any(map(model_failed, found.rows)) else 0


def measured(
    rerankers: dict[str, Reranker], data: Any, metrics: list[str], lm: Any, quiet: bool
) -> Evaluation:
    """An evaluation with progress bars, and a line for each program that knows the queries."""
    for name, program in rerankers.items():
        known = seen(program, data)
        if known.queries:
            complain(known.words(name, len(data)))
    with warnings.catch_warnings(), unlogged(), progress(quiet) as bars, dspy.context(lm=lm):
        warnings.filterwarnings("ignore", ".* was compiled on ", UserWarning)  # said above
        return evaluate(rerankers, data, metrics, lm=lm, progress=bars)
