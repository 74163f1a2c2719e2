"""Clicks as labels: each counts for those who would have clicked had they looked."""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import DataError
from ..types import Document
from ._dataset import Dataset
from ._query import Query
from ._values import read_document, shown

Propensities = Mapping[int, float] | Sequence[float]
"""Probability that a result is looked at, by position from 1 (a sequence starts there)."""

FLOOR = 0.05
"""Smaller propensities count as this: one lucky click far down must not outweigh all others."""

SURE = 3.0
"""Standard errors by which clicks may exceed what propensities allow before that is an error."""


@dataclass
class _Seen:
    """What happened to one document of one query."""

    document: Document
    positions: list[int] = field(default_factory=list)
    worth: float = 0.0


@dataclass
class _Place:
    """What happened at one position, over all queries."""

    impressions: int = 0
    clicks: int = 0
    propensity: float = 0.0


def from_clicks(
    rows: Iterable[Mapping[str, Any]],
    propensities: Propensities | None = None,
    *,
    least: int = 1,
    name: str = "clicks",
) -> Dataset:
    """A data set whose grades are click rates, weighted by inverse propensity.

    A document's grade is the mean, over the times that it was shown, of ``click / propensity``:
    without bias the rate at which it is clicked by those who look at it (Joachims, Swaminathan
    and Schnabel 2017, arXiv:1608.04468). Propensities are yours: from swapped or shuffled
    results, or from a click model. Those below 0.05 count as 0.05. Grades may exceed 1 by chance;
    they are estimates, and queries with few impressions are noise.

    Documents are in the order of their mean position.

    Args:
        rows: One a result shown: ``query``, ``document`` (a text, or an object with ``text`` and
            ``id``), ``position`` from 1 and ``click`` (0 or 1), perhaps ``propensity``.
        propensities: By position; ``None`` takes each row's own.
        least: Documents shown less often have no grade.
        name: For people.

    Raises:
        DataError: A row cannot be read, a propensity is missing or not in (0, 1], or clicks at a
            position are more than its propensity allows, so that it must be wrong.
    """
    if isinstance(rows, Mapping | str) or not isinstance(rows, Iterable):
        raise DataError(f"clicks are {type(rows).__name__}; expected rows, one a result shown")
    queries: dict[str, dict[tuple[str | None, str], _Seen]] = {}
    places: defaultdict[int, _Place] = defaultdict(_Place)
    for number, row in enumerate(rows, 1):
        where = f"{name}, row {number}"
        document = read_document(_given(row, "document", where), where)
        position = _position(row, where)
        click = _click(row, where)
        propensity = _propensity(row, position, propensities, where)
        seen = queries.setdefault(str(_given(row, "query", where)), {}).setdefault(
            (document.id, document.text), _Seen(document)
        )
        seen.positions.append(position)
        seen.worth += click / max(propensity, FLOOR)
        place = places[position]
        place.impressions, place.clicks = place.impressions + 1, place.clicks + click
        place.propensity += propensity
    _check_places(places, name)
    found = (
        _query(str(number), text, seen, least)
        for number, (text, seen) in enumerate(queries.items(), 1)
    )
    return Dataset(name, tuple(found))


def _query(number: str, text: str, seen: Mapping[Any, _Seen], least: int) -> Query:
    ordered = sorted(seen.values(), key=lambda each: sum(each.positions) / len(each.positions))
    grades = tuple(
        round(each.worth / len(each.positions), 6) if len(each.positions) >= least else None
        for each in ordered
    )
    return Query(number, text, tuple(each.document for each in ordered), grades)


def _given(row: Mapping[str, Any], key: str, where: str) -> Any:
    value = row.get(key)
    if value is None:
        raise DataError(f"{where} has no {key!r}; it has {', '.join(map(str, row)) or 'nothing'}.")
    return value


def _position(row: Mapping[str, Any], where: str) -> int:
    value = _number(_given(row, "position", where))
    if value is None or value != int(value) or value < 1:
        raise DataError(f"{where}: expected a position from 1, got {shown(row['position'])}.")
    return int(value)


def _click(row: Mapping[str, Any], where: str) -> int:
    value = _number(_given(row, "click", where))
    if value not in (0, 1):
        raise DataError(f"{where}: expected 0 or 1 as click, got {shown(row['click'])}.")
    return int(value)


def _propensity(
    row: Mapping[str, Any], position: int, given: Propensities | None, where: str
) -> float:
    if given is None:
        value = _number(_given(row, "propensity", where))
    elif isinstance(given, Mapping):
        value = given.get(position)
    else:
        value = given[position - 1] if position <= len(given) else None
    if value is None:
        raise DataError(f"{where}: there is no propensity for position {position}.")
    if not (math.isfinite(value) and 0 < value <= 1):
        raise DataError(f"{where}: expected a propensity above 0 and up to 1, got {shown(value)}.")
    return float(value)


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _check_places(places: Mapping[int, _Place], name: str) -> None:
    """Nobody clicks on what nobody looks at: a click rate above the propensity refutes it."""
    for position, place in sorted(places.items()):
        allowed = place.propensity / place.impressions
        rate = place.clicks / place.impressions
        error = math.sqrt(allowed * (1 - allowed) / place.impressions)
        if rate > allowed + SURE * error + 1e-9:
            raise DataError(
                f"{name}: {rate:.1%} of {place.impressions} results at position {position} were "
                f"clicked, but only {allowed:.1%} are looked at by the propensity given; expected "
                "propensities of examination, at least as high as the click rate."
            )
