"""``dspy-rerank evaluate``: measure a reranker on labelled queries."""

import argparse
import warnings
from typing import Any

import dspy

from ..evaluation import Evaluation, baseline, evaluate
from ..leaks import seen
from ..metrics import parse_metric
from ..sorters import Reranker
from ._common import add_data, add_json, add_model, model, program_or_default, read_data
from ._show import complain, emit, progress, show_evaluation


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser("evaluate", help="measure a reranker on labelled queries")
    add_data(command)
    command.add_argument("--split", help="one split of the data set, such as test")
    command.add_argument("--program", metavar="FILE", help="a saved program (default: built in)")
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
    names = [name.strip() for name in arguments.metrics.split(",") if name.strip()]
    for name in names:
        parse_metric(name)
    return names


def run(arguments: argparse.Namespace) -> int:
    """Measure and print."""
    metrics = metrics_of(arguments)
    data = read_data(arguments, arguments.split)
    if arguments.incoming:
        found = Evaluation(data.name, len(data), tuple(metrics), (baseline(data, metrics),))
    else:
        lm = model(arguments)
        reranker = program_or_default(arguments.program, lm)
        found = measured({_name(arguments): reranker}, data, metrics, lm, arguments.json)
    if arguments.json:
        emit(found.to_dict())
    else:
        show_evaluation(found)
    return 0


def _name(arguments: argparse.Namespace) -> str:
    return arguments.program or "default reranker"


def measured(
    rerankers: dict[str, Reranker], data: Any, metrics: list[str], lm: Any, quiet: bool
) -> Evaluation:
    """An evaluation with progress bars, and a line for each program that knows the queries."""
    for name, program in rerankers.items():
        known = seen(program, data)
        if known.queries:
            complain(known.words(name, len(data)))
    with warnings.catch_warnings(), progress(quiet) as bars, dspy.context(lm=lm):
        warnings.filterwarnings("ignore", ".* was compiled on ", UserWarning)  # said above
        return evaluate(rerankers, data, metrics, lm=lm, progress=bars)
