"""The language model of a saved program: by its alias in the file, as an object in memory."""

from collections.abc import Mapping
from typing import Any

from .errors import InputError
from .sorters.base import Reranker


def bound(reranker: Reranker, lm: Any) -> Reranker:
    """The reranker with a language model of its own, if one is given by object or by name."""
    if lm is not None:
        reranker.set_lm(_named(lm) if isinstance(lm, str) else lm)
    return reranker


def _named(name: str) -> Any:
    from .models import get

    return get(name)


def own_model(content: Mapping[str, Any]) -> Any:
    """The LM that a saved program names: by its alias, or by a provider's name on its card.

    Args:
        content: Of the file.

    Returns:
        ``None`` where it names none.

    Raises:
        InputError: Its alias is not loaded. Whatever else has that name is not taken for it.
    """
    known, card = content.get("lm"), content.get("card")
    if isinstance(known, str):
        found = aliased(known)
        if found is None:
            raise InputError(
                f"the program is made for the alias {known!r}, which is not loaded: load a LiteLLM "
                "configuration that has it (--config FILE, dspy_rerank.models.load), or name "
                "another model (--lm, lm=)"
            )
        return found
    name = card.get("lm") if isinstance(card, Mapping) else None
    return _named(name) if isinstance(name, str) else None


def named_in(program: Reranker, lm: Any, name: str | None) -> Reranker:
    """The program with its model, for saving: its alias where it has one, else a name on its card.

    Args:
        program: Bound to a model where one was chosen for it.
        lm: Answers where it is not.
        name: Of that model, as it was given.
    """
    from .models import aliases

    own = next((predict.lm for predict in program.predictors() if predict.lm is not None), None)
    if own is None and aliases.alias_of(lm) is not None:
        program.set_lm(lm)
    elif own is not None and aliases.alias_of(own) is None:
        program.card["lm"] = own.model
    elif own is None and name:
        program.card["lm"] = name
    return program


def alias(reranker: Reranker) -> str | None:
    """The alias of the one LM that all judges are bound to, if it has one."""
    from .models import aliases

    lms = {id(predict.lm): predict.lm for predict in reranker.predictors()}
    return aliases.alias_of(next(iter(lms.values()))) if len(lms) == 1 else None


def aliased(alias: Any) -> Any:
    """The LM of a saved alias, where such an alias is loaded."""
    from .models import aliases

    return aliases.named(alias) if isinstance(alias, str) else None
