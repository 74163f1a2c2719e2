"""Keys are blotted out of what is shown: a provider may repeat the key that it refuses."""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

KEYLIKE = ("key", "token", "secret", "password", "authorization", "credential")
SHORTEST = 6
"""Shorter values are no keys, and would blot out half of every message."""


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret blotted out."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


def secrets_of(lm: Any) -> list[str]:
    """Every value among an LM's parameters that may be a key, and its provider's own variable."""
    given = dict(getattr(lm, "kwargs", None) or {})
    provider = str(getattr(lm, "model", "")).partition("/")[0]
    found = [*_values(given), os.environ.get(f"{provider.upper()}_API_KEY") or ""]
    return [value for value in found if len(value) >= SHORTEST]


def _values(given: Mapping[str, Any]) -> Iterator[str]:
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from _values(value)
        elif isinstance(value, str) and any(word in name.lower() for word in KEYLIKE):
            yield value.removeprefix("Bearer ")


def blot(error: Exception, lm: Any) -> bool:
    """Blot an LM's keys out of an error, in place; whether any was there.

    What led to such an error holds the key, too, so it is to be raised ``from None``.
    """
    secrets = secrets_of(lm)
    said = [
        str(error),
        *map(str, error.args),
        *(str(e) for e in (error.__cause__, error.__context__)),
    ]
    if not any(secret in text for secret in secrets for text in said):
        return False
    error.args = tuple(without(a, secrets) if isinstance(a, str) else a for a in error.args)
    for name, value in list(vars(error).items()):
        if isinstance(value, str):
            setattr(error, name, without(value, secrets))
    return True
