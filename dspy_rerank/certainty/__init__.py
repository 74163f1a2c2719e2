"""Token log-probabilities, and what can be concluded from them. Pure, no model is called."""

from ._masses import DOUBT, Masses, label_masses, place_of
from ._tokens import ROUNDING, Token, mean_logprob, read_tokens, why_unusable

__all__ = [
    "DOUBT",
    "ROUNDING",
    "Masses",
    "Token",
    "label_masses",
    "mean_logprob",
    "place_of",
    "read_tokens",
    "why_unusable",
]
