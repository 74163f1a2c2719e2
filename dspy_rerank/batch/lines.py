"""The lines of batch files, in OpenAI's format: requests out, answers in."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from ..models._failures import message_of
from ..prices import Price
from .provider import ENDPOINT
from .rows import Answered, Request

FRAME = 160
"""Bytes of a line beside its body, at most."""
LASTING = frozenset({400, 404, 413, 422})
"""Refusals of a request that will be the same the next time."""


def size(request: Request) -> int:
    """Bytes of a request's line, at most."""
    return len(request.body.encode()) + FRAME


def write(path: Path, requests: Iterable[Request]) -> None:
    """Write a file of requests."""
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        for request in requests:
            head = {"custom_id": request.key, "method": "POST", "url": ENDPOINT}
            file.write(f'{json.dumps(head)[:-1]}, "body": {request.body}}}\n')


def read(path: Path, price: Price | None) -> Iterator[Answered]:
    """Answers from a file; a line that cannot be read answers nothing, like one that is missing.

    Args:
        path: As it came from the provider.
        price: To say what answers cost.
    """
    with open(path, "rb") as file:
        for line in file:
            try:
                content = orjson.loads(line)
            except orjson.JSONDecodeError:
                continue
            key = content.get("custom_id") if isinstance(content, dict) else None
            if isinstance(key, str):
                yield _answered(key, content, price)


def _answered(key: str, line: Mapping[str, Any], price: Price | None) -> Answered:
    response: Any = line.get("response") or {}
    status: Any = response.get("status_code")
    body: Any = response.get("body")
    if status == 200 and _complete(body):
        used: Any = body.get("usage") or {}
        read, written = (int(used.get(n) or 0) for n in ("prompt_tokens", "completion_tokens"))
        cost = None if price is None else price.of(read, written)
        return Answered(key, {"status": 200, "body": body}, read, written, cost)
    said = message_of(line.get("error") or body, "no completion came back")
    return Answered(key, {"status": status if _error(status) else 500, "message": said})


def _complete(body: Any) -> bool:
    choices = body.get("choices") if isinstance(body, Mapping) else None
    first = choices[0] if isinstance(choices, list) and choices else None
    return isinstance(first, Mapping) and isinstance(first.get("message"), Mapping)


def _error(status: Any) -> bool:
    return isinstance(status, int) and status >= 400
