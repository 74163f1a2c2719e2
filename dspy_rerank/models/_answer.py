"""A chat completion as DSPy reads it, quickly where it is a plain text."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

from dspy import lm15

_ENDS = frozenset({"stop", "length"})


def read_answer(body: Mapping[str, Any], model: str) -> lm15.Response:
    """The first choice of a chat completion; the body itself is not kept.

    Raises:
        lm15.ServerError: It is no chat completion.
    """
    try:
        return _text(body, model) or _anything(body, model)
    except lm15.LM15Error:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        why = f"the server's answer is no chat completion: {error}"
        raise lm15.ServerError(why, provider="direct") from None


def _anything(body: Mapping[str, Any], model: str) -> lm15.Response:
    """By DSPy's own reader, which knows tools, reasoning and refusals."""
    answer = lm15.response_from_openai_chat({**body, "model": body.get("model") or model})
    return replace(answer, provider_data=None)


def _text(body: Mapping[str, Any], model: str) -> lm15.Response | None:
    """A completion of nothing but text, the usual case; ``None`` for any other."""
    choice = body["choices"][0]
    message = choice["message"]
    text, end = message.get("content"), choice.get("finish_reason")
    more = [name for name, value in message.items() if value and name not in ("role", "content")]
    if not text or not isinstance(text, str) or more or end not in _ENDS or body.get("error"):
        return None
    return lm15.Response(
        id=body.get("id"),
        model=body.get("model") or model,
        message=lm15.Message.assistant([lm15.TextPart(text)]),
        finish_reason=end,
        usage=_usage(body.get("usage") or {}),
        logprobs=_logprobs(choice.get("logprobs")),
    )


def _usage(given: Mapping[str, Any]) -> lm15.Usage:
    details = given.get("prompt_tokens_details") or {}
    thought = given.get("completion_tokens_details") or {}
    return lm15.Usage(
        input_tokens=given.get("prompt_tokens"),
        output_tokens=given.get("completion_tokens"),
        total_tokens=given.get("total_tokens"),
        cache_read_tokens=details.get("cached_tokens"),
        reasoning_tokens=thought.get("reasoning_tokens"),
    )


def _logprobs(given: Any) -> tuple[lm15.TokenLogprob, ...] | None:
    """Log-probabilities; without bytes, which nobody reads, and ``None`` where any is broken."""
    content = given.get("content") if isinstance(given, Mapping) else None
    if not isinstance(content, list) or not content:
        return None
    try:
        return tuple(_token(entry) for entry in content)
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _token(entry: Any) -> lm15.TokenLogprob:
    top = tuple(
        lm15.TopLogprob(cast("str", other["token"]), float(other["logprob"]))
        for other in entry.get("top_logprobs") or ()
    )
    return lm15.TokenLogprob(entry["token"], float(entry["logprob"]), top=top)
