"""``dspy-rerank demo``: the whole story on the shipped set with the embedded model."""

import argparse
from typing import Any

import dspy

from .. import datasets
from ..defaults import default_reranker
from ..program import load, save
from ._common import add_model, model, writable
from ._show import say, show_evaluation, show_ranking
from .compiling import compiled_and_proved, show_card, verdict

QUICK = {"trials": 20, "demos": "1", "queries": 10}
FULL = {"trials": 60, "demos": "1,2", "queries": None}


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
    settings = QUICK if arguments.quick else FULL
    data = datasets.load("ostrel")
    train, validation, test = (data.part(name)[: settings["queries"]] for name in
                               ("train", "validation", "test"))  # fmt: skip
    say(f"model {lm.model}; {len(train)} training, {len(validation)} validation, {len(test)} test "
        "queries, 12 candidates each from BM25")  # fmt: skip
    options = argparse.Namespace(
        metric="nDCG@10", trials=settings["trials"], instructions=[], demos=settings["demos"],
        max_calls=None, timeout=None, seed=0, json=False,
    )  # fmt: skip
    compiled, found = compiled_and_proved(
        default_reranker(lm), train, validation, test, lm, options
    )
    show_card(compiled)
    show_evaluation(found)
    say(verdict(found))
    save(compiled, target)
    say(f"saved {target}; loading it back and reranking one query with it")
    query = test[0]
    say(f"\nquery: {query.text}")
    with dspy.context(lm=lm):
        show_ranking(load(target)(query.text, query.documents, top_k=5).ranking)
    return 0
