"""How a ranking is run: concurrency, retries, limits and what to do on failure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

from .errors import InputError

OnError = Literal["original", "raise"]


@dataclass(frozen=True)
class Options:
    """Settings of every sorting module; each may also be given with a single call.

    Attributes:
        concurrency: Questions in flight at once.
        retries: How often a question whose answer cannot be read is asked again, visibly.
        error_retries: How often a call that failed for a passing reason is tried again.
        on_error: When calls keep failing: ``original`` returns the incoming order, marked as
            degraded; ``raise`` raises :class:`dspy_rerank.errors.ModelError`.
        max_calls: Attempts at a call, of which the ranking makes no more: retries, re-asks and
            the tries and fallbacks of a group of deployments included.
        max_tokens: Prompt and completion tokens, of which it takes no more, calls in flight
            included: the most that a call can take is held before it goes out. Prompts are
            estimated on the safe side; where a provider counts more, later estimates are raised
            by as much. Answers that neither judge nor LM limit (``max_tokens`` there) are limited
            to 2,048 tokens, less where less is left; tokens that a model thinks beside its
            answer's limit can exceed it. A call whose outcome is unknown counts as its worst.
        max_cost: US dollars, of which it spends no more, by the same means. Needs a known price.
        deadline: Seconds after which it stops asking; calls in flight are abandoned.
        max_passage_tokens: Longer passages are cut, which the ranking says; ``None`` never cuts.
        seed: Of every permutation that a judge or sorter draws.
        confidence_threshold: In [0, 1]: documents whose confidence is known and lower are flagged
            as ``low_confidence``; none is dropped or moved. ``None`` flags nothing.
    """

    concurrency: int = 8
    retries: int = 1
    error_retries: int = 3
    on_error: OnError = "original"
    max_calls: int | None = None
    max_tokens: int | None = None
    max_cost: float | None = None
    deadline: float | None = None
    max_passage_tokens: int | None = 1024
    seed: int = 0
    confidence_threshold: float | None = None

    def __post_init__(self) -> None:
        at_least("concurrency", self.concurrency, 1)
        for name in ("retries", "error_retries"):
            at_least(name, getattr(self, name), 0)
        if not isinstance(self.seed, int):
            raise InputError(f"seed={self.seed!r}; expected a whole number")
        for name in ("max_calls", "max_tokens", "max_cost", "deadline"):
            if getattr(self, name) is not None:
                _at_least(name, getattr(self, name), 0)
        if self.max_passage_tokens is not None:
            at_least("max_passage_tokens", self.max_passage_tokens, 1)
        check_share("confidence_threshold", self.confidence_threshold)
        if self.on_error not in ("original", "raise"):
            raise InputError(f"on_error={self.on_error!r}; expected 'original' or 'raise'")

    @property
    def late(self) -> str:
        """Why a ranking has stopped at its deadline, which is said with the figures that count."""
        seconds = self.deadline or 0.0
        said = f"{seconds:.3g}" if seconds < 1 else f"{round(seconds, 2):.9g}"
        return f"deadline={said}s was reached"


MOST = 1000
"""Passes and the like: more than anybody means, and few enough to plan before a limit is met."""


def at_least(name: str, value: Any, least: int, most: int | None = None) -> None:
    """Complain unless a setting is a whole number of at least ``least``, and at most ``most``."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < least or (most is not None and value > most):
        upto = "" if most is None else f" and at most {most}"
        raise InputError(f"{name}={value!r}; expected a whole number of at least {least}{upto}")


def check_share(name: str, value: Any) -> None:
    """Complain unless a setting is ``None`` or a number in [0, 1]."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 <= value <= 1):
        raise InputError(f"{name}={value!r}; expected a number from 0 to 1, or None")


def _at_least(name: str, value: Any, least: int) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not value >= least:
        raise InputError(f"{name}={value!r}; expected a number of at least {least}")


NAMES = tuple(field.name for field in fields(Options))


def split_options(given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The options among keyword arguments, and the rest."""
    own = {name: value for name, value in given.items() if name in NAMES}
    return own, {name: value for name, value in given.items() if name not in NAMES}


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """All options as JSON values, defaults filled in.

    Raises:
        InputError: A name is unknown or a value is out of range.
    """
    own, rest = split_options(given)
    if rest:
        raise InputError(f"unknown option {next(iter(rest))!r}; known: {', '.join(NAMES)}")
    return asdict(Options(**own))
