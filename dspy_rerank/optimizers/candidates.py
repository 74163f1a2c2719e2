"""Rerankers that a recipe names as tables: a sorter, a judge and their settings."""

from collections.abc import Mapping, Sequence
from typing import Any

from ..errors import InputError
from ..program import JUDGES, SORTERS
from ..sorters import Consensus, Reranker

PASSES = "passes"


def read_candidates(tables: Sequence[Mapping[str, Any]]) -> dict[str, Reranker]:
    """Rerankers by name.

    Args:
        tables: Each with ``sorter`` and ``judge``, names of classes, the judge's as ``kind`` of a
            table where it has settings; ``name`` for reports; ``passes`` of a consensus of
            rankings; all else goes to the sorter: ``{sorter = "TopDown", window = 10, judge =
            {kind = "ListwiseJudge"}}``.

    Raises:
        InputError: There is no such class, setting or value.
    """
    if not isinstance(tables, list | tuple) or not all(isinstance(t, Mapping) for t in tables):
        raise InputError(f"candidates are {tables!r}; expected tables with a sorter and a judge")
    found: dict[str, Reranker] = {}
    for place, table in enumerate(tables, 1):
        name = str(table.get("name") or _words(table))
        if name in found:
            raise InputError(f"two candidates are called {name!r}; give them a name each")
        found[name] = _reranker(f"candidate {place}", table)
    return found


def _reranker(where: str, table: Mapping[str, Any]) -> Reranker:
    given = {key: value for key, value in table.items() if key not in ("name", PASSES)}
    judge = given.pop("judge", None)
    asked = dict(judge) if isinstance(judge, Mapping) else {"kind": judge}
    made = _built(where, JUDGES, asked.pop("kind", None), **asked)
    sorter = _built(where, SORTERS, given.pop("sorter", None), made, **given)
    if PASSES not in table:
        return sorter
    return _built(where, (Consensus,), "Consensus", sorter, passes=table[PASSES])


def _built(where: str, classes: Sequence[type], name: Any, *arguments: Any, **settings: Any) -> Any:
    known = {each.__name__: each for each in classes}
    if name not in known:
        raise InputError(f"{where}: {name!r} is none of {', '.join(known)}")
    try:
        return known[name](*arguments, **settings)
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}, {name}: {error}") from None


def _words(table: Mapping[str, Any]) -> str:
    """``TopDown(ListwiseJudge, window=10)``."""
    judge = table.get("judge")
    asked = dict(judge) if isinstance(judge, Mapping) else {"kind": judge}
    kind = asked.pop("kind", None)
    rest = {k: v for k, v in table.items() if k not in ("name", "judge", "sorter")}
    said = [str(kind), *(f"{k}={v}" for k, v in {**asked, **rest}.items())]
    return f"{table.get('sorter')}({', '.join(said)})"
