"""Rerankers by the names of their classes: what recipes and the command line say."""

import ast
from collections.abc import Sequence
from typing import Any

from .errors import InputError
from .judges import Panel
from .program import JUDGES
from .sorters import SORTERS, Consensus, Reranker
from .sorters.candidates import CANDIDATES

_JUDGES: dict[str, Any] = {each.__name__: each for each in JUDGES if each is not Panel}
_SORTERS: dict[str, Any] = {each.__name__: each for each in SORTERS if each is not Consensus}


def built(where: str, classes: Sequence[type], name: Any, *arguments: Any, **settings: Any) -> Any:
    """An object of the class of that name.

    Raises:
        InputError: There is no such class or setting; the message begins with ``where``.
    """
    known = {each.__name__: each for each in classes}
    if name not in known:
        raise InputError(f"{where}: {name!r} is none of {', '.join(known)}")
    try:
        return known[name](*arguments, **settings)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}, {name}: {error}") from None


def reranker_named(sorter: str | None, judge: str | None) -> Reranker:
    """A reranker of a sorter and a judge, each by the name of its class, perhaps with settings.

    Args:
        sorter: Such as ``ScoreSort`` or ``TopDown(window=10)``; ``None`` is ``ScoreSort`` for a
            pointwise judge, ``TopDown`` for others.
        judge: Such as ``PointwiseJudge(evidence="generate")``; ``None`` is a listwise one where
            the sorter makes good use of that, else one of the kind that it is made for.

    Raises:
        InputError: A name or setting is not known, or the two do not go together.
    """
    name, settings = _read("judge", judge or _judge_for(sorter))
    asked: Any = built("judge", tuple(_JUDGES.values()), name, **settings)
    default = "ScoreSort" if asked.kind == "pointwise" else "TopDown"
    name, settings = _read("sorter", sorter or default)
    _check_fit(name, asked)
    return built("sorter", tuple(_SORTERS.values()), name, asked, **settings)


def _judge_for(sorter: str | None) -> str:
    """The judge that a sorter is made for."""
    name, _ = _read("sorter", sorter or "")
    found = next((each.kinds for each in CANDIDATES if each.name == f"{name}()"), ())
    kind = "listwise" if "listwise" in found or not found else found[0]
    return next(each for each, cls in _JUDGES.items() if kind == cls.KIND)


def _check_fit(sorter: str, judge: Any) -> None:
    wanted = getattr(_SORTERS.get(sorter), "KINDS", None)
    if wanted is not None and judge.kind not in wanted:
        judges = [name for name, cls in _JUDGES.items() if cls.KIND in wanted]
        sorters = [name for name, cls in _SORTERS.items() if judge.kind in cls.KINDS]
        raise InputError(
            f"{sorter} goes with {' or '.join(judges)}; {type(judge).__name__} goes with "
            f"{' or '.join(sorters)}"
        )


def _read(what: str, text: str) -> tuple[str, dict[str, Any]]:
    """``TopDown(window=10)`` as its name and settings; values are literals, nothing is run."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Name):
            return call.id, {}
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args:
            given = {each.arg: ast.literal_eval(each.value) for each in call.keywords}
            if None not in given:
                return call.func.id, {str(name): value for name, value in given.items()}
    except (SyntaxError, ValueError):
        pass
    raise InputError(f"{what} {text!r}; expected the name of a class, perhaps with settings, such "
                     "as TopDown or 'TopDown(window=10)'")  # fmt: skip
