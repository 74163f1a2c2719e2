"""What the sorting modules share: the kinds of judges they take, and a check."""

from typing import Any

from ..errors import InputError

COMPARING = ("pairwise", "setwise", "listwise")
GROUPING = ("listwise", "setwise")


def at_least(name: str, value: Any, least: int) -> None:
    """Complain unless a setting is a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise InputError(f"{name}={value!r}; expected a whole number of at least {least}")
