"""What is wrong with a labelled set, found before it is trained or measured on."""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ._dataset import Dataset, plain
from ._query import Query

Kind: TypeAlias = Literal[
    "repeated query",
    "leak",
    "repeated document",
    "repeated id",
    "contradiction",
    "nothing relevant",
    "unlabelled",
    "bad label",
    "imbalance",
]

ERRORS: frozenset[Kind] = frozenset({"bad label", "contradiction", "leak"})
"""Kinds with which nothing should be compiled; the others are warnings."""

RARE = 0.02
"""Below this share of relevant labels, or of others, a set is called imbalanced."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to look at in a data set.

    Attributes:
        kind: What sort of problem.
        message: What was found, and what it does.
        queries: Ids of the queries concerned; empty when it is the set as a whole.
    """

    kind: Kind
    message: str
    queries: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def check(dataset: Dataset) -> tuple[Problem, ...]:
    """All problems of a data set, the gravest kinds first; empty when none is found.

    Looks for labels that cannot be used or contradict each other, queries that are in several
    splits or come twice, repeated documents, different documents with one id, queries without
    labels or without anything relevant, and labels that are nearly all alike. Texts are
    compared without case and spacing.
    """
    return tuple(problem for find in CHECKS for problem in find(dataset))


def overlap(first: Dataset, second: Dataset) -> tuple[str, ...]:
    """Query texts of the first set that the second also has: none, for a test set held out."""
    known = {plain(query.text) for query in second}
    return tuple(query.text for query in first if plain(query.text) in known)


def bad_labels(dataset: Dataset) -> Iterator[Problem]:
    """Grades that are negative or not finite."""
    for query in dataset:
        grades = (*query.relevance, *query.ideal)
        bad = [g for g in grades if g is not None and not (math.isfinite(g) and g >= 0)]
        if bad:
            message = f"query {query.id!r} has the grades {bad[:5]}; expected finite, not negative"
            yield Problem("bad label", message, (query.id,))


def contradictions(dataset: Dataset) -> Iterator[Problem]:
    """The same document graded differently for the same query."""
    grades: defaultdict[tuple[str, str], dict[float, str]] = defaultdict(dict)
    for query in dataset:
        for document, grade in zip(query.documents, query.relevance, strict=True):
            if grade is not None:
                grades[plain(query.text), plain(document.text)].setdefault(grade, query.id)
    for (_, text), seen in grades.items():
        if len(seen) > 1:
            message = f"{_short(text)!r} has the grades {sorted(seen)} for the same query"
            yield Problem("contradiction", message, tuple(dict.fromkeys(seen.values())))


def leaks(dataset: Dataset) -> Iterator[Problem]:
    """Queries with the same text in different splits, which make a test flatter."""
    for text, queries in _by_text(dataset).items():
        splits = sorted({query.split for query in queries if query.split})
        if len(splits) > 1:
            yield Problem("leak", f"{_short(text)!r} is in the splits {splits}", _ids(queries))


def repeated_queries(dataset: Dataset) -> Iterator[Problem]:
    """Queries with the same text in the same split, which count twice in every mean."""
    for text, queries in _by_text(dataset).items():
        counts = Counter(query.split for query in queries)
        same = [query for query in queries if counts[query.split] > 1]
        if same:
            message = f"{_short(text)!r} comes {len(same)} times"
            yield Problem("repeated query", message, _ids(same))


def repeated_documents(dataset: Dataset) -> Iterator[Problem]:
    """Candidates of one query with the same text."""
    for query in dataset:
        counts = Counter(plain(document.text) for document in query.documents)
        again = [text for text, count in counts.items() if count > 1]
        if again:
            message = f"query {query.id!r} has {_short(again[0])!r} {counts[again[0]]} times"
            more = f", and {len(again) - 1} more" if len(again) > 1 else ""
            yield Problem("repeated document", message + more, (query.id,))


def repeated_ids(dataset: Dataset) -> Iterator[Problem]:
    """Different candidates of one query with the same id, which a TREC run cannot tell apart."""
    for query in dataset:
        texts: defaultdict[str, set[str]] = defaultdict(set)
        for document in query.documents:
            if document.id is not None:
                texts[document.id].add(plain(document.text))
        again = [name for name, found in texts.items() if len(found) > 1]
        if again:
            many = len(texts[again[0]])
            message = f"query {query.id!r} has {many} different documents with the id {again[0]!r}"
            more = f", and {len(again) - 1} more" if len(again) > 1 else ""
            yield Problem("repeated id", message + more, (query.id,))


def unlabelled(dataset: Dataset) -> Iterator[Problem]:
    """Queries that nobody has judged."""
    queries = [query for query in dataset if not query.judged]
    if queries:
        many = "1 query has" if len(queries) == 1 else f"{len(queries)} queries have"
        message = f"{many} no grades, which teaches and measures nothing"
        yield Problem("unlabelled", message, _ids(queries))


def nothing_relevant(dataset: Dataset) -> Iterator[Problem]:
    """Judged queries without a relevant candidate, on which every order scores 0."""
    queries = [query for query in dataset if query.judged and not _relevant(query)]
    if queries:
        many = "1 query has" if len(queries) == 1 else f"{len(queries)} queries have"
        message = f"{many} no candidate above 0, where every order scores 0"
        yield Problem("nothing relevant", message, _ids(queries))


def imbalance(dataset: Dataset) -> Iterator[Problem]:
    """Labels that are nearly all relevant, or nearly all not."""
    judged = sum(grade is not None for query in dataset for grade in query.relevance)
    share = sum(map(_relevant, dataset)) / judged if judged else 0.5
    if not RARE <= share <= 1 - RARE:
        message = f"{share:.1%} of {judged} labels are above 0; samples will lack the other kind"
        yield Problem("imbalance", message)


CHECKS: tuple[Callable[[Dataset], Iterator[Problem]], ...] = (
    bad_labels,
    contradictions,
    leaks,
    repeated_queries,
    repeated_documents,
    repeated_ids,
    unlabelled,
    nothing_relevant,
    imbalance,
)


def _by_text(dataset: Dataset) -> dict[str, list[Query]]:
    """Queries grouped by what they say."""
    groups: dict[str, list[Query]] = {}
    for query in dataset:
        groups.setdefault(plain(query.text), []).append(query)
    return groups


def _relevant(query: Query) -> int:
    """How many candidates are graded above 0."""
    return sum(grade is not None and grade > 0 for grade in query.relevance)


def _ids(queries: list[Query]) -> tuple[str, ...]:
    """Their ids."""
    return tuple(query.id for query in queries)


def _short(text: str) -> str:
    """A text as it may stand in a message."""
    return text if len(text) <= 60 else text[:57] + "..."
