"""Settings that survive save, load, nesting and every DSPy optimizer."""

from collections.abc import Mapping
from typing import Any

from dspy.predict.parameter import Parameter


class Settings(Parameter):
    """Plain JSON values of a module, kept as a DSPy parameter.

    DSPy saves the parameters of a program and nothing else, so a window size kept as an ordinary
    attribute would be lost once the reranker sits inside a larger program.
    """

    def __init__(self, **values: Any):
        self.values = dict(values)

    def __getitem__(self, name: str) -> Any:
        return self.values[name]

    def update(self, **values: Any) -> None:
        """Set known values; an unknown name is a ``KeyError``."""
        unknown = sorted(set(values) - set(self.values))
        if unknown:
            raise KeyError(f"unknown setting {unknown[0]!r}; known: {', '.join(self.values)}")
        self.values.update(values)

    def reset(self) -> None:
        """Keep the values: they are configuration, not something learned from demos."""

    def dump_state(self, json_mode: bool = True) -> dict[str, Any]:
        """State as DSPy stores it."""
        return {"values": dict(self.values)}

    def load_state(self, state: Mapping[str, Any], **_: Any) -> None:
        """Take over saved values, so far as this version knows their names."""
        saved = state["values"]
        self.values.update({name: saved[name] for name in self.values if name in saved})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Settings) and self.values == other.values

    __hash__ = None  # pyright: ignore[reportAssignmentType]

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={value!r}" for name, value in self.values.items())
        return f"Settings({inside})"
