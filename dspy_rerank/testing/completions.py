"""Bodies of chat completions, as an OpenAI-compatible server sends them."""

import math
from collections.abc import Mapping
from typing import Any


def completion(
    text: str | None,
    *,
    odds: Mapping[str, float] | None = None,
    finish: str | None = "stop",
    model: str = "served",
    prompt_tokens: int = 7,
    completion_tokens: int = 1,
    **message: Any,
) -> dict[str, Any]:
    """The body of a chat completion with one choice.

    Args:
        text: What the model says; ``None`` is a message without content.
        odds: Probabilities of the answer's alternatives; the answer is one token then, and the
            completion carries log-probabilities.
        finish: The finish reason.
        model: The name of the model that answers.
        prompt_tokens: As counted by the server.
        completion_tokens: As counted by the server.
        message: Further fields of the message, such as ``reasoning_content``.
    """
    choice: dict[str, Any] = {
        "index": 0,
        "finish_reason": finish,
        "message": {"role": "assistant", "content": text, **message},
        "logprobs": logprobs(text, odds) if odds and text else None,
    }
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    return {"id": "chatcmpl-0", "object": "chat.completion", "created": 1, "model": model,
            "choices": [choice], "usage": usage}  # fmt: skip


def logprobs(text: str, odds: Mapping[str, float]) -> dict[str, Any]:
    """Log-probabilities of an answer of one token, with its alternatives; best first."""
    listed = sorted(odds.items(), key=lambda entry: -entry[1])
    top = [_token(token, probability) for token, probability in listed]
    return {"content": [{**_token(text, odds.get(text, 1e-9)), "top_logprobs": top}]}


def _token(token: str, probability: float) -> dict[str, Any]:
    return {"token": token, "logprob": math.log(probability), "bytes": list(token.encode())}


def error_body(message: str, kind: str, code: str | None = None) -> dict[str, Any]:
    """The body of an error."""
    return {"error": {"message": message, "type": kind, "code": code, "param": None}}
