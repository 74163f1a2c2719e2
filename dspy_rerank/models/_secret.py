"""Keys that are kept out of prints, copies on disk and messages."""

import os
from collections.abc import Mapping
from typing import Any

from dspy_rerank.errors import InputError

FROM_ENVIRONMENT = "os.environ/"


class Secret:
    """A key, or the environment variable that holds it (``os.environ/NAME``, as LiteLLM has it).

    Printing, pickling and saving show the variable's name at most. A copy that was saved can be
    used again only where the variable is set.
    """

    def __init__(self, value: str | None):
        self._value = value

    @property
    def reference(self) -> str | None:
        """What may be written down: the variable, or nothing."""
        value = self._value
        return value if value is not None and value.startswith(FROM_ENVIRONMENT) else None

    def reveal(self) -> str:
        """The key itself; empty when there is none.

        Raises:
            InputError: The environment variable is not set.
        """
        return resolved(self._value) or ""

    def __reduce__(self) -> Any:
        return (Secret, (self.reference,))

    def __repr__(self) -> str:
        return f"Secret({self.reference or ('***' if self._value else None)!r})"


def resolved(value: Any) -> Any:
    """A value of a configuration with ``os.environ/NAME`` looked up.

    Raises:
        InputError: The variable is not set.
    """
    if not isinstance(value, str) or not value.startswith(FROM_ENVIRONMENT):
        return value
    name = value.removeprefix(FROM_ENVIRONMENT)
    found = os.environ.get(name)
    if found is None:
        raise InputError(f"the environment variable {name} is not set; the configuration needs it")
    return found


def resolved_all(given: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters with every ``os.environ/NAME`` looked up.

    Raises:
        InputError: A variable is not set.
    """
    return {name: resolved(value) for name, value in given.items()}
