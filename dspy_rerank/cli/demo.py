"""``dspy-rerank demo``: the whole story on the shipped set with the embedded model."""

import argparse
from typing import Any, NamedTuple

import dspy

from .. import datasets
from ..defaults import default_reranker
from ..memo import remembering
from ..program import load, save
from ._common import add_model, model, writable
from ._show import say, show_ranking
from .compiling import compiled_and_proved, show


class Size(NamedTuple):
    """How much of the shipped set is used: what fits into ten minutes, or three, on two cores."""

    trials: int
    validation: int
    test: int | None
    max_calls: int


QUICK = Size(trials=30, validation=6, test=10, max_calls=150)
FULL = Size(trials=60, validation=12, test=None, max_calls=320)


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser("demo", help="compile and prove a reranker on the shipped set")
    command.add_argument("--quick", action="store_true", help="fewer queries and settings")
    command.add_argument("--out", default="reranker.json", metavar="FILE")
    add_model(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile, prove, save, load, rerank."""
    target = writable(arguments.out)
    lm = model(arguments)
    size = QUICK if arguments.quick else FULL
    data = datasets.load("ostrel")
    train, validation = data.part("train"), data.part("validation")[: size.validation]
    test = data.part("test")[: size.test]
    say(
        f"model {lm.model}; {len(train)} training, {len(validation)} validation, {len(test)} test "
        "queries, 12 candidates each from BM25"
    )
    options = {"trials": size.trials, "demos": [1], "max_calls": size.max_calls}
    with remembering():
        proven = compiled_and_proved(default_reranker(lm), train, validation, test, lm, options)
    show(proven)
    save(proven.program, target)
    say(f"saved {target}; loading it back and reranking one query with it")
    query = test[0]
    say(f"\nquery: {query.text}")
    with dspy.context(lm=lm):
        show_ranking(load(target)(query.text, query.documents, top_k=5).ranking)
    return 0
