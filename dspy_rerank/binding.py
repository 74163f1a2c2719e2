"""The language model of a saved program: by its alias in the file, as an object in memory."""

import json
from pathlib import Path
from typing import Any

from .sorters.base import Reranker


def bound(reranker: Reranker, lm: Any) -> Reranker:
    """The reranker with a language model of its own, if one is given by object or by name."""
    if lm is not None:
        from .models import get

        reranker.set_lm(get(lm) if isinstance(lm, str) else lm)
    return reranker


def saved_alias(path: str | Path) -> str | None:
    """The alias of the model that a program was saved with, whether it is loaded or not."""
    found = json.loads(Path(path).read_text(encoding="utf-8")).get("lm")
    return found if isinstance(found, str) else None


def alias(reranker: Reranker) -> str | None:
    """The alias of the one LM that all judges are bound to, if it has one."""
    from .models import aliases

    lms = {id(predict.lm): predict.lm for predict in reranker.predictors()}
    return aliases.alias_of(next(iter(lms.values()))) if len(lms) == 1 else None


def aliased(alias: Any) -> Any:
    """The LM of a saved alias, where such an alias is loaded."""
    from .models import aliases

    return aliases.named(alias) if isinstance(alias, str) else None
