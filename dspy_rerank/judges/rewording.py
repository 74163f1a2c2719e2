"""Signatures reworded for a judge: other instructions, and fields before or after its own."""

from typing import Any

import dspy

from ..reading.labels import clean
from .sureness import CONFIDENCE

REMINDER = "reminder"


def own_signature(
    signature: type[dspy.Signature] | str, instructions: str | None
) -> type[dspy.Signature]:
    """A class of the judge's own: DSPy optimizers may edit a shared signature in place."""
    made: Any = dspy.make_signature(signature) if isinstance(signature, str) else signature
    return instructed(made, clean(made.instructions if instructions is None else instructions))


def instructed(signature: type[dspy.Signature], text: str) -> type[dspy.Signature]:
    """The signature with other instructions; DSPy would fill in empty ones, but not blank ones."""
    return signature.with_instructions(text or " ")


def with_confidence(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """The signature with a statement of confidence asked for before its answer."""
    if CONFIDENCE in signature.output_fields:
        return signature
    field = dspy.OutputField(desc="probability from 0 to 1 that your answer is right")
    place = len(signature.output_fields) - 1
    grown = signature.insert(place, CONFIDENCE, field, type_=str)
    return instructed(grown, signature.instructions)


def with_reasoning(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """The signature with an explanation asked for before its outputs."""
    if "reasoning" in signature.output_fields:
        return signature
    field = dspy.OutputField(desc="a short explanation")
    return instructed(signature.prepend("reasoning", field, type_=str), signature.instructions)


def reminding(signature: type[dspy.Signature]) -> type[dspy.Signature]:
    """The signature with a last input that says why the question is asked again.

    It stands behind the passages, so the prompt's prefix stays byte-identical.
    """
    asked_again = signature.append(REMINDER, dspy.InputField(), type_=str)
    return instructed(asked_again, signature.instructions)
