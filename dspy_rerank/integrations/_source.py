"""The reranker that an integration was given: an object, a saved program, or none."""

from collections.abc import Awaitable, Mapping
from pathlib import Path
from typing import Any, Protocol

import dspy

from .. import binding, program
from ..defaults import default_reranker, resolve_lm
from ..errors import InputError, ProgramError
from ..sorters import Reranker

Source = Reranker | str | Path | Mapping[str, Any] | None
"""A reranker, the path of a saved program, the content of one, or ``None`` for the default."""


class Reranks(Protocol):
    """Whatever can be awaited for a ranking."""

    def acall(self, **call: Any) -> Awaitable[dspy.Prediction]:
        """As :meth:`dspy_rerank.Reranker.aforward`."""
        ...


class Default:
    """The reranker that suits the model at hand, chosen anew at each call.

    Args:
        lm: As for :func:`dspy_rerank.rerank`.
    """

    def __init__(self, lm: Any = None):
        self.lm = lm

    async def acall(self, **call: Any) -> dspy.Prediction:
        """Rank with the default reranker for the model.

        Raises:
            NoModelError: There is no model.
        """
        model = resolve_lm(self.lm)
        with dspy.context(lm=model):
            return await default_reranker(model).acall(**call)

    def __repr__(self) -> str:
        return "default_reranker"


def opened(source: Source, lm: Any = None) -> Reranks:
    """The reranker of a source, with a language model of its own where one is given.

    Args:
        source: See :data:`Source`.
        lm: A DSPy LM or a model's name; ``None`` keeps what the program is bound to, else takes
            DSPy's configured LM at each call. A reranker given as an object is copied before it
            is bound.

    Raises:
        InputError: The source is of another type.
        ProgramError: The saved program does not fit.
    """
    if source is None:
        return Default(lm)
    if isinstance(source, Reranker):
        return source if lm is None else binding.bound(source.deepcopy(), lm)
    if isinstance(source, str | Path):
        return program.load(source, lm)
    if isinstance(source, Mapping):
        return binding.bound(program.from_dict(source), lm)
    raise InputError(
        f"reranker is {type(source).__name__}; expected a reranker, the path of a saved program, "
        "or None for the default"
    )


def written(source: Source) -> Any:
    """A source as JSON values, which :func:`opened` takes; an object as the program it is.

    Raises:
        ProgramError: A part of the reranker cannot be written, such as a function used as judge.
    """
    if isinstance(source, Reranker):
        return program.to_dict(source)
    return str(source) if isinstance(source, Path) else source


def written_lm(lm: Any) -> str | None:
    """The name under which a language model can be found again.

    Raises:
        ProgramError: It has none: an object may hold keys and addresses, which are not written.
    """
    from ..models import aliases

    name = lm if lm is None or isinstance(lm, str) else aliases.alias_of(lm)
    if lm is not None and name is None:
        raise ProgramError(
            f"lm is a {type(lm).__name__} object, which is not written; give its name, such as "
            "'openai/gpt-4o-mini' or an alias of dr.models.load(...)"
        )
    return name


def model_name(reranker: Reranks) -> str:
    """The language model's name where there is one, else the reranker's."""
    bound = [p.lm for p in reranker.predictors()] if isinstance(reranker, Reranker) else []
    found = next((lm for lm in bound if lm is not None), None) or dspy.settings.lm
    return str(getattr(found, "model", None) or repr(reranker))
