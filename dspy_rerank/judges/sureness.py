"""How sure a judge's model was of an answer: by its tokens, or by its own statement."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from .. import calls
from ..calibration import Calibration, standings
from ..capability import Found
from ..certainty import DOUBT, Masses, label_masses, place_of
from ..reading._claims import Grammar
from ..reading.answers import claimed_at
from ..types import Judgment

CONFIDENCE = "confidence"
NO_CONFIDENCE = "no confidence: "

THOUGHT = (
    "the model thought before it answered, which decides the answer's tokens; "
    "evidence='logprobs' keeps it from that where it can"
)

_STATED = re.compile(rf"{CONFIDENCE}\W{{0,12}}?(\d{{1,3}}(?:[.,]\d+)?|\.\d+)\s*(%?)", re.IGNORECASE)


def token_masses(
    reply: calls.Reply,
    said: str,
    grammar: Grammar,
    labels: Mapping[str, Sequence[str]],
    answer: str,
    field: str = "",
) -> Masses:
    """Probabilities of the labels at the place where the answer was read.

    Args:
        reply: The call's completion and tokens.
        said: The answer field's text.
        grammar: By which the answer was read.
        labels: Each label with its further spellings.
        answer: The label that was read.
        field: The name of the answer field.
    """
    names = (answer, *labels[answer])
    at = claimed_at(said, grammar)
    place = place_of(reply.tokens, said, at, names, field=field, text=reply.text)
    return label_masses(reply.tokens, place, labels)


def by_tokens(
    judgment: Judgment,
    masses: Masses,
    weigh: Callable[[Judgment, Mapping[str, float]], Judgment],
    reply: calls.Reply,
    known: Found,
) -> Judgment:
    """The judgment weighed by the labels' probabilities, or why they cannot be told.

    Args:
        judgment: As it was read.
        masses: The labels' probabilities.
        weigh: What a judge makes of them.
        reply: The call's completion and tokens.
        known: Of the model.
    """
    if masses.of is None:
        return unsure(judgment, masses.why if reply.tokens else known.why or masses.why)
    told = replace(weigh(judgment, masses.of), confidence_source="logprob", evidence="logprobs")
    if masses.missed > DOUBT:
        share = f"up to {masses.missed:.0%} of the probability"
        return unsure(told, f"{share} may lie on labels outside of the alternatives given")
    why = f"the model thought before it answered: {known.loud}" if reply.thought else ""
    return replace(told, reason="; ".join(part for part in (told.reason, why) if part))


def unfinished(reply: calls.Reply, text: str | None) -> str:
    """That reasoning took all the room there was, if it did; else empty."""
    if not reply.thought or (text or "").strip():
        return ""
    return "the model was still thinking when its answer ended; more max_tokens may help"


def unsure(judgment: Judgment, why: str) -> Judgment:
    """The judgment without a confidence, and the reason for that."""
    reason = "; ".join(part for part in (judgment.reason, f"{NO_CONFIDENCE}{why}") if part)
    return replace(judgment, confidence=None, confidence_source="none", reason=reason)


def wanting(judge: Any, judgments: Sequence[Judgment]) -> tuple[str, ...]:
    """What to say, once a ranking, of evidence that a judge is set to and answers came without."""
    settings: Any = getattr(judge, "settings", None)
    set_to = None if settings is None else settings.values.get("evidence")
    if set_to not in ("logprobs", "stated"):
        return ()
    bare = [j for j in judgments if j.known and j.confidence is None]
    reasons = [j.reason.partition(NO_CONFIDENCE)[2] for j in bare if NO_CONFIDENCE in j.reason]
    if not reasons:
        return ()
    known = sum(judgment.known for judgment in judgments)
    why = Counter(reasons).most_common(1)[0][0]
    return (f"evidence={set_to!r}, but {len(bare)} of {known} answers have none: {why}",)


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


def relevances(judgments: Sequence[Judgment], calibration: Mapping[str, Any]) -> list[Judgment]:
    """All likelihoods of one query with how probably each passage is relevant.

    The confidence is that of the likelier of relevant and not; scores stay as they are.
    """
    known = [judgment for judgment in judgments if judgment.score is not None]
    places = standings([judgment.score or 0.0 for judgment in known])
    if places is None:
        return list(judgments)
    chance = Calibration.from_dict(calibration)
    chances = iter(map(chance, places))
    return [j if j.score is None else _relevant(j, next(chances)) for j in judgments]


def _relevant(judgment: Judgment, chance: float) -> Judgment:
    sure = max(chance, 1 - chance)
    return replace(judgment, confidence=sure, confidence_source="logprob", probabilities=(chance,))
