"""Search results as RankGPT stores them: a query and its hits, with qrels beside them."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..errors import DataError
from ..trec import Qrels, read_qrels
from ..types import Document
from ._dataset import Dataset
from ._query import Query, above_zero
from ._values import read_id, read_list, read_number, read_text, shown


def read_hits(
    name: str, records: Iterable[tuple[str, dict[str, Any]]], qrels: str | Path
) -> Dataset:
    """Join hits with their grades.

    Args:
        name: Name of the data set.
        records: ``{"query", "hits": [{"content", "qid", "docid", "score"}]}`` with their places.
        qrels: TREC file of judgments; those of documents that were not hit become ideal grades.
    """
    grades = read_qrels(qrels)
    return Dataset(name, tuple(_query(record, grades, where) for where, record in records))


def _query(record: dict[str, Any], qrels: Qrels, where: str) -> Query:
    """One query with its hits."""
    hits = read_list(record, "hits", where)
    if not all(isinstance(hit, dict) for hit in hits):
        raise DataError(f"{where}: expected objects as hits, got {shown(hits)}.")
    query_ids = {read_id(hit.get("qid")) for hit in hits}
    query_id = query_ids.pop() if len(query_ids) == 1 else None
    if query_id is None:
        raise DataError(f"{where}: expected hits with one 'qid', the same in all of them.")
    documents = tuple(_document(hit, where) for hit in hits)
    grades = qrels.get(query_id, {})
    names = {document.id for document in documents}
    return Query(
        id=query_id,
        text=read_text(record, "query", where),
        documents=documents,
        relevance=tuple(grades.get(str(document.id)) for document in documents),
        ideal=above_zero(grade for name, grade in grades.items() if name not in names),
        judged=bool(grades),
    )


def _document(hit: dict[str, Any], where: str) -> Document:
    """One hit."""
    score = read_number(hit.get("score"), where)
    return Document(read_text(hit, "content", where), id=read_id(hit.get("docid")), score=score)
