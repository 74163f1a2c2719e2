"""How long a judge's prompt is beside its passages: measured on the requests, not guessed.

A reranker is run on empty passages with the recording model of :mod:`dspy_rerank.batch`, which
notes the first round of requests and answers none.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from ..background import run_sync
from ..batch.replay import replay
from ..batch.rows import Query
from ..batch.target import Target
from ..errors import EvidenceError
from ..reading.labels import estimate_tokens
from ..sorters import Reranker

MOST = 200
"""Candidates of a trial run: windows are smaller, and larger numbers only take time."""
FRAME = 4
"""Tokens of a chat template around each message."""
BLANK = "x"


class Prompts:
    """Tokens of one call beside query and passages, by the number of candidates.

    Args:
        reranker: Whose judge asks; it is not changed.
        top_k: As in the run.
    """

    def __init__(self, reranker: Reranker, top_k: int | None = None):
        self._reranker, self._top_k = reranker.deepcopy(), top_k
        self._known: dict[int, int] = {}

    @property
    def beginning(self) -> int:
        """Tokens of the instructions and demonstrations, with which every prompt begins."""
        asked: Any = self._reranker.predictors()
        texts = [
            text
            for predictor in asked
            for text in (predictor.signature.instructions, *_values(predictor.demos))
        ]
        return sum(estimate_tokens(text) + FRAME for text in texts)

    def tokens(self, n: int, inputs: Mapping[str, Any]) -> int:
        """Instructions, demonstrations, headings and schema, with the labels of the passages."""
        size = min(n, MOST)
        if size not in self._known:
            self._known[size] = self._measured(size, inputs)
        return self._known[size]

    def _measured(self, n: int, inputs: Mapping[str, Any]) -> int:
        if not self._reranker.predictors():
            return 0
        record = {"query": BLANK, "documents": [BLANK] * n, "inputs": dict(inputs)}
        target = Target("openai", "measured", {}, {}, None)
        asked = replay(Query(0, "0", record), self._reranker, target, lambda _: None, self._top_k)  # pyright: ignore[reportArgumentType]
        try:
            _, requests = run_sync(asked)
        except EvidenceError:  # the judge needs more than a chat model: its prompt is read off
            return self.beginning
        lengths = [_length(request.body) for request in requests]
        return round(sum(lengths) / len(lengths)) if lengths else 0


def _values(demos: Any) -> list[str]:
    return [str(value) for demo in demos for value in dict(demo).values()]


def _length(body: str) -> int:
    content = orjson.loads(body)
    schema = orjson.dumps(content.get("response_format") or "").decode()
    texts = [str(message.get("content")) for message in content["messages"]]
    shown = sum(estimate_tokens(text) + FRAME for text in texts)
    return shown + (estimate_tokens(schema) if content.get("response_format") else 0)
