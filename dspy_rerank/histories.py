"""DSPy's histories, kept from growing with every judgment.

A history entry holds the whole prompt, so that a service would fill its memory with passages.
Judges' calls stay visible to ``dspy.inspect_history`` all the same: the last :data:`KEPT` of them.
"""

import threading
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import dspy
from dspy import lm15
from dspy.clients.base_lm import GLOBAL_HISTORY, record_history

KEPT = 1000
"""Judges' calls that DSPy's histories keep when nobody collects a trace, in this process.

A tenth more may be there: entries leave in batches, since a list of 10,000 entries by others has
to be looked through for them.
"""

Entry = dict[str, Any]
History = list[Entry]

_recent: deque[tuple[Entry, list[History]]] = deque()
_forgetting = threading.Lock()


def record(lm: Any, entry: Entry, *, inferring: bool) -> None:
    """Put an entry, less its log-probabilities, into the histories that DSPy would put it into.

    Args:
        lm: Whose call it was.
        entry: As DSPy makes it.
        inferring: Nobody collects a trace, so that the oldest entries may go.
    """
    entry = without_logprobs(entry)
    record_history(lm, entry)
    if not inferring:
        return
    owners = [lm, *(dspy.settings.caller_modules or [])]
    with _forgetting:
        _recent.append((entry, [GLOBAL_HISTORY, *(owner.history for owner in owners)]))
        if len(_recent) > KEPT + KEPT // 10:
            _forget([_recent.popleft() for _ in range(len(_recent) - KEPT)])


def _forget(oldest: list[tuple[Entry, list[History]]]) -> None:
    gone = {id(entry) for entry, _ in oldest}
    histories = {id(history): history for _, places in oldest for history in places}
    for history in histories.values():
        found = [place for place, entry in enumerate(history) if id(entry) in gone]
        for place in reversed(found):
            with suppress(IndexError):  # another thread may have cut it since
                if id(history[place]) in gone:
                    del history[place]


def without_logprobs(entry: Entry) -> Entry:
    """The entry as histories keep it: log-probabilities have been read, and are most of it."""
    if not any(isinstance(output, Mapping) and "logprobs" in output for output in entry["outputs"]):
        return entry
    outputs = [{k: v for k, v in dict(o).items() if k != "logprobs"} for o in entry["outputs"]]
    response = entry["response"]
    if isinstance(response, lm15.Response):
        response = replace(response, logprobs=None)
    elif hasattr(response, "model_copy") and hasattr(response, "choices"):
        bare = [choice.model_copy(update={"logprobs": None}) for choice in response.choices]
        response = response.model_copy(update={"choices": bare})
    return {**entry, "outputs": outputs, "response": response}
