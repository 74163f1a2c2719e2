"""Training and validation queries from what a caller gave."""

from dataclasses import replace
from typing import Any

from ..errors import InputError
from ..evaluation import as_dataset


def parts(trainset: Any, valset: Any, seed: int) -> tuple[Any, Any]:
    """Both sets; without a validation set, half of the training queries is taken for it.

    Raises:
        InputError: There are too few queries to take any away.
    """
    train = as_dataset(trainset)
    if valset is not None:
        return train, as_dataset(valset)
    if len(train) < 4:
        raise InputError(
            f"{len(train)} training queries are too few to take validation queries from; "
            "give at least 4, or a valset"
        )
    train, val = train.split(0.5, 0.5, seed=seed)
    return train, val


def joined(first: Any, second: Any) -> Any:
    """Two sets as one; a query that is in both comes once, ids are made distinct."""
    known = {(query.text, query.documents) for query in first}
    queries = [*first, *(q for q in second if (q.text, q.documents) not in known)]
    ids = [query.id for query in queries]
    if len(set(ids)) < len(ids):
        queries = [replace(query, id=f"{n}: {query.id}") for n, query in enumerate(queries, 1)]
    return type(first)(f"{first.name} and {second.name}", tuple(queries))
