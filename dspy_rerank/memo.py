"""Answers that have been paid for, kept across rankings while a search is under way."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from .judges.protocol import Judge
from .types import Group, Judgment

Memo = dict[Group, Judgment]

_store: ContextVar[dict[str, Memo] | None] = ContextVar("memo_store", default=None)


@contextmanager
def remembering(store: dict[str, Memo] | None = None) -> Iterator[dict[str, Memo]]:
    """Within this context no judge is asked the same question twice, whatever the sorter.

    An inner context without a store of its own joins the outer one.
    """
    outer = _store.get()
    kept = store if store is not None else outer if outer is not None else {}
    token = _store.set(kept)
    try:
        yield kept
    finally:
        _store.reset(token)


def memo_for(judge: Judge, query: str, passages: Sequence[str], inputs: Mapping[str, Any]) -> Memo:
    """The memo of one list of passages: the context's, or a fresh one for this ranking alone."""
    store = _store.get()
    if store is None:
        return {}
    key = [_identity(judge), query, list(passages), sorted((k, str(v)) for k, v in inputs.items())]
    text = json.dumps(key, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
    return store.setdefault(digest, {})


def _identity(judge: Judge) -> Any:
    """All that decides a judge's answers: its prompt, its settings and its model."""
    predict = getattr(judge, "predict", None)
    if predict is None:
        return id(judge)
    import dspy

    state = predict.dump_state()
    model = getattr(predict.lm or dspy.settings.lm, "model", None)
    adapter = type(getattr(judge, "adapter", None)).__name__
    settings = getattr(judge, "settings", None)
    return [state["signature"], state["demos"], model, adapter, repr(settings)]
