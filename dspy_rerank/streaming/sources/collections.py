"""Test collections: queries, documents and a run of candidates that stand in separate places."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from ...datasets import _ir_datasets as ir
from ...datasets._topics import read_topics
from ...datasets._trec import Entry, entries, run_file, table_of
from ...errors import DataError
from ...trec import run_rows
from ...types import Document
from ..item import Item
from .candidates import Candidates

TABLES = frozenset({".jsonl", ".tsv"})
Texts = Callable[[list[str]], Mapping[str, str]]


def of_folder(folder: Path, run: str | Path | None = None) -> Iterator[Item]:
    """The queries of a folder that the run has candidates for; judgments are not needed."""
    queries, corpus = table_of(folder, "queries"), table_of(folder, "corpus")
    assert queries is not None
    assert corpus is not None
    return _joined(entries(queries), run_file(folder, run), corpus)


def of_topics(topics: Path, run: str | Path, collection: Path) -> Iterator[Item]:
    """The topics that the run has candidates for, with documents of the collection."""
    for path in (topics, collection):
        if not path.is_file():
            raise DataError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
    if collection.suffix not in TABLES:
        raise DataError(f"{collection}: expected documents in a .jsonl or .tsv file")
    asked = entries(topics) if topics.suffix in TABLES else read_topics(topics)
    return _joined(asked, run, collection)


def of_ir_datasets(name: str, run: str | Path | None = None) -> Iterator[Item]:
    """The queries of a collection of ir_datasets that there are candidates for."""
    source = ir.open_collection(name)
    ir.needs(source, name, "queries", "docs")
    rows = ir.candidates(source, name) if run is None else _ranked(run)
    with Candidates(rows) as candidates:
        yield from _items(ir.queries(source), candidates, lambda n: ir.documents(source, n))


def _joined(asked: Iterable[Entry], run: str | Path, corpus: Path) -> Iterator[Item]:
    with Candidates(_ranked(run)) as candidates:
        candidates.fill((entry.id, entry.text) for entry in entries(corpus))
        yield from _items(asked, candidates, candidates.texts)


def _ranked(run: str | Path) -> Iterator[tuple[str, str, float]]:
    return ((query, document, score) for _, query, document, score in run_rows(run))


def _items(asked: Iterable[Entry], candidates: Candidates, texts: Texts) -> Iterator[Item]:
    found = 0
    for entry in asked:
        ranking = candidates.of(entry.id)
        if ranking:
            found += 1
            yield _item(entry, ranking, texts([name for name, _ in ranking]))
    if not found:
        raise DataError("the run has candidates for none of the queries; expected the same ids")


def _item(entry: Entry, ranking: list[tuple[str, float]], texts: Mapping[str, str]) -> Item:
    missing = [name for name, _ in ranking if name not in texts]
    if missing:
        problem = DataError(f"the collection has no documents {missing[:5]}, which the run ranks")
        return Item(entry.id, entry.text, problem=problem)
    documents = tuple(Document(texts[name], id=name, score=score) for name, score in ranking)
    return Item(entry.id, entry.text, documents)
