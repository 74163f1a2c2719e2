"""The programs that can be asked for by name."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dspy

from ..errors import InputError
from ..sorters import Reranker
from .refusals import RefusedError

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@-]{0,99}")


@dataclass(frozen=True, slots=True)
class Program:
    """A reranker under a name.

    Attributes:
        name: Letters, digits and ``._:@-``; requests give it as ``model``.
        reranker: The program.
        lm: The language model for judges that have none of their own; may be ``None``.
    """

    name: str
    reranker: Reranker
    lm: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        if not NAME.fullmatch(self.name):
            raise InputError(
                f"a program cannot be called {self.name!r}: expected up to 100 letters, digits and "
                "._:@-, beginning with a letter or digit; name it with --program NAME=FILE"
            )

    @property
    def model(self) -> str | None:
        """The name of the language model that answers, where there is one."""
        own = [p.lm for p in self.reranker.predictors() if p.lm is not None]
        lm = own[0] if own else self.lm or dspy.settings.lm
        name = getattr(lm, "model", None)
        return name if isinstance(name, str) else None

    def described(self) -> dict[str, Any]:
        """What may be told about it: no prompts, no demos, no addresses."""
        judge = self.reranker.judge
        return {
            "name": self.name,
            "sorter": type(self.reranker).__name__,
            "judge": judge.kind,
            "model": self.model,
            "inputs": list(judge.extra_inputs or ()),
            "compiled": bool(self.reranker.card),
        }


class Programs(Mapping[str, Program]):
    """Programs by name, in the order given; the first is the default.

    Args:
        programs: At least one, each of its own name.

    Raises:
        InputError: There is none, or two have one name.
    """

    def __init__(self, programs: Sequence[Program]):
        self._by_name = {program.name: program for program in programs}
        if not programs:
            raise InputError("there is no program to serve")
        if len(self._by_name) < len(programs):
            names = [program.name for program in programs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError(
                f"two programs are called {twice!r}; name them apart with --program NAME=FILE"
            )

    def __getitem__(self, name: str) -> Program:
        return self._by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)

    def __len__(self) -> int:
        return len(self._by_name)

    @property
    def default(self) -> Program:
        """The one that answers requests that name none."""
        return next(iter(self._by_name.values()))

    def pick(self, name: str | None) -> Program:
        """The program of a name, the default one for ``None``.

        Raises:
            RefusedError: 404: there is none of that name; no file is ever looked for.
        """
        if name is None:
            return self.default
        if name not in self._by_name:
            raise RefusedError(
                404,
                f"model {name[:60]!a} not found; this service has {', '.join(self._by_name)}",
                reason="unknown model",
            )
        return self._by_name[name]


def read_name(argument: str) -> tuple[str, str]:
    """``NAME=FILE``, or a file that is called by its stem.

    Returns:
        Name and path.
    """
    name, equals, path = argument.partition("=")
    if equals and not Path(argument).exists():
        return name, path
    return Path(argument).stem, argument
