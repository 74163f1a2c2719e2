"""What each fault must lead to."""

import dspy

from dspy_rerank.testing.faults import CATALOGUE

HARMLESS, RETRIED, LASTING, FATAL, UNREAD, STALLED, REFUSED = (
    "harmless", "retried", "lasting", "fatal", "unread", "stalled", "refused"
)  # fmt: skip

_EFFECTS = {
    RETRIED: (
        "rate limit, Retry-After None", "rate limit, Retry-After 0", "rate limit, dated",
        "rate limit, nonsense", "status 500", "status 502", "status 503", "status 504",
        "status 529", "reset", "half a body", "invalid JSON", "gateway's page",
        "error as success", "no choices",
    ),
    FATAL: ("wrong key", "forbidden", "no such model"),
    LASTING: ("prompt too long", "content filter, error"),
    REFUSED: ("logprobs refused",),
    UNREAD: ("content filter, finish", "null content", "prose", "only reasoning"),
    STALLED: ("endless body", "no answer", "late"),
    HARMLESS: (
        "no usage", "another model", "finish length", "finish None", "finish tool_calls",
        "reasoning inline", "reasoning beside", "no logprobs", "broken logprobs",
    ),
}  # fmt: skip
_BY_ENGINE = {
    # DSPy's own client and LiteLLM read a completion without choices as an empty answer.
    ("native", "no choices"): UNREAD,
    ("litellm", "no choices"): UNREAD,
    # The direct engine stops reading what is far too long for an answer.
    ("direct", "endless body"): RETRIED,
    # DSPy's own client fails on them; the right answer beside them is lost.
    ("native", "broken logprobs"): RETRIED,
}
_EFFECT = {name: effect for effect, names in _EFFECTS.items() for name in names}
assert set(_EFFECT) == set(CATALOGUE), set(_EFFECT) ^ set(CATALOGUE)

FATAL_TYPES = (dspy.LMAuthError, dspy.LMUnsupportedModelError)


def effect(fault, engine):
    """What a fault leads to by an engine."""
    return _BY_ENGINE.get((engine, fault), _EFFECT[fault])
