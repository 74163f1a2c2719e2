"""Training and validation queries from what a caller gave."""

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
