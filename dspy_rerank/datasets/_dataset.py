"""A labelled set of queries: an immutable sequence that can be split, sampled and fingerprinted."""

import hashlib
import json
import random
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, overload

from ..errors import DataError, InputError
from ._query import Query

if TYPE_CHECKING:
    import dspy


@dataclass(frozen=True)
class Dataset:
    """Labelled queries. Every method gives a new set, or leaves this one as it is.

    Args:
        name: For people; not part of the fingerprint.
        queries: In a fixed order, with distinct ids.
        record_keys: Keys that the source's records had, for messages; empty where it has none.
    """

    name: str
    queries: tuple[Query, ...]
    record_keys: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        counts = Counter(query.id for query in self.queries)
        repeated = [query_id for query_id, count in counts.items() if count > 1]
        if repeated:
            raise DataError(f"Data set {self.name!r}: expected distinct ids, got {repeated[:5]}.")

    def __len__(self) -> int:
        return len(self.queries)

    def __iter__(self) -> Iterator[Query]:
        return iter(self.queries)

    @overload
    def __getitem__(self, index: int) -> Query: ...
    @overload
    def __getitem__(self, index: slice) -> "Dataset": ...
    def __getitem__(self, index: int | slice) -> "Query | Dataset":
        """A query, or a smaller set."""
        if isinstance(index, slice):
            return replace(self, queries=self.queries[index])
        return self.queries[index]

    def __repr__(self) -> str:
        sizes = sorted({len(query.documents) for query in self.queries})
        each = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]}-{sizes[-1]}" if sizes else "0"
        labelled = sum(query.labelled for query in self.queries)
        counts = Counter(query.split for query in self.queries if query.split)
        splits = "".join(f", {split} {count}" for split, count in counts.items())
        return f"<Dataset {self.name!r}: {len(self)} queries x {each}, {labelled} labelled{splits}>"

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that the source assigns, in order of appearance."""
        return tuple(dict.fromkeys(query.split for query in self.queries if query.split))

    def part(self, split: str) -> "Dataset":
        """The queries of one assigned split.

        Raises:
            DataError: There is no such split; the message names those that there are.
        """
        if split not in self.splits:
            known = ", ".join(self.splits) or "none (use .split(0.5, 0.5) to make some)"
            raise DataError(f"Data set {self.name!r} has no split {split!r}; it has {known}.")
        return self.filter(lambda query: query.split == split)

    def split(self, *fractions: float, seed: int = 0) -> tuple["Dataset", ...]:
        """Deal the queries at random into one set for each fraction: ``a, b = s.split(0.5, 0.5)``.

        Queries with the same text stay together, so that no part knows another's. What is left
        when the fractions sum to less than 1 is in no part.
        """
        if not fractions or min(fractions) <= 0 or sum(fractions) > 1 + 1e-9:
            raise InputError(f"Expected fractions above 0 that sum to at most 1, got {fractions}.")
        texts = list(dict.fromkeys(plain(query.text) for query in self.queries))
        random.Random(seed).shuffle(texts)
        ends = [round(len(texts) * end) for end in accumulate(fractions, initial=0.0)]
        parts = [frozenset(texts[start:end]) for start, end in pairwise(ends)]
        return tuple(self._with_texts(part) for part in parts)

    def sample(self, size: int, *, seed: int = 0) -> "Dataset":
        """At most ``size`` queries drawn at random, in their old order."""
        count = min(size, len(self))
        chosen = sorted(random.Random(seed).sample(range(len(self)), count))
        return replace(self, queries=tuple(self.queries[index] for index in chosen))

    def filter(self, keep: Callable[[Query], bool]) -> "Dataset":
        """The queries for which ``keep`` holds."""
        return replace(self, queries=tuple(query for query in self.queries if keep(query)))

    def cut(self, depth: int) -> "Dataset":
        """The set with the first ``depth`` candidates of every query; see `Query.cut`."""
        if depth < 0:
            raise InputError(f"Expected a depth of at least 0, got {depth}.")
        return replace(self, queries=tuple(query.cut(depth) for query in self.queries))

    def to_examples(self) -> "list[dspy.Example]":
        """The queries as DSPy examples.

        ``query``, ``documents`` and the further inputs of each query are inputs; ``relevance``,
        ``ideal``, ``judged`` (see `Query`) and ``query_id`` are labels.
        """
        return [_example(query) for query in self.queries]

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 over everything that a ranker or a metric reads; the same on every machine."""
        digest = hashlib.sha256()
        for query in self.queries:
            digest.update(json.dumps(_content(query), sort_keys=True, default=str).encode() + b"\n")
        return digest.hexdigest()

    @cached_property
    def fingerprints(self) -> tuple[str, ...]:
        """Of each query 16 hexadecimal digits, the same on every machine and in any set.

        The first 10 are of its text without case and spacing, the others of the candidates' texts,
        in whatever order, and of its further inputs. Labels, ids and splits do not count. They
        tell queries apart and hide nothing: who guesses a text can check the guess.
        """
        return tuple(_mark(query) for query in self.queries)

    def _with_texts(self, texts: frozenset[str]) -> "Dataset":
        """The queries with one of these texts."""
        return self.filter(lambda query: plain(query.text) in texts)


def plain(text: str) -> str:
    """A text without what does not tell it from another: case and spacing."""
    return " ".join(text.casefold().split())


def _mark(query: Query) -> str:
    candidates = sorted(plain(document.text) for document in query.documents)
    return _digits(plain(query.text), 10) + _digits([candidates, dict(query.inputs)], 6)


def _digits(value: Any, many: int) -> str:
    text = json.dumps(value, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:many]


def _content(query: Query) -> dict[str, Any]:
    """What of a query goes into the fingerprint."""
    return {
        "id": query.id,
        "text": query.text,
        "documents": [(d.id, d.text, d.score) for d in query.documents],
        "relevance": _floats(query.relevance),
        "ideal": _floats(query.ideal),
        "inputs": dict(query.inputs),
    }


def _floats(grades: tuple[float | None, ...]) -> list[float | None]:
    """Grades of one type, so that 1 and 1.0 have the same fingerprint."""
    return [None if grade is None else float(grade) for grade in grades]


def _example(query: Query) -> "dspy.Example":
    """One query as a DSPy example."""
    import dspy

    example = dspy.Example(
        {"judged": query.judged},  # an input may have that name, too
        query=query.text,
        documents=list(query.documents),
        **query.inputs,
        relevance=list(query.relevance),
        ideal=list(query.ideal),
        query_id=query.id,
    )
    return example.with_inputs("query", "documents", *query.inputs)
