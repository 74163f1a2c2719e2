"""Which of the queries that a program is measured on it was compiled on: those flatter it."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

KEY = "query_fingerprints"
"""Where each split of a card has them: sorted, each once, with blanks between."""
SPLITS = {"train": "training", "validation": "validation", "earlier": "earlier compiling"}
STEPS = ("judge", "search")
"""Where a card has those of the steps before the last."""
TEXT = 10
"""So many digits of a fingerprint are of the query's text; see `Dataset.fingerprints`."""


@dataclass(frozen=True, slots=True)
class Seen:
    """How many of the queries that a program is measured on it was compiled on.

    Queries are the same where their texts are, case and spacing aside, as in
    :func:`dspy_rerank.datasets.checks.overlap`; one of several splits counts for the first.

    Attributes:
        train: In training.
        validation: In validation.
        earlier: Before that, when what it was compiled from was compiled.
        changed: So many of all these have other candidates or other further inputs now.
    """

    train: int = 0
    validation: int = 0
    earlier: int = 0
    changed: int = 0

    @property
    def queries(self) -> int:
        """All of them."""
        return self.train + self.validation + self.earlier

    def words(self, name: str, of: int) -> str:
        """A sentence on the program ``name``, measured on ``of`` queries."""
        each = [f"{n} in {what}" for split, what in SPLITS.items() if (n := getattr(self, split))]
        changed = f"; {self.changed} with other candidates now" if self.changed else ""
        return (
            f"{name} was compiled on {self.queries} of these {of} queries "
            f"({', '.join(each)}{changed}), which may flatter its figures: "
            "measure it on queries that it has not seen"
        )


def seen(program: Any, data: Any) -> Seen:
    """Which queries of a data set a program was compiled on, so far as its card says."""
    held = [pair for card in _cards(program) for pair in _held(card)]
    if not held:
        return Seen()
    held.sort(key=lambda pair: tuple(SPLITS).index(pair[0]))
    first, whole = {mark[:TEXT]: split for split, mark in reversed(held)}, {m for _, m in held}
    known = [mark for mark in data.fingerprints if mark[:TEXT] in first]
    counts = Counter(first[mark[:TEXT]] for mark in known)
    return Seen(**counts, changed=sum(mark not in whole for mark in known))


def listed(fingerprints: Iterable[str]) -> dict[str, str]:
    """A split's fingerprints for its card; 17 bytes a query, so 85 kB for 5,000 of them."""
    return {KEY: " ".join(sorted(set(fingerprints)))}


def earlier(before: Any, card: Mapping[str, Any]) -> dict[str, Any]:
    """For a card: the queries of the card before it that it lacks; empty where there are none."""
    now = {mark for _, mark in _held(card)}
    missing = {mark for _, mark in _held(before)} - now
    return {"earlier": listed(missing)} if missing else {}


def _cards(program: Any) -> Iterator[Any]:
    """The program's own card and that of the one inside it, as in ``Consensus(loaded)``."""
    while program is not None:
        yield getattr(program, "card", None)
        program = getattr(program, "reranker", None)


def _held(card: Any) -> Iterator[tuple[str, str]]:
    """Split and fingerprint of each query; nothing for a card that was written without them."""
    if not isinstance(card, Mapping):
        return
    for split in SPLITS:
        part = card.get(split)
        marks = part.get(KEY) if isinstance(part, Mapping) else None
        if isinstance(marks, str):
            yield from ((split, mark) for mark in marks.split())
    for step in STEPS:
        yield from _held(card.get(step))
