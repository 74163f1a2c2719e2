"""A request as the server saw it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

SECRET = ("authorization", "api-key", "x-api-key", "cookie", "proxy-authorization")
"""Headers that are never kept."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, without its keys.

    Attributes:
        number: From 0, in the order of arrival.
        path: Such as ``/v1/chat/completions``.
        headers: By lower-case name.
        body: The JSON that came; empty where there was none.
        fault: The name of the fault that it met, or an empty string.
    """

    number: int
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)
    fault: str = ""

    @property
    def model(self) -> str:
        """The model that was asked for."""
        return str(self.body.get("model") or "served")

    @property
    def prompt(self) -> str:
        """All messages as one text."""
        messages = self.body.get("messages") or ()
        return "\n".join(_text(message.get("content")) for message in messages)


def _text(content: Any) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("text") or "") for part in content)
    return str(content or "")
