"""How sure a judge's model was of an answer: by its tokens, or by its own statement."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import calls
from ..calibration import Calibration
from ..certainty import Masses, label_masses, place_of
from ..reading._claims import Grammar
from ..reading.answers import claimed_at
from ..types import Judgment

CONFIDENCE = "confidence"

_STATED = re.compile(rf"{CONFIDENCE}\W{{0,12}}?(\d{{1,3}}(?:[.,]\d+)?|\.\d+)\s*(%?)", re.IGNORECASE)


def token_masses(
    reply: calls.Reply,
    said: str,
    grammar: Grammar,
    labels: Mapping[str, Sequence[str]],
    answer: str,
) -> Masses:
    """Probabilities of the labels at the place where the answer was read.

    Args:
        reply: The call's completion and tokens.
        said: The answer field's text.
        grammar: By which the answer was read.
        labels: Each label with its further spellings.
        answer: The label that was read.
    """
    names = (answer, *labels[answer])
    place = place_of(reply.tokens, said, claimed_at(said, grammar), names)
    return label_masses(reply.tokens, place, labels)


def unsure(judgment: Judgment, why: str) -> Judgment:
    """The judgment without a confidence, and the reason for that."""
    reason = "; ".join(part for part in (judgment.reason, f"no confidence: {why}") if part)
    return replace(judgment, confidence=None, confidence_source="none", reason=reason)


def stated(judgment: Judgment, completion: str) -> Judgment:
    """The judgment with the confidence that the model wrote beside its answer."""
    *_, last = None, *_STATED.finditer(completion)
    if last is None:
        return unsure(judgment, "the model stated none")
    number = float(last[1].replace(",", "."))
    sure = number / 100 if last[2] or number > 1 else number
    if sure > 1:
        return unsure(judgment, f"the model stated {last[0][:40]!r}")
    return replace(judgment, confidence=sure, confidence_source="stated", evidence="stated")


def calibrated(judgment: Judgment, calibration: Mapping[str, Any] | None) -> Judgment:
    """The judgment with its confidence as a probability fitted on labels."""
    if calibration is None or judgment.confidence is None:
        return judgment
    return replace(judgment, confidence=Calibration.from_dict(calibration)(judgment.confidence))
