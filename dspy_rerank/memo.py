"""Answers that have been paid for, kept across rankings while a search is under way."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import count
from typing import Any
from uuid import uuid4
from weakref import WeakKeyDictionary

from .judges.protocol import Judge
from .types import Group, Judgment

Memo = dict[Group, Judgment]

_store: ContextVar[dict[str, Memo] | None] = ContextVar("memo_store", default=None)
_names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
_numbers, _process = count(), uuid4().hex


@contextmanager
def remembering(store: dict[str, Memo] | None = None) -> Iterator[dict[str, Memo]]:
    """Within this context no judge is asked the same question twice, whatever the sorter.

    A question is a judge with its prompt, demonstrations, settings and model, a query with its
    further inputs, a list of passages, and the group of them in the order shown. Answers that
    were remembered count as cached calls. One that could not be read, though it was asked for
    as often as the reranker's ``retries`` say, stays unknown; failures and what a limit kept from
    being asked are not remembered. A judge that is no DSPy signature is only equal to itself, and
    its answers are not found again by another process.

    Outside of such a context a ranking remembers its own answers, and forgets them when it ends:
    a service must not grow with every query, and DSPy's cache, with its limits, already answers
    repeated prompts. Use it where many rankings ask about the same candidates, as a search over
    sorters does. An inner context without a store of its own joins the outer one.

    Args:
        store: Filled as judges answer; ``None`` starts an empty one.
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


def _identity(judge: Any) -> Any:
    """All that decides a judge's answers: its prompt, its settings and its model."""
    predict = getattr(judge, "predict", None)
    if hasattr(judge, "judges"):  # a panel
        return [[_identity(each) for each in judge.judges], repr(judge.settings)]
    if predict is None:
        return _name(judge)
    import dspy

    prompt = [predict.signature.dump_state(), [dict(demo) for demo in predict.demos]]
    lm = predict.lm or dspy.settings.lm
    model = [getattr(lm, "model", None), _sampling(lm)]
    adapter = type(getattr(judge, "adapter", None)).__name__
    settings = getattr(judge, "settings", None)
    return [*prompt, model, adapter, repr(settings)]


def _name(judge: Any) -> str:
    """One name for a judge's whole life, never given again; another each time if it cannot last."""
    try:
        return _names.setdefault(judge, f"{_process} {next(_numbers)}")
    except TypeError:  # not hashable, or no weak references
        return f"{_process} {next(_numbers)}"


def _sampling(lm: Any) -> dict[str, str]:
    """What else a model is called with, but for secrets."""
    kwargs = getattr(lm, "kwargs", None) or {}
    return {name: str(value) for name, value in kwargs.items() if "key" not in name}
