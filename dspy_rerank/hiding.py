"""Keys are blotted out of what is shown: a provider may repeat the key that it refuses."""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from .errors import InputError

KEYLIKE = ("key", "token", "secret", "password", "authorization", "credential")
VARIABLES = ("_KEY", "_TOKEN", "_SECRET")
"""How environment variables end from which providers' clients take keys."""
SHORTEST = 6
"""Shorter values are no keys, and would blot out half of every message."""


def without(text: str, secrets: Iterable[str]) -> str:
    """The text with every secret blotted out."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, "***")
    return text


def secrets_of(lm: Any) -> list[str]:
    """All that may be a key: of an LM's parameters, its engine, and the environment."""
    found = list(keys_in(getattr(lm, "kwargs", None) or {}))
    held: Any = getattr(getattr(lm, "engine", None), "secrets", list)
    with suppress(InputError):  # a variable that is not set
        found += held()
    found += [v for name, v in os.environ.items() if name.upper().endswith(VARIABLES)]
    return [value for value in found if len(value) >= SHORTEST]


def keys_in(given: Mapping[str, Any]) -> Iterator[str]:
    """The values whose names are those of keys, at any depth."""
    for name, value in given.items():
        if isinstance(value, Mapping):
            yield from keys_in(value)
        elif isinstance(value, str) and any(word in name.lower() for word in KEYLIKE):
            yield value.removeprefix("Bearer ")


class Blotting(logging.Filter):
    """Blots secrets out of what a library logs.

    Args:
        secrets: Gives them when something is logged.
    """

    def __init__(self, secrets: Callable[[], Iterable[str]]):
        super().__init__()
        self._secrets = secrets

    def filter(self, record: logging.LogRecord) -> bool:
        """Every record passes, without secrets in its message and its traceback."""
        secrets = [value for value in self._secrets() if len(value) >= SHORTEST]
        said = record.getMessage()
        if any(secret in said for secret in secrets):
            record.msg, record.args = without(said, secrets), ()
        if record.exc_info:
            record.exc_text = without(logging.Formatter().formatException(record.exc_info), secrets)
            record.exc_info = None
        return True


def blot(error: BaseException, lm: Any) -> bool:
    """Blot an LM's keys out of an error and all that it comes from, in place; whether any were."""
    secrets, linked = secrets_of(lm), _linked(error)
    if not any(_shows(each, secrets) for each in linked):
        return False
    for each in linked:
        each.args = tuple(_blotted(value, secrets) for value in each.args)
        for name, value in list(getattr(each, "__dict__", {}).items()):
            setattr(each, name, _blotted(value, secrets))
    for each in linked:  # what cannot be blotted out is cut off
        for name in ("__cause__", "__context__"):
            if _shows(getattr(each, name), secrets):
                setattr(each, name, None)
    return True


def _linked(error: BaseException) -> list[BaseException]:
    """An error and those that led to it, each once."""
    found = [error]
    for each in found:
        led = (each.__cause__, each.__context__, *getattr(each, "exceptions", ()))
        found += [e for e in led if e is not None and not any(e is known for known in found)]
    return found


def _shows(error: BaseException | None, secrets: Iterable[str]) -> bool:
    said = "" if error is None else f"{error}\n{error!r}\n{getattr(error, '__dict__', '')}"
    return any(secret in said for secret in secrets)


def _blotted(value: Any, secrets: list[str]) -> Any:
    """The value without secrets; an object, such as a provider's whole answer, becomes its text."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {name: _blotted(inner, secrets) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_blotted(inner, secrets) for inner in value]
    return without(str(value), secrets)
