"""Judges and servers that are always right, by grades that the test knows."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..judges import FunctionJudge
from ..types import Kind
from .completions import completion
from .requests import Asked

_LABELLED = re.compile(r"^Passage \[([A-Z]+|\d+)\]: (.*)$", re.MULTILINE)
_SINGLE = re.compile(r"^Passage: (.*)$", re.MULTILINE)


def oracle_judge(grades: Mapping[str, float], kind: Kind) -> FunctionJudge:
    """A judge that is always right: it looks every passage's grade up by its text.

    Ties go to the passage that is shown first.
    """

    def judge(query: str, passages: Sequence[str]) -> Any:
        known = [grades[passage] for passage in passages]
        places = sorted(range(len(known)), key=lambda place: -known[place])
        if kind == "pointwise":
            return known[0]
        if kind == "pairwise":
            return known[0] - known[1]
        return places if kind == "listwise" else places[0]

    return FunctionJudge(judge, kind)


def oracle_answers(
    grades: Mapping[str, float], *, sure: float = 0.9
) -> Callable[[Asked], dict[str, Any]]:
    """What a server says that is always right, for prompts of the compact adapter.

    It reads the labels and passages of the prompt: numbers are ordered, of letters the best is
    named, a passage without a label is graded. Ties go to the passage that is shown first.

    Args:
        grades: By passage, which is one line of text.
        sure: Probability of the answer, where log-probabilities are asked for.

    Returns:
        A function for :class:`FaultServer`. It raises ``ValueError`` at a prompt without passages
        and ``KeyError`` at a passage without a grade.
    """

    def answer(asked: Asked) -> dict[str, Any]:
        said, others = _said(asked.prompt, grades)
        rest = {other: (1 - sure) / len(others) for other in others}
        odds = {said: sure, **rest} if asked.body.get("logprobs") else None
        words = len(asked.prompt.split())
        return completion(said, odds=odds, prompt_tokens=words, model=asked.model)

    return answer


def answer_to(prompt: str, grades: Mapping[str, float]) -> str:
    """The right answer to a prompt of the compact adapter, by the grades of its passages."""
    return _said(prompt, grades)[0]


def _said(prompt: str, grades: Mapping[str, float]) -> tuple[str, list[str]]:
    """The right answer to a prompt, and the wrong ones where they can be told."""
    shown = _LABELLED.findall(prompt)
    if not shown:
        (passage,) = _SINGLE.findall(prompt)
        said = f"{grades[passage]:g}"
        return said, [level for level in "0123" if level != said]
    best = sorted(shown, key=lambda entry: -grades[entry[1]])
    if shown[0][0].isdigit():
        return " > ".join(f"[{label}]" for label, _ in best), ["[]"]
    return best[0][0], [label for label, _ in best[1:]] or ["None"]
