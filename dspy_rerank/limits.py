"""How fast a language model may be asked: requests and tokens a minute, and pauses it asks for.

One limit an LM, shared by all rankings and event loops of the process. A refusal (429) holds back
every further question to that LM, not only the one refused.
"""

import asyncio
import math
import random
import threading
import time
from collections.abc import AsyncIterator, Callable, MutableMapping
from contextlib import asynccontextmanager
from typing import Any, Generic, Protocol, TypeVar
from weakref import WeakKeyDictionary

from .line import Line

BURST = 10.0
"""Seconds' worth of requests that may go out at once after a pause."""
LONGEST_PAUSE = 60.0
"""Seconds; who asks for more is asked again then, and rankings give up by their own limits."""

_jitter = random.Random()


class Pool(Protocol):
    """Rates that several processes draw on together."""

    async def take(self, tokens: int) -> float:
        """Book one request of about so many tokens; the seconds until it may go out."""
        ...

    def correct(self, tokens: int) -> None:
        """Note how many tokens more an answer took than were booked."""
        ...

    def refused(self, retry_after: float | None) -> None:
        """Note that the model asked to be left alone."""
        ...


class Limit:
    """A token bucket for requests, one for tokens, places, and a pause after refusals.

    Places are how many requests may be under way. There are as many as set, or any number; a
    refusal halves those that were taken, and answers bring them back one after the other
    (additive increase, multiplicative decrease: Chiu and Jain 1989).

    Args:
        rpm: Requests a minute; ``None`` is any number.
        tpm: Prompt and completion tokens a minute.
        at_once: Requests under way.
        clock: Seconds that only go forward.

    Attributes:
        pool: Where requests and tokens are booked, too; ``None`` where this process is alone.
    """

    def __init__(
        self,
        rpm: float | None = None,
        tpm: float | None = None,
        *,
        at_once: int | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):
        self.rpm, self.tpm, self.at_once = rpm, tpm, at_once
        self.pool: Pool | None = None
        self._clock = clock
        self._lock = threading.Lock()
        self._line = Line()
        self._due = {"requests": 0.0, "tokens": 0.0}
        self._blocked, self._refusals = 0.0, 0
        self._inside, self._places, self._before = 0, math.inf, 0

    def __deepcopy__(self, memo: Any) -> "Limit":
        return self

    def __reduce__(self) -> Any:
        return (Limit, (self.rpm, self.tpm))

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
        """An answer came: put the estimate right, and give a place back that refusals took."""
        if self.pool is not None:
            self.pool.correct(spent - reserved)
        with self._lock:
            if self.tpm:
                self._due["tokens"] += (spent - reserved) * 60 / self.tpm
            self._refusals = 0
            self._places += 1 / self._places
            if self._places > 2 * self._before:
                self._places = math.inf
        self._serve()

    def refused(self, retry_after: float | None) -> None:
        """The model asked to be left alone, for some seconds or, by doubling, for a guess."""
        if self.pool is not None:
            self.pool.refused(retry_after)
        with self._lock:
            now = self._clock()
            if now >= self._blocked:  # else one of several that were under way when it began
                self._before = max(1, self._inside)
                self._places = max(1.0, min(self._places, self._before) / 2)
                self._refusals += 1
            elif retry_after is None:
                return
            guess = min(2.0 ** (self._refusals - 1), LONGEST_PAUSE) * _jitter.uniform(0.5, 1.0)
            pause = guess if retry_after is None else min(retry_after, LONGEST_PAUSE)
            self._blocked = max(self._blocked, now + pause)

    def enter(self) -> bool:
        """Take a place, if there is one."""
        with self._lock:
            most = self._places if self.at_once is None else min(self._places, self.at_once)
            free = self._inside < max(1, int(most) if most < math.inf else self._inside + 1)
            self._inside += free
            return free

    def leave(self) -> None:
        """Give the place back, to the first who waits for one."""
        with self._lock:
            self._inside -= 1
        self._serve()

    def _serve(self) -> None:
        while len(self._line) and self.enter():
            if not self._line.hand(self.leave):
                with self._lock:
                    self._inside -= 1

    @asynccontextmanager
    async def turn(self, tokens: int = 0) -> AsyncIterator[None]:
        """Wait for a place and until a request may go out; holds the place inside."""
        if len(self._line) or not self.enter():
            await self._line.wait(self._serve, self.leave)
        try:
            wait = self.reserve(tokens)
            if self.pool is not None:
                wait = max(wait, await self.pool.take(tokens))
            while wait > 0:
                await asyncio.sleep(wait)
                wait = self._blocked - self._clock()
            yield
        finally:
            self.leave()


T = TypeVar("T")


class Shared(Generic[T]):
    """Something that an LM and all its copies have in common, in this process.

    Kept with the LM's engine, which copies share, or by model and address.
    """

    def __init__(self) -> None:
        self._by_engine: WeakKeyDictionary[Any, T] = WeakKeyDictionary()
        self._by_name: dict[Any, T] = {}

    def get(self, lm: Any) -> T | None:
        """What was put, if anything was."""
        table, key = self._place(lm)
        return table.get(key)

    def put(self, lm: Any, value: T) -> None:
        """Keep something for an LM and its copies."""
        table, key = self._place(lm)
        table[key] = value

    def setdefault(self, lm: Any, value: T) -> T:
        """What was put before, else the value, which is kept."""
        table, key = self._place(lm)
        return table.setdefault(key, value)

    def _place(self, lm: Any) -> tuple[MutableMapping[Any, T], Any]:
        engine = getattr(lm, "engine", None)
        if engine is not None and not isinstance(engine, str):
            try:
                hash(engine)
                return self._by_engine, engine
            except TypeError:
                pass
        options = getattr(lm, "kwargs", None) or {}
        base = options.get("api_base") or options.get("base_url")
        return self._by_name, (getattr(lm, "model", id(lm)), base)


_limits: Shared[Limit] = Shared()


def limit_of(lm: Any) -> Limit:
    """The limit of an LM and of all its copies; without a set rate it only keeps pauses."""
    for what in (lm, getattr(lm, "engine", None)):
        own = getattr(what, "limit", None)
        if isinstance(own, Limit):
            return own
    return _limits.get(lm) or _limits.setdefault(lm, Limit())


def paces_itself(lm: Any) -> bool:
    """Whether an LM or its engine waits for its turn by itself, however it is called."""
    return any(getattr(what, "paced", False) for what in (lm, getattr(lm, "engine", None)))


def set_limit(
    lm: Any,
    rpm: float | None = None,
    tpm: float | None = None,
    *,
    at_once: int | None = None,
) -> Limit:
    """Give an LM a rate, for everything in this process that uses it or a copy of it."""
    limit = limit_of(lm)
    limit.rpm, limit.tpm, limit.at_once = rpm, tpm, at_once
    return limit
