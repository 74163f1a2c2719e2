"""``dspy-rerank rerank``: one query's documents, or a file of queries with theirs."""

import argparse
import os
import sys
from pathlib import Path
from typing import Any

import dspy

from ..documents import as_documents
from ..errors import InputError
from ..ranking import Ranking
from ..streaming.sources.opening import LINES, PARQUET, TABLES
from ..trec import check_names
from . import streaming
from ._app import FAILED, positive
from ._common import add_json, add_model
from ._documents import FORMATS, read_documents
from ._rerankers import add_reranker, reranker_and_model
from ._show import complain, emit, show_ranking, unlogged

EXAMPLES = """\
one query:     dspy-rerank rerank "capital of France" documents.txt --top-k 3
many queries:  dspy-rerank rerank queries.jsonl --out ranked.jsonl
               dspy-rerank rerank beir/scifact --run bm25.run --out reranked.run
               dspy-rerank rerank topics.txt --run bm25.run --collection corpus.jsonl --out r.run

A file of results (--out) is safe on disk query by query. Run the same command again after it was
cut off, and it goes on where it stopped.
"""


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser(
        "rerank", help="rank documents for a query, or files of many queries", epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    command.add_argument(
        "query", help="the query; with --out a file of queries with their documents (.jsonl, .csv, "
        ".tsv, .parquet, - for JSONL on standard input), a folder with queries, corpus and a run, "
        "TREC topics, a shipped set (ostrel), or ir_datasets:ID",
    )  # fmt: skip
    command.add_argument(
        "documents", nargs="?", help="JSONL, CSV or plain lines; - is standard input (default)"
    )
    command.add_argument("--format", choices=FORMATS, help="default: by the file's ending")
    command.add_argument("--text", metavar="FIELD", help="field or column that holds the text")
    add_reranker(command)
    command.add_argument("--top-k", type=positive, metavar="K")
    command.add_argument("--trec", metavar="QID", help="print a TREC run with this query id")
    add_model(command)
    add_json(command)
    streaming.add_to(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Rank and print."""
    if arguments.out:
        return streaming.run(arguments)
    _check_single(arguments)
    path = arguments.documents or "-"
    documents = list(read_documents(path, arguments.format, arguments.text))
    if not documents:
        raise InputError(f"{path}: no documents; expected one a line")
    if arguments.trec:
        check_names(arguments.trec, as_documents(documents))
    reranker, lm = reranker_and_model(arguments)
    with dspy.context(lm=lm), unlogged():
        ranking = reranker(arguments.query, documents, arguments.top_k).ranking
    _show(ranking, arguments)
    failed = ranking.degraded and not ranking.judgments
    if failed:
        complain("the model failed, this is the incoming order: " + "; ".join(ranking.reasons))
    return FAILED if failed else 0


def _check_single(arguments: argparse.Namespace) -> None:
    """Complain about what only a file of queries has a use for."""
    given = streaming.given(arguments)
    if given:
        raise InputError(f"--{given[0]} is for files of queries; name one, and the results' --out")
    if arguments.documents is None and _is_source(arguments.query):
        raise InputError(
            f"{arguments.query} looks like a file of queries; add --out FILE for the results. To "
            "rank documents for one query give the query and then their file (- for standard input)"
        )


def _is_source(query: str) -> bool:
    """Whether it is rather where queries are than one; a word with documents piped in is one."""
    if query.startswith("ir_datasets:"):
        return True
    if Path(query).suffix.lower() in LINES | TABLES | PARQUET:
        return os.path.isfile(query)
    return os.path.exists(query) and sys.stdin.isatty()


def _show(ranking: Ranking, arguments: argparse.Namespace) -> None:
    if arguments.trec:
        sys.stdout.write(ranking.to_trec(arguments.trec))
    elif arguments.json:
        emit(ranking.to_dict())
    else:
        show_ranking(ranking)
