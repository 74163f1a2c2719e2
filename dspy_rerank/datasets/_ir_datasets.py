"""Test collections of the ir_datasets package, by their ids (MacAvaney et al. 2021).

The package downloads a collection when it is first used, and keeps it.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError
from ..trec import Run, in_trec_order, read_run
from ..types import Document
from ._dataset import Dataset
from ._query import Query, above_zero
from ._trec import Entry

PREFIX = "ir_datasets:"


def read_ir_dataset(name: str, *, run: str | Path | None = None) -> Dataset:
    """Read the judged queries of a collection with their candidates.

    Args:
        name: Such as ``ir_datasets:beir/scifact/test``.
        run: TREC run with the candidates; by default those that the collection brings.

    Raises:
        DataError: There is no such collection, or it lacks queries, documents, judgments or
            candidates.
        MissingExtraError: ir_datasets is not installed.
    """
    source = open_collection(name)
    needs(source, name, "queries", "docs", "qrels")
    grades: dict[str, dict[str, int]] = defaultdict(dict)
    for qrel in source.qrels_iter():
        grades[qrel.query_id][qrel.doc_id] = int(qrel.relevance)
    ranked = read_run(run) if run is not None else _ranked(candidates(source, name))
    judged = [entry for entry in queries(source) if entry.id in grades]
    found = (_query(e, ranked.get(e.id, []), grades[e.id], source) for e in judged)
    return Dataset(name.removeprefix(PREFIX), tuple(found))


def open_collection(name: str) -> Any:
    """The collection, not yet downloaded.

    Raises:
        DataError: There is none of that name.
        MissingExtraError: ir_datasets is not installed.
    """
    try:
        import ir_datasets
    except ImportError:
        raise MissingExtraError(f"{name} needs ir_datasets: pip install ir_datasets") from None
    try:
        return ir_datasets.load(name.removeprefix(PREFIX))
    except KeyError:
        raise DataError(
            f"{name}: ir_datasets knows no such collection; expected an id such as "
            f"{PREFIX}beir/scifact/test"
        ) from None


def needs(source: Any, name: str, *parts: str) -> None:
    """Complain about what a collection lacks."""
    lacks = [part for part in parts if not getattr(source, f"has_{part}")()]
    if lacks:
        raise DataError(f"{name}: this collection has no {' and no '.join(lacks)}")


def queries(source: Any) -> Iterator[Entry]:
    """Its queries, one after the other."""
    return (Entry(str(q.query_id), text_of(q)) for q in source.queries_iter())


def candidates(source: Any, name: str) -> Iterator[tuple[str, str, float]]:
    """Query id, document id and score of the first results that the collection brings.

    Raises:
        DataError: It brings none.
    """
    if not source.has_scoreddocs():
        raise DataError(f"{name}: this collection brings no first results; give a run with --run")
    return ((s.query_id, s.doc_id, float(s.score)) for s in source.scoreddocs_iter())


def documents(source: Any, names: Iterable[str]) -> dict[str, str]:
    """Texts of documents by id; those that the collection lacks are missing."""
    return {name: text_of(doc) for name, doc in source.docs_store().get_many(names).items()}


def text_of(record: Any) -> str:
    """What ir_datasets holds for the text of a query or document."""
    default = getattr(record, "default_text", None)
    return default() if default is not None else record.text


def _ranked(rows: Iterable[tuple[str, str, float]]) -> Run:
    scores: dict[str, dict[str, float]] = defaultdict(dict)
    for query_id, document_id, score in rows:
        scores[query_id][document_id] = score
    return {query_id: in_trec_order(each) for query_id, each in scores.items()}


def _query(
    entry: Entry, ranking: list[tuple[str, float]], grades: dict[str, int], source: Any
) -> Query:
    names = [name for name, _ in ranking]
    texts = documents(source, names)
    missing = [name for name in names if name not in texts]
    if missing:
        raise DataError(f"query {entry.id}: the collection has no documents {missing[:5]}")
    return Query(
        id=entry.id,
        text=entry.text,
        documents=tuple(Document(texts[name], id=name, score=score) for name, score in ranking),
        relevance=tuple(grades.get(name) for name in names),
        ideal=above_zero(grade for name, grade in grades.items() if name not in names),
        judged=bool(grades),
    )
