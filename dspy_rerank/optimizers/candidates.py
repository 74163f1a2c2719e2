"""Rerankers that a recipe names as tables: a sorter, a judge and their settings."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

from ..errors import InputError
from ..named import built
from ..program import JUDGES, SORTERS
from ..sorters import Consensus, Reranker

PASSES = "passes"
EACH = "each"
MOST = 100
"""Rerankers that one table may stand for."""


def read_candidates(tables: Sequence[Mapping[str, Any]]) -> dict[str, Reranker]:
    """Rerankers by name.

    Args:
        tables: Each with ``sorter`` and ``judge``, names of classes, the judge's as ``kind`` of a
            table where it has settings; ``name`` for reports; ``passes`` of a consensus of
            rankings; all else goes to the sorter: ``{sorter = "TopDown", window = 10, judge =
            {kind = "ListwiseJudge"}}``. A value ``{each = [5, 10]}``, of the judge too, stands for
            one reranker with each of these; several such values for all combinations.

    Raises:
        InputError: There is no such class, setting or value, or one table stands for more than
            100 rerankers.
    """
    if not isinstance(tables, list | tuple) or not all(isinstance(t, Mapping) for t in tables):
        raise InputError(f"candidates are {tables!r}; expected tables with a sorter and a judge")
    found: dict[str, Reranker] = {}
    for place, table in enumerate(tables, 1):
        where = f"candidate {place}"
        for name, one in _expanded(where, table):
            if name in found:
                raise InputError(f"two candidates are called {name!r}; give them a name each")
            found[name] = _reranker(where, one)
    return found


def _expanded(where: str, table: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """All rerankers that a table stands for, by name."""
    places = [*_choices(where, table)]
    count = prod(len(values) for _, values in places)
    if count > MOST:
        raise InputError(f"{where} stands for {count} rerankers; expected at most {MOST}")
    for chosen in product(*(values for _, values in places)):
        picked = list(zip((path for path, _ in places), chosen, strict=True))
        one = _with(table, picked)
        given = "".join(f", {path[-1]}={value}" for path, value in picked)
        yield (f"{table['name']}{given}" if table.get("name") else _words(one)), one


def _choices(
    where: str, table: Mapping[str, Any], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Where a table or its judge's leaves a choice, and what there is."""
    for key, value in table.items():
        here = (*path, key)
        if not isinstance(value, Mapping):
            continue
        if EACH not in value:
            yield from _choices(where, value, here)
        elif len(value) > 1 or not isinstance(value[EACH], list) or not value[EACH]:
            raise InputError(f"{where}, {key}: got {value!r}; expected {{each = [one, or, more]}}")
        else:
            yield here, value[EACH]


def _with(table: Mapping[str, Any], picked: Sequence[tuple[tuple[str, ...], Any]]) -> Any:
    """A copy of a table with these values at these places."""
    made = dict(table)
    for path, value in picked:
        first, *rest = path
        made[first] = _with(made[first], [(tuple(rest), value)]) if rest else value
    return made


def _reranker(where: str, table: Mapping[str, Any]) -> Reranker:
    given = {key: value for key, value in table.items() if key not in ("name", PASSES)}
    judge = given.pop("judge", None)
    asked = dict(judge) if isinstance(judge, Mapping) else {"kind": judge}
    made = built(where, JUDGES, asked.pop("kind", None), **asked)
    sorter = built(where, SORTERS, given.pop("sorter", None), made, **given)
    if PASSES not in table:
        return sorter
    return built(where, (Consensus,), "Consensus", sorter, passes=table[PASSES])


def _words(table: Mapping[str, Any]) -> str:
    """``TopDown(ListwiseJudge, window=10)``."""
    judge = table.get("judge")
    asked = dict(judge) if isinstance(judge, Mapping) else {"kind": judge}
    kind = asked.pop("kind", None)
    rest = {k: v for k, v in table.items() if k not in ("name", "judge", "sorter")}
    said = [str(kind), *(f"{k}={v}" for k, v in {**asked, **rest}.items())]
    return f"{table.get('sorter')}({', '.join(said)})"
