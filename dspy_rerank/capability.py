"""What a language model was found to give, learned from its own answers and refusals.

Tables of capabilities lie in both directions, so nothing is looked up: the first real question
asks for log-probabilities, and what comes back is remembered with the LM. No question is asked
only to find out. Reasoning decides an answer before its first token, so a model that is seen to
think is asked not to, by the ways that its servers know.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

MOST = 20
"""Alternatives a token to ask for: OpenAI's limit."""
FEW = 5
"""What to ask for when that is refused: some servers allow no more."""

BY_EFFORT = {"reasoning_effort": "none"}
"""OpenAI, Gemini, Groq, Ollama and newer vLLM; LiteLLM translates it."""
BY_TEMPLATE = {"chat_template_kwargs": {"enable_thinking": False}}
"""vLLM, SGLang and llama.cpp, for models whose chat template knows the switch."""

_ABOUT_THINKING = re.compile(r"reasoning|thinking?\b|chat_template|effort", re.IGNORECASE)


@dataclass
class Found:
    """What is known of one LM.

    Attributes:
        top: Alternatives a token to ask for; 0 once it has refused to give any.
        gives: Whether log-probabilities came when asked for; ``None`` until tried.
        why: How it refused.
        ways: How it may be asked not to think, the first of them next.
        thinks: It was seen to think, and is asked not to by the first of the ways left.
        loud: Why it thinks nevertheless.
    """

    top: int = MOST
    gives: bool | None = None
    why: str = ""
    ways: tuple[Mapping[str, Any], ...] = ()
    thinks: bool = False
    loud: str = ""

    @property
    def hush(self) -> Mapping[str, Any]:
        """Configuration that asks not to think; empty where that is not needed or of no use."""
        return self.ways[0] if self.thinks and self.ways else {}


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
    engine = getattr(lm, "engine", None)
    ways = tuple(_merged(lm, way) for way in _ways(engine))
    evidence = getattr(engine, "evidence", None)
    if evidence is None:
        return Found(ways=ways)
    gives = "logprobs" in evidence
    why = "" if gives else "its engine declares none"
    return Found(MOST if gives else 0, gives, why, ways)


def _ways(engine: Any) -> Sequence[Mapping[str, Any]]:
    """How thinking is switched off: as an engine object declares, or by DSPy's and LiteLLM's."""
    if isinstance(engine, str):
        return (BY_EFFORT,) if engine == "lm15" else (BY_EFFORT, {"extra_body": BY_TEMPLATE})
    return getattr(engine, "thinking_off", ())


def _merged(lm: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Configuration that keeps what the LM sends anyway under the same names."""
    own = getattr(lm, "kwargs", None) or {}
    return {name: _both(own.get(name), value) for name, value in config.items()}


def _both(own: Any, value: Any) -> Any:
    if not isinstance(own, Mapping) or not isinstance(value, Mapping):
        return value
    return {**own, **{name: _both(own.get(name), inner) for name, inner in value.items()}}


def asking(lm: Any, *, quietly: bool = False, labels: Sequence[str] = ()) -> dict[str, Any]:
    """Configuration that asks for log-probabilities; empty once the LM has refused them.

    One that merely gave none is asked for them still: that costs nothing, and requests that
    changed once it is known would miss the cache.

    Args:
        lm: The language model.
        quietly: Ask it not to think, too, once it was seen to.
        labels: All possible answers, for engines that measure them one by one.
    """
    known = found(lm)
    if not known.top:
        return {}
    if labels and getattr(getattr(lm, "engine", None), "scores_labels", False):
        more: Mapping[str, Any] = _merged(lm, {"metadata": {"labels": list(labels)}})
    else:
        more = known.hush if quietly else {}
    return {"logprobs": True, "top_logprobs": known.top, **more}


def learn(lm: Any, text: str, given: bool) -> None:
    """Remember whether an answer came with the log-probabilities that were asked for."""
    if given or text.strip():
        found(lm).gives = given


def refused(lm: Any, error: BaseException, asked: Mapping[str, Any]) -> bool:
    """Whether an error refuses what was asked for beside an answer; then the next call asks less.

    Args:
        lm: The language model.
        error: Of the call.
        asked: What `asking` gave for it; other calls may have learned meanwhile.
    """
    known, said = found(lm), str(error)
    top = asked.get("top_logprobs", 0)
    if top and "logprob" in said.lower():
        if known.top >= top:
            known.top = FEW if top > FEW else 0
        if not known.top:
            known.gives, known.why = False, said.partition("\n")[0][:200]
        return True
    way = _way(known, asked)
    if way is None or not _ABOUT_THINKING.search(said):
        return False
    _strike(known, way, said.partition("\n")[0][:200])
    return True


def thought(lm: Any, asked: Mapping[str, Any]) -> bool:
    """That an LM thought before it answered; whether asking again may keep it from that.

    Args:
        lm: The language model.
        asked: What `asking` gave for the call.
    """
    known = found(lm)
    known.thinks = True
    way = _way(known, asked)
    if way is not None:
        _strike(known, way, "asked not to, it thinks all the same")
    elif not known.ways:
        known.loud = known.loud or "nothing is known that keeps it from that"
    return bool(known.ways)


def _way(known: Found, asked: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """By which of the ways a call had asked not to think, if it is not struck out already."""
    held = (way for way in known.ways if all(asked.get(n) == v for n, v in way.items()))
    return next(held, None)


def _strike(known: Found, way: Mapping[str, Any], why: str) -> None:
    known.ways = tuple(other for other in known.ways if other != way)
    known.loud = "" if known.ways else why
