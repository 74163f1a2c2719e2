"""Which queries are under way and which results wait: never more than a fixed number."""

from collections.abc import Iterable

from .streamed import Streamed


class Window:
    """Keeps count of queries that were begun, and gives their results out.

    Args:
        at_once: Queries under way, at most.
        ahead: Queries under way or finished and not yet taken, at most.
        in_order: Give results in the order of the queries, else as they finish.
    """

    def __init__(self, at_once: int, ahead: int, in_order: bool):
        self._at_once, self._ahead, self._in_order = at_once, max(at_once, ahead), in_order
        self._begun = self._taken = self._running = 0
        self._waiting: dict[int, Streamed] = {}

    @property
    def room(self) -> bool:
        """Whether another query may begin."""
        return self._running < self._at_once and self._running + len(self._waiting) < self._ahead

    @property
    def idle(self) -> bool:
        """Whether no query is under way."""
        return self._running == 0

    def begin(self) -> int:
        """Count a query that begins; its number, from 0."""
        self._running += 1
        self._begun += 1
        return self._begun - 1

    def end(self, results: Iterable[Streamed]) -> None:
        """Keep results until they are taken."""
        for result in results:
            self._running -= 1
            self._waiting[result.number] = result

    def take(self) -> Streamed | None:
        """The next result, if it is there."""
        number = self._taken if self._in_order else next(iter(self._waiting), -1)
        if number not in self._waiting:
            return None
        self._taken += 1
        return self._waiting.pop(number)
