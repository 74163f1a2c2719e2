"""A digest of what decides rankings beside the query: so results of two programs never mix."""

import hashlib
import json
from typing import Any

import dspy

from ..errors import ProgramError
from ..program import to_dict
from ..sorters import Reranker

_SECRET = ("key", "token", "secret", "password", "headers")


def identity_of(reranker: Reranker, lm: Any = None, top_k: int | None = None) -> str:
    """Twelve characters that change with the program, its models and ``top_k``; no secret in it.

    A program with a function as judge has no saved form; it goes by what it prints as.
    """
    models = [_model(p.lm or lm or dspy.settings.lm) for p in reranker.predictors()]
    content = [_program(reranker), models, top_k]
    text = json.dumps(content, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:12]


def _program(reranker: Reranker) -> Any:
    try:
        content = to_dict(reranker)
    except ProgramError:
        return repr(reranker)
    return [content["program"], content["state"]]


def _model(lm: Any) -> Any:
    given = getattr(lm, "kwargs", None) or {}
    kept = {n: str(v) for n, v in given.items() if not any(word in n for word in _SECRET)}
    return [getattr(lm, "model", None), kept]
