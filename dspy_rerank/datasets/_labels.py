"""Labels other than grades, put as grades: preferences and one right answer."""

from collections.abc import Iterable, Sequence
from typing import Any

from ..errors import DataError
from ._query import Grade
from ._values import shown

KINDS = ("preferences", "answer")


def from_preferences(pairs: Iterable[Any], names: Sequence[Any], where: str) -> tuple[Grade, ...]:
    """Grades by preference pairs: that of a document is the longest chain of worse ones below it.

    So every preference is kept: the better document has the higher grade. Documents that no pair
    names have none. Between others that were never compared the grades say more than the pairs.

    Args:
        pairs: Each the better and the worse document, by position from 0 or by id.
        names: Ids of the documents, ``None`` where there is none.
        where: For messages.

    Raises:
        DataError: A pair cannot be read, or the preferences go round in a circle.
    """
    worse: dict[int, set[int]] = {}
    for pair in pairs:
        if not isinstance(pair, list | tuple) or len(pair) != 2:
            raise DataError(f"{where}: expected pairs [better, worse], got {shown(pair)}.")
        better, below = (place_of(value, names, where) for value in pair)
        worse.setdefault(better, set()).add(below)
        worse.setdefault(below, set())
    depths: dict[int, int] = {}
    while len(depths) < len(worse):
        ready = [p for p in worse if p not in depths and worse[p] <= depths.keys()]
        if not ready:
            left = sorted(p for p in worse if p not in depths)
            raise DataError(
                f"{where}: the preferences contradict each other: documents {left} are each "
                "better than another of them; expected no circle."
            )
        depths.update({p: 1 + max((depths[w] for w in worse[p]), default=-1) for p in ready})
    return tuple(depths.get(place) for place in range(len(names)))


def from_answer(answer: Any, names: Sequence[Any], where: str) -> tuple[Grade, ...]:
    """Grades by the right document, or several: 1 for it, 0 for all others.

    Args:
        answer: Position from 0 or id, or a list of those.
        names: Ids of the documents, ``None`` where there is none.
        where: For messages.

    Raises:
        DataError: There is no such document.
    """
    given = answer if isinstance(answer, list | tuple) else [answer]
    right = {place_of(value, names, where) for value in given}
    return tuple(int(place in right) for place in range(len(names)))


def place_of(value: Any, names: Sequence[Any], where: str) -> int:
    """The position of a document that is named by its position or id."""
    if isinstance(value, int) and not isinstance(value, bool):
        if 0 <= value < len(names):
            return value
    elif isinstance(value, str) and list(map(str, names)).count(value) == 1:
        return list(map(str, names)).index(value)
    raise DataError(
        f"{where}: expected a document by its position from 0 to {len(names) - 1} or by an id that "
        f"one of them has, got {shown(value)}."
    )


def graded(record: Any, names: Sequence[Any], where: str) -> tuple[Grade, ...] | None:
    """Grades from ``preferences`` or ``answer``; ask only where a record has no grades.

    Next to grades both may mean something else, such as the answer to a question.

    Raises:
        DataError: It has both.
    """
    kinds = [kind for kind in KINDS if record.get(kind) is not None]
    if len(kinds) > 1:
        raise DataError(f"{where}: expected one kind of labels, got {' and '.join(kinds)}.")
    if kinds == ["preferences"]:
        return from_preferences(record["preferences"], names, where)
    return from_answer(record["answer"], names, where) if kinds else None
