"""What can go wrong between a client and a language model's server, one name each.

A fault changes what the server would have sent. ``CATALOGUE`` has one of every sort.

Modelled on what providers and gateways were seen to send: errors with and without Retry-After
(RFC 9110, section 10.2.3), bodies cut short, completions without choices, content or usage,
filters as an error or as a finish reason, reasoning in and beside the answer.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from types import MappingProxyType
from typing import Any, Literal

from .completions import completion, error_body

Ending = Literal["whole", "half", "reset", "endless", "silent"]
"""The body in full, half of it, the connection reset, a body without an end, or nothing at all."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What the server sends for one request.

    Attributes:
        body: A mapping is sent as JSON.
        status: Of the HTTP answer.
        headers: Beside those that every answer has.
        wait: Seconds before the first byte.
        ending: How the answer ends.
    """

    body: Mapping[str, Any] | bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    ending: Ending = "whole"

    @property
    def content(self) -> bytes:
        """The body as it goes out."""
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that goes wrong.

    Args:
        name: For records and test ids.
        change: From what would have been sent to what is.
    """

    name: str
    change: Callable[[Sent], Sent] = field(repr=False)

    def __str__(self) -> str:
        return self.name


def status(code: int, message: str = "the server failed", **headers: str) -> Fault:
    """An error with a status code; underscores in the names of headers are hyphens."""
    sent = Sent(
        error_body(message, "server_error", str(code)),
        code,
        {name.replace("_", "-"): value for name, value in headers.items()},
    )
    return Fault(f"status {code}", lambda _: sent)


def rate_limit(retry_after: float | datetime | str | None = None) -> Fault:
    """Too many requests (429).

    Args:
        retry_after: Seconds, a date (sent as one), the header as it is, or no header.
    """
    if isinstance(retry_after, datetime):
        retry_after = format_datetime(retry_after.astimezone(UTC), usegmt=True)
    headers = {} if retry_after is None else {"Retry-After": f"{retry_after}"}
    sent = Sent(error_body("Rate limit reached", "rate_limit_error"), 429, headers)
    return Fault(f"rate limit, Retry-After {retry_after}", lambda _: sent)


def unauthorized() -> Fault:
    """A key that is wrong (401)."""
    return named("wrong key", status(401, "Incorrect API key provided"))


def forbidden() -> Fault:
    """A key that may not do this (403)."""
    return named("forbidden", status(403, "You are not allowed to sample from this model"))


def not_found() -> Fault:
    """A model that is not there (404)."""
    return named("no such model", status(404, "The model `m` does not exist"))


def context_length() -> Fault:
    """A prompt that is too long (400)."""
    message = "This model's maximum context length is 4096 tokens. However, you requested 9000."
    body = error_body(message, "invalid_request_error", "context_length_exceeded")
    return Fault("prompt too long", lambda _: Sent(body, 400))


def refused_logprobs() -> Fault:
    """Log-probabilities that this model does not give (400)."""
    return named("logprobs refused", status(400, "logprobs is not supported with this model"))


def content_filter(*, as_error: bool = False) -> Fault:
    """The answer withheld: as a finish reason, or as an error (400)."""
    if as_error:
        message = "The response was filtered due to the prompt triggering content management"
        body = error_body(message, "invalid_request_error", "content_filter")
        return Fault("content filter, error", lambda _: Sent(body, 400))
    withheld = completion(None, finish="content_filter")
    return Fault("content filter, finish", lambda sent: replace(sent, body=withheld))


def reset() -> Fault:
    """The connection is reset before anything is sent."""
    return Fault("reset", lambda sent: replace(sent, ending="reset"))


def half_body() -> Fault:
    """The connection is closed after half of the body."""
    return Fault("half a body", lambda sent: replace(sent, ending="half"))


def endless_body() -> Fault:
    """A body that never ends, sent as fast as it is read."""
    return Fault("endless body", lambda sent: replace(sent, ending="endless"))


def hang() -> Fault:
    """The request is taken and never answered."""
    return Fault("no answer", lambda sent: replace(sent, ending="silent"))


def slow(seconds: float) -> Fault:
    """The first byte comes late."""
    return Fault(f"{seconds:g} s late", lambda sent: replace(sent, wait=sent.wait + seconds))


def raw(body: bytes | str, status: int = 200, headers: Mapping[str, str] | None = None) -> Fault:
    """Any bytes with any status."""
    content = body.encode() if isinstance(body, str) else body
    return Fault("raw", lambda _: Sent(content, status, headers or {}))


def invalid_json() -> Fault:
    """A whole body that is not JSON."""
    return named("invalid JSON", raw('{"id": "x", "choices": [{"index": 0,, ]}'))


