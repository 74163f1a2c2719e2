"""Panel: several judges of one passage, and a weighted sum of what they say."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import dspy

from .. import calls
from ..errors import InputError
from ..settings import Settings
from ..types import Failure, Group, Judgment, Kind
from .protocol import Answer, Question, checked_judge


class Panel(dspy.Module):
    """Grades a passage by the weighted sum of what several pointwise judges say about it.

    One call a judge and passage, all of them in the same round; a judge of weight 0 is not asked.
    Scores are summed as they come, grades and log-likelihoods alike, so weights belong to scales:
    :class:`dspy_rerank.optimizers.WeightCompiler` finds them from labels. A passage that one of
    the judges does not know about is unknown.

    Args:
        judges: Pointwise ones, such as several questions, several models, or a function.
        weights: One each, of any sign, not all 0; ``None`` is 1 for all.
    """

    def __init__(self, judges: Sequence[Any], *, weights: Sequence[float] | None = None):
        super().__init__()
        self.judges = [checked_judge(judge, ("pointwise",), "Panel") for judge in judges]
        given = [1.0] * len(self.judges) if weights is None else [float(w) for w in weights]
        self.settings = Settings(weights=self._checked(given))

    def _checked(self, weights: list[float]) -> list[float]:
        if len(weights) != len(self.judges) or not any(weights):
            raise InputError(
                f"weights={weights} for {len(self.judges)} judges; expected one number for each, "
                "not all of them 0"
            )
        if not all(map(math.isfinite, weights)):
            raise InputError(f"weights={weights}; expected finite numbers")
        return weights

    def weighed(self, weights: Sequence[float]) -> "Panel":
        """A copy with other weights, without the judges that would not be asked."""
        kept = [(j, float(w)) for j, w in zip(self.judges, weights, strict=True) if w]
        return Panel([judge for judge, _ in kept], weights=[weight for _, weight in kept])

    @property
    def kind(self) -> Kind:
        """Pointwise."""
        return "pointwise"

    @property
    def extra_inputs(self) -> tuple[str, ...] | None:
        """What any of the judges needs; ``None`` where one of them takes everything."""
        wanted = [judge.extra_inputs for judge in self.judges]
        if any(names is None for names in wanted):
            return None
        return tuple(dict.fromkeys(chain.from_iterable(names or () for names in wanted)))

    def ready(self) -> "Panel":
        """The panel of the judges that will answer."""
        return Panel([judge.ready() for judge in self.judges], weights=self.settings["weights"])

    def presentations(self, group: Group, query: str, seed: int) -> tuple[Group, ...]:
        """The group once for each vote of each judge that is asked."""
        return tuple(
            shown for judge, _ in self._asked() for shown in judge.presentations(group, query, seed)
        )

    def _asked(self) -> list[tuple[Any, float]]:
        pairs = zip(self.judges, self.settings["weights"], strict=True)
        return [(judge, weight) for judge, weight in pairs if weight]

    def _votes(self, group: Group) -> list[int]:
        """How many answers each of them gives."""
        return [len(judge.presentations(group, "", 0)) for judge, _ in self._asked()]

    async def ask(self, question: Question) -> Answer:
        """Put the question to the judge whose turn it is, by the number of the rollout."""
        left = question.rollout
        for (judge, _), votes in zip(self._asked(), self._votes((0,)), strict=True):
            if left < votes:
                return await judge.ask(replace(question, rollout=left))
            left -= votes
        raise InputError(f"rollout {question.rollout} of a panel of {len(self._asked())} judges")

    def combine(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        """The weighted sum."""
        parts, given = [], iter(judgments)
        for (judge, _), votes in zip(self._asked(), self._votes(group), strict=True):
            parts.append(judge.combine(group, [next(given) for _ in range(votes)]))
        raw = "\n".join(part.raw for part in parts if part.raw)
        asks = sum(part.asks for part in parts)
        unknown = next((part for part in parts if part.score is None), None)
        if unknown is not None:
            return replace(unknown, raw=raw, asks=asks)
        pairs = zip(parts, self._asked(), strict=True)
        score = math.fsum((part.score or 0.0) * weight for part, (_, weight) in pairs)
        return replace(
            parts[0], score=score, confidence=None, confidence_source="none", raw=raw, asks=asks,
            probabilities=None,
        )  # fmt: skip

    def failure(self, error: BaseException) -> Failure:
        """As the language models' judges say of a model's error, and functions of any other."""
        of_model = isinstance(error, dspy.LMError | OSError)
        functions = [judge for judge in self.judges if not isinstance(judge, dspy.Module)]
        return calls.failure(error) if of_model or not functions else functions[0].failure(error)

    def __repr__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        pairs = zip(self.judges, self.settings["weights"], strict=True)
        return f"Panel({' '.join(f'{weight:+g} {judge!r}' for judge, weight in pairs)})"
