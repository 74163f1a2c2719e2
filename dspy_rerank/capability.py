"""What a language model was found to give, learned from its own answers and refusals.

Tables of capabilities lie in both directions, so nothing is looked up: the first real question
asks for log-probabilities, and what comes back is remembered with the LM. No question is asked
only to find out.
"""

from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

MOST = 20
"""Alternatives a token to ask for: OpenAI's limit."""
FEW = 5
"""What to ask for when that is refused: some servers allow no more."""


@dataclass
class Found:
    """What is known of one LM.

    Attributes:
        top: Alternatives a token to ask for; 0 once it has refused to give any.
        gives: Whether log-probabilities came when asked for; ``None`` until tried.
        why: How it refused.
    """

    top: int = MOST
    gives: bool | None = None
    why: str = ""


_found: WeakKeyDictionary[Any, Found] = WeakKeyDictionary()


def found(lm: Any) -> Found:
    """What is known of an LM; engines that declare ``evidence`` are taken at their word."""
    try:
        if lm not in _found:
            _found[lm] = _declared(lm)
        return _found[lm]
    except TypeError:
        return _declared(lm)


def _declared(lm: Any) -> Found:
    evidence = getattr(getattr(lm, "engine", None), "evidence", None)
    if evidence is None:
        return Found()
    gives = "logprobs" in evidence
    return Found(MOST if gives else 0, gives, "" if gives else "its engine declares none")


def asking(lm: Any) -> dict[str, Any]:
    """Configuration that asks for log-probabilities; empty once the LM has refused them.

    One that merely gave none is asked for them still: that costs nothing, and requests that
    changed once it is known would miss the cache.
    """
    known = found(lm)
    return {"logprobs": True, "top_logprobs": known.top} if known.top else {}


def learn(lm: Any, text: str, given: bool) -> None:
    """Remember whether an answer came with the log-probabilities that were asked for."""
    if given or text.strip():
        found(lm).gives = given


def refused(lm: Any, error: BaseException, asked: int) -> bool:
    """Whether an error refuses log-probabilities; then the next call asks for fewer, or none.

    Args:
        lm: The language model.
        error: Of a call that asked for them.
        asked: How many alternatives it asked for; other calls may have learned meanwhile.
    """
    known = found(lm)
    if "logprob" not in str(error).lower():
        return False
    if known.top >= asked:
        known.top = FEW if asked > FEW else 0
    if not known.top:
        known.gives, known.why = False, str(error).partition("\n")[0][:200]
    return True