def html() -> Fault:
    """The page of a gateway, sent as success."""
    page = "<html><body><h1>502 Bad Gateway</h1></body></html>"
    return named("gateway's page", raw(page, headers={"Content-Type": "text/html"}))


def error_as_success() -> Fault:
    """An error's body with status 200."""
    return Fault("error as success", lambda _: Sent(error_body("overloaded", "server_error")))


def empty_choices() -> Fault:
    """A completion without a choice."""
    return in_body("no choices", lambda body: {**body, "choices": []})


def without_usage() -> Fault:
    """A completion that does not say how many tokens it took."""
    return in_body("no usage", lambda body: {k: v for k, v in body.items() if k != "usage"})


def renamed(model: str = "another-model-2026") -> Fault:
    """The answer of a model other than the one asked."""
    return in_body("another model", lambda body: {**body, "model": model})


def says(text: str | None, *, finish: str | None = "stop", **message: Any) -> Fault:
    """Any completion; further keywords are fields of its message."""

    def change(choice: dict[str, Any]) -> dict[str, Any]:
        told = {**choice["message"], "content": text, **message}
        return {**choice, "message": told, "finish_reason": finish, "logprobs": None}

    return in_choice("says", change)


def empty_answer() -> Fault:
    """A completion whose content is null, and which calls itself finished."""
    return named("null content", says(None))


def prose() -> Fault:
    """Words, and digits that name nothing."""
    return named("prose", says("I would need 2 or 3 more details to decide that."))


def finished(reason: str | None) -> Fault:
    """The right answer with another finish reason."""
    return in_choice(f"finish {reason}", lambda choice: {**choice, "finish_reason": reason})


def spent_on_reasoning() -> Fault:
    """All tokens went into reasoning: no content, cut at the limit."""
    fault = says("", finish="length", reasoning_content="The first passage looks promising, but")
    return named("only reasoning", fault)


def reasoning(*, inline: bool) -> Fault:
    """The right answer after reasoning, which names every label; in the content or beside it."""
    thought = "Is it A or B, [1] or [2]? B was 3 at first. Perhaps A."

    def change(choice: dict[str, Any]) -> dict[str, Any]:
        said = choice["message"]["content"]
        told = (
            {"content": f"<think>\n{thought}\n</think>\n\n{said}"}
            if inline
            else {"reasoning_content": thought, "reasoning": thought}
        )
        kept = None if inline else choice["logprobs"]
        return {**choice, "message": {**choice["message"], **told}, "logprobs": kept}

    return in_choice("reasoning inline" if inline else "reasoning beside", change)


def without_logprobs() -> Fault:
    """The right answer without the log-probabilities that were asked for."""
    return in_choice("no logprobs", lambda choice: {**choice, "logprobs": None})


def broken_logprobs(given: Any = None) -> Fault:
    """The right answer with log-probabilities in a shape that means nothing."""
    broken = {"content": [{"token": 7, "logprob": "high", "top_logprobs": "A"}, None]}
    shape = broken if given is None else given
    return in_choice("broken logprobs", lambda choice: {**choice, "logprobs": shape})


def in_body(name: str, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> Fault:
    """A fault that changes the completion's body."""

    def changed(sent: Sent) -> Sent:
        body = sent.body if isinstance(sent.body, Mapping) else json.loads(sent.body)
        return replace(sent, body=change(dict(body)))

    return Fault(name, changed)


def in_choice(name: str, change: Callable[[dict[str, Any]], dict[str, Any]]) -> Fault:
    """A fault that changes the completion's one choice."""
    return in_body(name, lambda body: {**body, "choices": [change(c) for c in body["choices"]]})


def named(name: str, fault: Fault) -> Fault:
    """The same fault under another name."""
    return Fault(name, fault.change)


def _catalogue(*faults: Fault) -> Mapping[str, Fault]:
    return MappingProxyType({fault.name: fault for fault in faults})


LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)

CATALOGUE = _catalogue(
    rate_limit(), rate_limit(0), named("rate limit, dated", rate_limit(LONG_AGO)),
    named("rate limit, nonsense", rate_limit("soon")),
    status(500), status(502), status(503, Retry_After="0"), status(504), status(529),
    unauthorized(), forbidden(), not_found(), context_length(), refused_logprobs(),
    content_filter(), content_filter(as_error=True),
    reset(), half_body(), endless_body(), hang(), named("late", slow(1.0)),
    invalid_json(), html(), error_as_success(), empty_choices(), without_usage(), renamed(),
    empty_answer(), prose(), finished("length"), finished(None), finished("tool_calls"),
    spent_on_reasoning(), reasoning(inline=True), reasoning(inline=False),
    without_logprobs(), broken_logprobs(),
)  # fmt: skip
"""One fault of every sort, by name."""
