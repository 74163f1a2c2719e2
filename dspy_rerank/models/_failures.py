"""What went wrong at a server, in DSPy's terms, and never with a key in the message."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from dspy import lm15

from dspy_rerank.hiding import without as without

_BY_STATUS: Mapping[int, type[lm15.ProviderError]] = {
    401: lm15.AuthError,
    402: lm15.BillingError,
    403: lm15.AuthError,
    404: lm15.UnsupportedModelError,
    408: lm15.TimeoutError,
    429: lm15.RateLimitError,
    504: lm15.TimeoutError,
}
_TOO_LONG = re.compile(
    r"context[ _]?(?:length|window|size)|maximum context|too many tokens"
    r"|(?:prompt|input) is too long|input token count",
    re.I,
)
_LONGEST = 500


def failure(
    status: int, message: str, *, provider: str, retry_after: float | None = None
) -> lm15.LM15Error:
    """The error for a status code.

    Args:
        status: Of the HTTP answer.
        message: What the server said, already :func:`without` its keys.
        provider: Whom to name.
        retry_after: Seconds that the server asked us to wait.
    """
    kind = _BY_STATUS.get(status)
    if kind is None and _TOO_LONG.search(message) and status < 500:
        kind = lm15.ContextLengthError
    if kind is None:
        kind = lm15.InvalidRequestError if 400 <= status < 500 else lm15.ServerError
    said = f"{provider} answered {status}: {message[:_LONGEST] or 'nothing'}"
    return kind(said, provider=provider, status=status, retry_after=retry_after)


def message_of(body: Any, text: str) -> str:
    """The message in an error body of any of the usual shapes, else its text."""
    error = body.get("error", body) if isinstance(body, Mapping) else text
    if isinstance(error, Mapping):
        error = error.get("message") or error.get("detail") or text
    return " ".join(str(error).split())


def seconds(value: Any) -> float | None:
    """A Retry-After header in seconds, 0 for a date that has passed; ``None`` for nonsense."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = _until(value)
    return number if 0 <= number < 3600 else None


def _until(value: Any) -> float:
    """Seconds until an HTTP date, at least 0; -1 where it is none."""
    try:
        date = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return -1.0
    return max(0.0, (date.replace(tzinfo=date.tzinfo or UTC) - datetime.now(UTC)).total_seconds())
