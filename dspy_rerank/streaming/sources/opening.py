"""One door to every format: the name, the ending or the options say who reads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ...datasets import load
from ...datasets._ir_datasets import PREFIX
from ...datasets._load import find
from ...datasets._parquet import is_nested, parquet_count
from ...datasets._trec import table_of
from ...errors import InputError
from ..item import Item
from . import collections, lines, tables

LINES = frozenset({".jsonl", ".ndjson"})
TABLES = frozenset({".csv", ".tsv"})
PARQUET = frozenset({".parquet", ".pq"})


@dataclass(frozen=True, slots=True)
class Source:
    """Queries that can be read as often as one likes, unless they come from standard input.

    Args:
        name: As it was given.
        items: Begins to read.
        count: How many queries there are; ``None`` where that is not known before they are read.
    """

    name: str
    items: Callable[[], Iterator[Item]]
    count: Callable[[], int | None]


def open_source(
    source: str | Path,
    *,
    run: str | Path | None = None,
    collection: str | Path | None = None,
    depth: int | None = None,
    inputs: Sequence[str] = (),
) -> Source:
    """Where queries with their candidates come from.

    Args:
        source: ``-`` (JSON Lines on standard input), a JSON Lines, CSV, TSV or Parquet file, a
            folder with queries, corpus and a run (TREC, BEIR), the name of a shipped set, an
            ``ir_datasets:`` id; or, with ``collection``, a file of topics.
        run: TREC run with the candidates, for topics, folders and ir_datasets.
        collection: The documents of topics, ``.jsonl`` or ``.tsv``.
        depth: Candidates of each query, the first of them; ``None`` is all.
        inputs: Keys or columns to take as further inputs of the judge.

    Raises:
        DataError: There is no such file, or it has no known format.
        InputError: The options do not fit each other.
    """
    if depth is not None and depth < 0:
        raise InputError(f"depth={depth}; expected 0 or more candidates")
    name = str(source)
    if collection is not None:
        found = _topics(Path(name), run, collection)
    elif name.startswith(PREFIX):
        found = _plain(name, lambda: collections.of_ir_datasets(name, run))
    elif name == "-":
        found = _plain(name, lambda: lines.of_standard_input(inputs))
    else:
        found = _file(find(source), name, run, inputs)
    return found if depth is None else _cut(found, depth)


def _plain(name: str, items: Callable[[], Iterator[Item]]) -> Source:
    return Source(name, items, lambda: None)


def _topics(topics: Path, run: str | Path | None, collection: str | Path) -> Source:
    if run is None:
        raise InputError(f"{topics}: topics with a collection need a run of candidates: give --run")
    return _plain(str(topics), lambda: collections.of_topics(topics, run, Path(collection)))


def _file(path: Path, name: str, run: str | Path | None, inputs: Sequence[str]) -> Source:
    if path.is_dir():
        return _folder(path, name, run)
    if run is not None:
        raise InputError(f"{name}: a run goes with a folder, or with topics and a collection")
    ending = path.suffix.lower()
    if ending in LINES:
        return Source(name, lambda: lines.of_file(path, inputs), lambda: lines.count(path))
    if ending in TABLES:
        return _plain(name, lambda: tables.of_csv(path, inputs))
    if ending in PARQUET:
        items = tables.of_nested_parquet if is_nested(path) else tables.of_parquet
        count = parquet_count if is_nested(path) else lambda _: None
        return Source(name, lambda: items(path, inputs), lambda: count(path))
    raise InputError(
        f"{name}: expected a file that ends in .jsonl, .csv, .tsv or .parquet, a folder, or, with "
        "--collection and --run, a file of topics"
    )


def _folder(path: Path, name: str, run: str | Path | None) -> Source:
    if table_of(path, "queries") and table_of(path, "corpus"):
        return _plain(name, lambda: collections.of_folder(path, run))
    return _plain(name, lambda: _labelled(path, run))


def _labelled(path: Path, run: str | Path | None) -> Iterator[Item]:
    """Formats that are read as a whole."""
    for query in load(path, run=run):
        yield Item(query.id, query.text, query.documents, query.inputs)


def _cut(source: Source, depth: int) -> Source:
    def items() -> Iterator[Item]:
        for item in source.items():
            yield item.cut(depth)

    return Source(source.name, items, source.count)
