"""A PyTerrier transformer: ``pip install 'dspy-rerank[pyterrier]'``."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from ..background import run_sync
from ..engine import shared_limit
from ..options import Options
from ..progress import Progress, reporting
from ..sorters import Reranker
from ..together import all_or_cancel
from ._extras import needs
from ._ranking import CONFIDENCE, LOW, Placed, Wanted, arank
from ._source import Source, opened

with needs("pyterrier", "dspy_rerank.integrations.pyterrier"):
    import pandas as pd
    import pyterrier as pt

QUERIES_AT_ONCE = 8
APART = 1e-6
"""By how much, of their size, tied scores are told apart: more than single precision needs."""


class DSPyReranker(pt.Transformer):
    """Reranks each query's documents with any model, sorter and compiled program.

    Takes frames with ``qid``, ``query``, ``docno`` and ``text`` (``pt.text.get_text`` brings the
    texts), and returns them with new ``score`` and ``rank`` (from 0), best first, queries in the
    order in which they came. The incoming order is that of ``rank`` where there is one, else that
    of the rows.

    ``score`` falls strictly with the rank, so that evaluation measures this very ranking: it is
    the judge's, where ties are told apart by a millionth, or counts down from the number of
    documents where the sorter has no scores. Documents without text are not judged and come last.
    If the model keeps failing on a query, its documents keep their order, unless
    ``raise_on_error`` is set; wrong keys always raise.

    Args:
        reranker: A reranker, the path of a saved program, its content, or ``None`` for the
            default of the model.
        lm: A DSPy LM or a model's name for this transformer; ``None`` takes DSPy's.
        top_k: How many documents to keep of each query; ``None`` is all. ``reranker % 10`` sets
            it, too, once the pipeline is compiled.
        text_field: The column that the judge reads.
        confidence_threshold: In [0, 1]: adds a column ``low_confidence``; nothing is dropped.
        raise_on_error: Raise when the model keeps failing.
        inputs: Further inputs of the judge's signature, or options such as ``deadline``.
        verbose: Draw a bar over the queries.

    Raises:
        ProgramError: The saved program does not fit.
    """

    schematic: ClassVar[dict[str, str]] = {"label": "DSPyReranker", "help_url": ""}
    """For PyTerrier's drawings; without an address, it would look for one on the network."""

    def __init__(
        self,
        reranker: Source = None,
        *,
        lm: Any = None,
        top_k: int | None = None,
        text_field: str = "text",
        confidence_threshold: float | None = None,
        raise_on_error: bool = False,
        inputs: Mapping[str, Any] | None = None,
        verbose: bool = False,
    ):
        self.reranker = reranker
        self.lm = lm
        self.top_k = top_k
        self.text_field = text_field
        self.confidence_threshold = confidence_threshold
        self.raise_on_error = raise_on_error
        self.inputs = inputs
        self.verbose = verbose
        self._reranks = opened(reranker, lm)

    def transform(self, inp: pd.DataFrame) -> pd.DataFrame:
        """The frame reranked, query by query.

        Raises:
            InputValidationError: A column is missing.
        """
        columns = ["qid", "query", "docno", self.text_field]
        pt.validate.columns(inp, includes=columns, context=self)
        groups = [_in_order(group) for _, group in inp.groupby("qid", sort=False)]
        if not groups:
            return self._placed(inp, [])
        with reporting(self.verbose, "reranking") as progress:
            return pd.concat(run_sync(self._all(groups, progress)), ignore_index=True)

    async def _all(
        self, groups: Sequence[pd.DataFrame], progress: Progress | None
    ) -> list[pd.DataFrame]:
        """All queries, some at once, under one limit on the questions in flight."""
        shared_limit.set(shared_limit.get() or asyncio.Semaphore(self._concurrency))
        turn, done = asyncio.Semaphore(QUERIES_AT_ONCE), 0

        async def one(group: pd.DataFrame) -> pd.DataFrame:
            nonlocal done
            async with turn:
                ranked = await self._query(group)
            done += 1
            if progress is not None:
                progress(done, len(groups))
            return ranked

        return await all_or_cancel(one(group) for group in groups)

    @property
    def _concurrency(self) -> int:
        own = self._reranks.settings if isinstance(self._reranks, Reranker) else {}
        default = own["concurrency"] if own else Options().concurrency
        return (self.inputs or {}).get("concurrency", default)

    async def _query(self, group: pd.DataFrame) -> pd.DataFrame:
        texts = [text if isinstance(text, str) else None for text in group[self.text_field]]
        given = group["score"] if "score" in group else [None] * len(group)
        scores = [None if score is None or score != score else float(score) for score in given]
        wanted = Wanted(
            self.top_k, self.confidence_threshold, self.raise_on_error, self.inputs or {}
        )
        query = str(group["query"].iloc[0])
        places, _ = await arank(self._reranks, query, texts, scores, wanted)
        return self._placed(group, places)

    def _placed(self, group: pd.DataFrame, places: Sequence[Placed]) -> pd.DataFrame:
        """The rows in their new places."""
        out = group.iloc[[place.index for place in places]].copy()
        out["score"] = falling([place.score for place in places], len(group))
        out["rank"] = range(pt.model.FIRST_RANK, pt.model.FIRST_RANK + len(places))
        if self.confidence_threshold is not None:
            out[CONFIDENCE] = [place.notes.get(CONFIDENCE) for place in places]
            out[LOW] = [bool(place.notes.get(LOW)) for place in places]
        return out

    def fuse_rank_cutoff(self, k: int) -> pt.Transformer:
        """``reranker % k`` need not order what is cut off."""
        if self.top_k is not None and self.top_k <= k:
            return self
        return pt.inspect.transformer_apply_attributes(self, top_k=k)

    def __repr__(self) -> str:
        return f"DSPyReranker({self._reranks!r})"


def _in_order(group: pd.DataFrame) -> pd.DataFrame:
    return group.sort_values("rank", kind="stable") if "rank" in group else group


def falling(scores: Sequence[float | None], n: int) -> list[float]:
    """Scores that fall strictly with the rank, as close to the given ones as can be.

    Args:
        scores: Best place first; ``None`` where there is none.
        n: From where to count down when the first has none.
    """
    if not scores or scores[0] is None:
        return [float(n - place) for place in range(len(scores))]
    out: list[float] = []
    for score in scores:
        if out and (score is None or score >= out[-1]):
            score = out[-1] - APART * max(1.0, abs(out[-1]))
        out.append(float(score or 0.0))
    return out
