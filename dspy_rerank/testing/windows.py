"""Servers whose context is small, and say so as real ones do."""

from collections.abc import Callable

from ..reading.labels import estimate_tokens
from .completions import error_body
from .faults import Sent
from .requests import Asked
from .server import Said

STATED = "This model's maximum context length is {limit} tokens. However, you requested {came}."
SILENT = "Input is too long for requested model."


def limited(
    answer: Callable[[Asked], Said],
    tokens: int,
    *,
    count: Callable[[str], int] = estimate_tokens,
    message: str = STATED,
) -> Callable[[Asked], Said]:
    """What a server says that refuses longer prompts (400, ``context_length_exceeded``).

    Args:
        answer: What it says to all others.
        tokens: The longest prompt that it takes.
        count: Its tokenizer.
        message: Of the refusal; ``{limit}`` and ``{came}`` are filled in.
    """

    def said(asked: Asked) -> Said:
        came = count(asked.prompt)
        if came <= tokens:
            return answer(asked)
        told = message.format(limit=tokens, came=came)
        return Sent(error_body(told, "invalid_request_error", "context_length_exceeded"), 400)

    return said
