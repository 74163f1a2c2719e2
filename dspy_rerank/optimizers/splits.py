"""Training and validation queries from what a caller gave."""

from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..evaluation import as_dataset


def parts(trainset: Any, valset: Any, seed: int) -> tuple[Any, Any]:
    """Both sets, without queries that nobody has judged; some of the first if there is no second.

    Without a validation set, half of the training queries is taken for it.

    Raises:
        InputError: There are too few queries to take any away, or no validation query has labels.
    """
    train = _judged(as_dataset(trainset))
    if valset is not None:
        given = as_dataset(valset)
        val = _judged(given)
        if len(given) and not len(val):
            raise InputError(f"none of the {len(given)} validation queries has labels")
        return train, val
    if len(train) < 4:
        raise InputError(
            f"{len(train)} training queries are too few to take validation queries from; "
            "give at least 4, or a valset"
        )
    train, val = train.split(0.5, 0.5, seed=seed)
    return train, val


def _judged(data: Any) -> Any:
    return data.filter(lambda query: query.judged)


def measured(trainset: Any, valset: Any, seed: int, choose_by: str) -> tuple[Any, Any]:
    """Training queries, and those that a search goes by: ``validation`` ones, or ``all``.

    Raises:
        InputError: As :func:`parts` does.
    """
    train, val = parts(trainset, valset, seed)
    return train, joined(train, val) if choose_by == "all" else val


def joined(first: Any, second: Any) -> Any:
    """Two sets as one; a query that is in both comes once, ids are made distinct."""
    known = {(query.text, query.documents) for query in first}
    queries = [*first, *(q for q in second if (q.text, q.documents) not in known)]
    ids = [query.id for query in queries]
    if len(set(ids)) < len(ids):
        queries = [replace(query, id=f"{n}: {query.id}") for n, query in enumerate(queries, 1)]
    return type(first)(f"{first.name} and {second.name}", tuple(queries))
