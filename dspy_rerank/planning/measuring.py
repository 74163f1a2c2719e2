"""One call to the model, to see how it counts tokens, how much it writes and how long it takes."""

import time
from dataclasses import dataclass
from typing import Any

import dspy

from ..errors import InputError, ModelError
from ..reading.labels import estimate_tokens
from ..sorters import Reranker
from ..streaming import Item
from .prompts import Prompts


@dataclass(frozen=True, slots=True)
class Measured:
    """What one question took.

    Attributes:
        seconds: Until the answer.
        prompt_tokens: As the provider counted.
        completion_tokens: As the provider counted.
        passages: That were shown.
        expected: Tokens of the prompt by the estimate.
        cost: US dollars; ``None`` where no price is known.
    """

    seconds: float
    prompt_tokens: int
    completion_tokens: int
    passages: int
    expected: int
    cost: float | None = None

    @property
    def ratio(self) -> float | None:
        """The provider's tokens for one estimated; ``None`` where it counts none."""
        return self.prompt_tokens / self.expected if self.prompt_tokens and self.expected else None


def measure(reranker: Reranker, item: Item, lm: Any, top_k: int | None = None) -> Measured:
    """Ask the first question of a ranking, past every cache.

    Costs one judge call.

    Raises:
        InputError: The ranking asks nothing.
        ModelError: The call failed.
    """
    asking = reranker.deepcopy()
    for predictor in asking.predictors():
        predictor.lm = (predictor.lm or lm).copy(cache=False)
    began = time.perf_counter()
    with dspy.context(lm=lm, disable_history=True):
        said = asking(**item.call(), max_calls=1, retries=0, error_retries=0, concurrency=1)
    took = time.perf_counter() - began
    used = said.ranking.usage
    if not used.calls:
        why = "; ".join(said.ranking.reasons)
        if why:
            raise ModelError(f"the probe failed: {why}")
        raise InputError(f"query {item.id!r} needs no call; probe with more than one document")
    prompts = Prompts(reranker, top_k)
    texts = [document.text for document in said.ranking.documents] or [""]
    mean = sum(map(estimate_tokens, texts)) / len(texts)
    own = prompts.tokens(len(item.documents), item.inputs) + estimate_tokens(str(item.query))
    return Measured(
        took, used.prompt_tokens, used.completion_tokens, used.passages_read,
        round(own + used.passages_read * mean), used.cost,
    )  # fmt: skip
