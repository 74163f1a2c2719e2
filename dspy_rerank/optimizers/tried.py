"""The prompts that an optimizer has tried, and what each was worth."""

import json
import math
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import dspy

from .judge_program import Prompt, prompt_of


class _Score(NamedTuple):
    """Of one answer, and how many had been scored with it when it first came."""

    value: float
    at: int


class Tried:
    """What each prompt that an optimizer has tried is worth, question by question."""

    def __init__(self) -> None:
        self._prompts: dict[str, Prompt] = {}
        self._scores: dict[str, dict[str, _Score]] = {}
        self._noted = 0
        self._lock = threading.Lock()

    def note(self, gold: Any, prediction: Any, value: Any) -> None:
        """Keep the score of an answer that says which prompt it comes from."""
        prompt = prompt_of(prediction)
        if prompt is None or not hasattr(gold, "inputs"):
            return
        score = float(value.score if isinstance(value, dspy.Prediction) else value)
        with self._lock:
            self._noted += 1
            self._prompts[prompt.key] = prompt
            scores = self._scores.setdefault(prompt.key, {})
            name = _name(gold)
            scores[name] = _Score(score, scores[name].at if name in scores else self._noted)

    def best(self, examples: Sequence[Any]) -> Prompt | None:
        """The prompt with the best mean on questions of which it was asked at least half.

        Of equally good ones the shortest is taken.
        """
        means = {key: _mean(scores) for key, scores in self._known(examples).items()}
        if not means:
            return None
        return self._prompts[min(means, key=lambda key: (-means[key], len(key), key))]

    def listed(self, examples: Sequence[Any]) -> list[dict[str, Any]]:
        """All prompts that were asked at least half of the questions, in the order of trying them.

        Prompts that were tried at the same time come best last, so that the order does not hang
        on threads. As JSON values: ``instructions``, the number of ``demos``, the mean ``value``
        on so many ``questions``, and how many answers were scored when it was known, ``after``.
        """
        known, listed, after = self._known(examples), [], 0
        for together in _waves(known):
            after += sum(len(known[key]) for key in together)
            for key in sorted(together, key=lambda key: (_mean(known[key]), key)):
                prompt, value = self._prompts[key], round(_mean(known[key]), 6)
                listed.append({
                    "instructions": prompt.instructions, "demos": len(prompt.demos),
                    "value": value, "questions": len(known[key]), "after": after,
                })  # fmt: skip
        return listed

    def _known(self, examples: Sequence[Any]) -> dict[str, list[_Score]]:
        """The scores on these questions, by prompt; without those asked less than half."""
        names = set(map(_name, examples))
        found = {
            key: [score for name, score in scores.items() if name in names]
            for key, scores in self._scores.items()
        }
        return {key: found[key] for key in found if 0 < len(names) <= 2 * len(found[key])}


def _waves(known: Mapping[str, Sequence[_Score]]) -> list[list[str]]:
    """Prompts in the order of their first answers, those whose times overlap together."""
    waves: list[list[str]] = []
    end = 0
    for key in sorted(known, key=lambda key: min(score.at for score in known[key])):
        if not waves or min(score.at for score in known[key]) > end:
            waves.append([])
        waves[-1].append(key)
        end = max(end, *(score.at for score in known[key]))
    return waves


def _mean(scores: Iterable[_Score]) -> float:
    """In no order: threads answer in any."""
    values = [score.value for score in scores]
    return math.fsum(values) / len(values)


def _name(example: Any) -> str:
    return json.dumps(dict(example.inputs()), sort_keys=True, default=str)
