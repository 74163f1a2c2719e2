"""How fast a language model may be asked: requests and tokens a minute, and pauses it asks for.

One limit an LM, shared by all rankings and event loops of the process. A refusal (429) holds back
every further question to that LM, not only the one refused.
"""

import asyncio
import random
import threading
import time
from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

BURST = 10.0
"""Seconds' worth of requests that may go out at once after a pause."""
LONGEST_PAUSE = 60.0

_jitter = random.Random()


class Limit:
    """A token bucket for requests, one for tokens, and a pause after refusals.

    Args:
        rpm: Requests a minute; ``None`` is any number.
        tpm: Prompt and completion tokens a minute.
        clock: Seconds that only go forward.
    """

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.rpm, self.tpm = rpm, tpm
        self._clock = clock
        self._lock = threading.Lock()
        self._due = {"requests": 0.0, "tokens": 0.0}
        self._blocked, self._refusals = 0.0, 0

    def reserve(self, tokens: int = 0) -> float:
        """Book one request of about so many tokens; the seconds until it may go out."""
        with self._lock:
            now = self._clock()
            waits = [
                self._book("requests", self.rpm, 1, now),
                self._book("tokens", self.tpm, tokens, now),
                self._blocked - now,
            ]
            return max(0.0, *waits)

    def _book(self, what: str, per_minute: float | None, amount: float, now: float) -> float:
        """Seconds to wait for an amount, which is then taken."""
        if not per_minute:
            return 0.0
        due = max(self._due[what], now)
        self._due[what] = due + amount * 60 / per_minute
        burst = max(BURST, 60 / per_minute)
        return self._due[what] - now - burst

    def correct(self, reserved: int, spent: int) -> None:
        """Put the estimate right once it is known how many tokens were spent."""
        with self._lock:
            if self.tpm:
                self._due["tokens"] += (spent - reserved) * 60 / self.tpm
            self._refusals = 0

    def refused(self, retry_after: float | None) -> None:
        """The model asked to be left alone, for some seconds or, by doubling, for a guess."""
        with self._lock:
            if self._clock() < self._blocked and retry_after is None:
                return  # one of several that were under way when the first was refused
            guess = min(2.0**self._refusals, LONGEST_PAUSE) * _jitter.uniform(0.5, 1.0)
            self._refusals += 1
            pause = guess if retry_after is None else retry_after
            self._blocked = max(self._blocked, self._clock() + pause)

    async def turn(self, tokens: int = 0) -> None:
        """Wait until a request may go out."""
        wait = self.reserve(tokens)
        while wait > 0:
            await asyncio.sleep(wait)
            wait = self._blocked - self._clock()


_by_engine: WeakKeyDictionary[Any, Limit] = WeakKeyDictionary()
_by_name: dict[tuple[Any, Any], Limit] = {}


def limit_of(lm: Any) -> Limit:
    """The limit of an LM and of all its copies; without a set rate it only keeps pauses."""
    table, key = _place(lm)
    return table.setdefault(key, Limit())


def set_limit(lm: Any, rpm: float | None = None, tpm: float | None = None) -> None:
    """Give an LM a rate, for all judges of this process that use it or a copy of it."""
    table, key = _place(lm)
    table[key] = Limit(rpm, tpm)


def _place(lm: Any) -> tuple[Any, Any]:
    """Where an LM's limit is kept: with its engine, which copies share, or by model and address."""
    engine = getattr(lm, "engine", None)
    if engine is not None and not isinstance(engine, str):
        try:
            hash(engine)
            return _by_engine, engine
        except TypeError:
            pass
    options = getattr(lm, "kwargs", None) or {}
    base = options.get("api_base") or options.get("base_url")
    return _by_name, (getattr(lm, "model", id(lm)), base)
