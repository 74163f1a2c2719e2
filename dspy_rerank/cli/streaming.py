"""``dspy-rerank rerank DATA --out FILE``: many queries, to be cut off and resumed at any time."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import dspy

from ..cache import keep_in_memory
from ..errors import InputError
from ..streaming import Journal, Plan, Source, Summary, identity_of, open_source
from ..streaming import run as rank_all
from ..streaming.printed import Printed
from ..streaming.running import GIVE_UP
from ._app import FAILED, positive
from ._common import dollars, names_of, writable
from ._progress import run_progress
from ._rerankers import reranker_and_model
from ._show import complain, emit, note, unlogged

STOPPED = 3
"""A limit stopped the run before its input ended."""
LINES = frozenset({".jsonl", ".ndjson"})
OPTIONS = (
    "run", "collection", "depth", "inputs", "in_order", "at_once", "max_cost", "retry_failed",
    "no_judgments", "quiet",
)  # fmt: skip


def add_to(command: argparse.ArgumentParser) -> None:
    """Arguments for files of queries."""
    many = command.add_argument_group("files of queries")
    many.add_argument(
        "--out", metavar="FILE", help="results: JSON Lines (.jsonl), a TREC run (any other ending; "
        "the results are in FILE.jsonl, too), or - for JSON Lines on standard output",
    )  # fmt: skip
    add_source(many)
    many.add_argument("--in-order", action="store_true", help="write in the order of the input")
    many.add_argument("--at-once", type=positive, metavar="N",
                      help="queries under way (default: as many as questions, 8)")  # fmt: skip
    many.add_argument("--max-cost", type=dollars, metavar="USD",
                      help="for the whole file of results; exit code 3 when it stops there")  # fmt: skip # noqa: E501
    many.add_argument("--retry-failed", action="store_true",
                      help="rank only those again that failed or are in the incoming order")  # fmt: skip # noqa: E501
    many.add_argument("--give-up", type=positive, default=GIVE_UP, metavar="N",
                      help=f"end after N queries in a row without a ranking (default: {GIVE_UP})")  # fmt: skip # noqa: E501
    many.add_argument("--no-judgments", action="store_true",
                      help="leave what the judge said out of the results")  # fmt: skip
    many.add_argument("--quiet", action="store_true", help="no progress and no summary")


def add_source(command: Any) -> None:
    """Where queries with their candidates come from."""
    command.add_argument("--run", metavar="FILE", help="TREC run with the candidates")
    command.add_argument("--collection", metavar="FILE",
                         help="documents of TREC topics, .jsonl or .tsv")  # fmt: skip
    command.add_argument("--depth", type=positive, metavar="N", help="candidates per query")
    command.add_argument("--inputs", metavar="NAMES",
                         help="further inputs of the judge, comma-separated keys or columns")  # fmt: skip # noqa: E501


def source_of(name: str, arguments: argparse.Namespace) -> Source:
    """The queries that the arguments name."""
    return open_source(
        name, run=arguments.run, collection=arguments.collection, depth=arguments.depth,
        inputs=names_of(arguments.inputs),
    )  # fmt: skip


def given(arguments: argparse.Namespace) -> list[str]:
    """Options for files of queries that were given."""
    return [name.replace("_", "-") for name in OPTIONS if getattr(arguments, name)]


def run(arguments: argparse.Namespace) -> int:
    """Rank every query that the results lack."""
    of_one = arguments.trec or arguments.format or arguments.text
    if of_one or arguments.documents not in (None, "-"):
        raise InputError(
            "--out is for a file of queries with their documents; give no documents, --trec, "
            "--format or --text with it"
        )
    source = source_of(arguments.query, arguments)
    reranker, lm = reranker_and_model(arguments)
    plan = Plan(
        top_k=arguments.top_k, in_order=arguments.in_order, queries_at_once=arguments.at_once,
        max_cost=arguments.max_cost, retry_failed=arguments.retry_failed,
        give_up=arguments.give_up, judgments=not arguments.no_judgments,
        trec=not _as_lines(arguments.out),
    )  # fmt: skip
    keep_in_memory(0)
    with dspy.context(lm=lm), unlogged():
        by = identity_of(reranker, lm, plan.top_k)
        with _results(arguments.out, by) as journal, _shown(source, arguments) as report:
            summary = rank_all(source.items(), reranker, journal, plan, lm=lm, report=report)  # pyright: ignore[reportArgumentType]
    return _concluded(summary, arguments)


@contextmanager
def _shown(source: Source, arguments: argparse.Namespace) -> Iterator[Any]:
    quiet = arguments.quiet or arguments.json
    try:
        with run_progress(source.count, quiet) as report:
            yield report
    except KeyboardInterrupt:
        if not arguments.quiet and arguments.out != "-":
            complain(f"interrupted; {arguments.out} is whole, the same command goes on from there")
        raise


@contextmanager
def _results(out: str, by: str) -> Iterator[Journal | Printed]:
    """Where rows go; a TREC run is written from them however the run ends."""
    if out == "-":
        with Printed(by) as printed:
            yield printed
        return
    target = writable(out)
    with Journal(results_path(out), by) as journal:
        try:
            yield journal
        finally:
            if not _as_lines(out):
                journal.export(target)
        journal.compact()


def results_path(out: str) -> Path:
    """The file of rows: beside a TREC run it has the run's name and ``.jsonl``."""
    return Path(out) if _as_lines(out) else Path(f"{out}.jsonl")


def _as_lines(out: str) -> bool:
    return out == "-" or Path(out).suffix.lower() in LINES


def _concluded(summary: Summary, arguments: argparse.Namespace) -> int:
    warnings = [f"not ranked: {reason}" for reason in summary.reasons]
    for warning in [] if arguments.quiet else [*warnings, summary.warning()]:
        if warning:
            complain(warning)
    if arguments.json and arguments.out != "-":
        emit({"out": arguments.out, **summary.to_dict()})
    elif not arguments.quiet:
        note(f"{summary}; results: {arguments.out}")
    return STOPPED if summary.stopped else 0 if summary.whole else FAILED
