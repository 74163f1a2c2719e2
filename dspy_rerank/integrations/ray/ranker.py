"""A worker: loads the program once, then ranks batch after batch into parts."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import orjson

from ...cache import keep_in_memory
from ...datasets._values import read_object
from ...errors import DataError
from ...streaming import Item, Summary, stream
from ...streaming.rows import failed_row, ranked_row
from ...streaming.sources.lines import read_item
from ...streaming.streamed import Streamed
from ...streaming.summary import unread
from ...types import Usage
from .._extras import needs
from .job import Job
from .parts import Parts, has, named
from .reading import LINE, WHERE

with needs("ray", "dspy_rerank.integrations.ray"):
    import pyarrow as pa
    import ray

RECEIPT = "receipt"


class Ranker:
    """Takes batches of queries, and gives a receipt of each once its rankings are safe.

    Args:
        job: What to do.
        rates: The actor that leases requests.
        ranked: Keys of all queries that had a ranking when the run began.
        failed: Keys of those that had a reason instead.
    """

    def __init__(self, job: Job, rates: Any, ranked: Any, failed: Any):
        keep_in_memory(0)
        self._job, self._reranker = job, job.opened(rates)
        self._ranked, self._failed = _array(ranked), _array(failed)
        self._parts = Parts(job.out)

    def __call__(self, batch: Any) -> Any:
        """Rank the queries of a batch that have to be, and write them."""
        summary = Summary()
        wanted = dict(self._wanted(self._items(batch), summary))
        if wanted:
            name = named(self._job.run, wanted)
            rows = self._parts.found(name)
            known = {row["key"] for row in rows}
            missing = {key: item for key, item in wanted.items() if key not in known}
            if missing:
                rows += self._rows(missing, summary)
                self._parts.write(name, rows)
            for row in rows:
                _count(summary, row)
        return pa.table({RECEIPT: [orjson.dumps(asdict(summary))]})

    def _items(self, batch: Any) -> Iterator[Item]:
        for place, row in enumerate(batch.to_pylist()):
            where = row.get(WHERE) or f"row {place} of a batch"
            try:
                if LINE in row:
                    record: Mapping[str, Any] = read_object(row[LINE], where)
                else:
                    record = {name: value for name, value in row.items() if value is not None}
                item = read_item(record, "", where, self._job.inputs)
            except DataError as problem:
                item = Item("", row.get("query") or row.get(LINE), problem=problem)
            yield item if item.id else replace(item, id=item.key)

    def _wanted(self, items: Iterable[Item], summary: Summary) -> Iterator[tuple[str, Item]]:
        for item in items:
            key = item.key
            ranked, failed = has(self._ranked, key), has(self._failed, key)
            again = failed and not ranked
            if again if self._job.only_failed else not (ranked or failed):
                yield key, item
            else:
                summary.skipped += int(ranked or failed)
                summary.bad_before += int(again)

    def _rows(self, items: Mapping[str, Item], summary: Summary) -> list[dict[str, Any]]:
        """Of queries that are ranked now; rows do not tell which have no judgment to read."""
        common: dict[str, Any] = {} if self._job.top_k is None else {"top_k": self._job.top_k}
        results = stream(
            self._reranker, items.values(), queries_at_once=self._job.queries_at_once,
            in_order=True, **common,
        )  # fmt: skip
        rows: list[dict[str, Any]] = []
        for key, result in zip(items, results, strict=True):
            summary.unread += result.ranking is not None and unread(result.ranking)
            rows.append(_row(key, result))
        return rows


def _array(given: Any) -> np.ndarray:
    """An array, or one that lies in Ray's store, where all workers of a machine see the same."""
    return ray.get(given) if isinstance(given, ray.ObjectRef) else given


def _row(key: str, result: Streamed) -> dict[str, Any]:
    item: Item = result.query
    if result.ranking is not None:
        return {"key": key, **ranked_row(item.id, result.ranking, judgments=False)}
    row = failed_row(item.id, item.query, result.error or DataError("no ranking"))
    reason = f"{row['error']['type']}: {row['error']['message']}"
    return {"key": key, **row, "n": len(item.documents), "reasons": [reason]}


def _count(summary: Summary, row: Mapping[str, Any]) -> None:
    summary.add(row["status"], "; ".join(row["reasons"] or ()))
    summary.unknowns += row.get("unknowns") or 0
    if row.get("usage"):
        summary.usage = summary.usage + Usage(**row["usage"])


def of_receipt(receipt: bytes) -> Summary:
    """The counts of a batch."""
    said = orjson.loads(receipt)
    return Summary(**{**said, "usage": Usage(**said["usage"])})
