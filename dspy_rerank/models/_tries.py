"""Whom to ask after a failure: the same group again, which has other deployments, then others.

LiteLLM's Router could do that itself, but then nobody would know what has failed, and tries
would escape the limits of a ranking.
"""

import random
from collections.abc import Generator
from typing import NamedTuple

from dspy import lm15

from dspy_rerank.models._config import Config

RETRIES = 3
"""Further tries within a group where the file does not say."""
LONGEST_WAIT = 20.0
NONE_LEFT = "No deployments available"
"""What LiteLLM's Router says when all of a group's deployments have failed lately."""
_jitter = random.Random()


class Try(NamedTuple):
    """One attempt: which group to ask, after how many seconds, and how many others have failed."""

    group: str
    wait: float
    moved: int


def tries(config: Config, alias: str) -> Generator[Try, Exception, Exception]:
    """Attempts at an answer; sent the error of the last, returns the one to raise in the end.

    A group is asked again while its failures may pass, at once where it has another deployment
    (the one that failed is left alone for a while). Then come its fallbacks, those for prompts
    that are too long or refused by a content policy where the file has such, in order. No group
    is tried twice over. A wrong key moves on, too; so does a request that a group refuses. The
    error in the end is the last that a deployment gave, where one was asked.
    """
    waiting, seen, error = [alias], {alias}, Exception("nobody was asked")
    for moved, name in enumerate(waiting):
        again = len(config.groups[name]) > 1
        for number in range((RETRIES if config.retries is None else config.retries) + 1):
            latest = yield Try(name, _wait(config, number, error, again), moved)
            if NONE_LEFT not in str(latest) or number == moved == 0:
                error = latest  # that nobody is left does not say why
            if not _may_pass(latest, again):
                break
        for target in _fallbacks(config, name, error):
            if target not in seen:
                seen.add(target)
                waiting.append(target)
    return error


def _may_pass(error: Exception, others: bool) -> bool:
    if NONE_LEFT in str(error):
        return False
    if isinstance(error, lm15.AuthError | lm15.BillingError | lm15.UnsupportedModelError):
        return others
    return not isinstance(error, lm15.InvalidRequestError | lm15.ContextLengthError)


def _wait(config: Config, number: int, error: Exception, others: bool) -> float:
    """Seconds before a try: none before the first, little where another deployment is there."""
    if number == 0:
        return 0.0
    if others:
        return config.retry_after
    asked = getattr(error, "retry_after", None)
    guess = _jitter.uniform(0.1, 0.5 * 2.0**number)
    return min(LONGEST_WAIT, max(config.retry_after, guess if asked is None else asked))


def _fallbacks(config: Config, name: str, error: Exception) -> tuple[str, ...]:
    for kind, applies in (
        ("context_window_fallbacks", isinstance(error, lm15.ContextLengthError)),
        ("content_policy_fallbacks", "content policy" in str(error).lower()),
    ):
        found = config.moves.get(kind, {}).get(name, ())
        if applies and found:
            return found
    return config.fallbacks.get(name, ())
