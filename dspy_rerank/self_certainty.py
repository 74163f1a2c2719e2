"""How sure a model was of a text, from the log-probabilities of its tokens."""

import math
from collections.abc import Callable, Mapping, Sequence
from numbers import Real
from typing import Any

from .certainty import Token, mean_logprob, read_tokens, why_unusable
from .errors import EvidenceError, InputError

REPEAT = "Repeat the following text exactly and write nothing else.\n\n"


def self_certainty(
    source: Any, *, logprobs: Any = None, lm: Any = None, method: str = "mean"
) -> float:
    """Confidence in [0, 1] of a generated text, independent of its length.

    Args:
        source: A DSPy prediction, a response of DSPy, LiteLLM, OpenAI (chat, text completions,
            responses) or Gemini, a list of entries with ``token`` and ``logprob``, of plain
            log-probabilities, or a text. Of several choices the first counts. Gemini's
            ``avgLogprobs`` alone are enough for ``mean``.
        logprobs: Log-probabilities of a text, in any of these shapes.
        lm: For a text without log-probabilities: a DSPy LM to read it back. A model that can
            score a text does so; any other is asked to repeat it, in one call. Repeating measures
            copying more than belief, so this is weak evidence, and happens only when asked for.
        method: ``mean`` is ``exp(mean logprob)`` (the inverse perplexity), ``min`` the least sure
            token's probability. From the alternatives, which providers cut to the top few, so
            these are estimates: ``margin`` is the mean lead of the first over the second,
            ``entropy`` one minus the mean entropy over its maximum, ``kl`` one minus ``exp``
            of the negative mean divergence of a uniform choice from the model's (self-certainty,
            Kang et al. 2025, arXiv:2502.18581, there over the whole vocabulary and unbounded).

    Raises:
        InputError: The method is unknown.
        EvidenceError: There are no log-probabilities; the message names two ways out.
    """
    if method not in METHODS:
        raise InputError(f"method={method!r}; expected one of {', '.join(METHODS)}")
    given = source if logprobs is None else logprobs
    tokens = tokens_of(given)
    if not tokens and isinstance(source, str) and lm is not None:
        tokens = _read_back(source, lm)
    average = _average(given) if not tokens and method == "mean" else None
    if average is not None:
        tokens = (Token("", average),)
    if not tokens:
        raise EvidenceError(_nothing(source, given, lm))
    return METHODS[method](tokens)


_LOGPROBS = ("logprobs", "logprobs_result", "logprobsResult")
_ANSWERS = ("choices", "candidates")


def tokens_of(source: Any) -> tuple[Token, ...]:
    """Token log-probabilities of a prediction, a response or a list; empty when there are none."""
    if source is None or isinstance(source, str | bytes):
        return ()
    source = source.tolist() if hasattr(source, "tolist") else source
    if isinstance(source, list | tuple):
        return _listed(source)
    places = [*(_get(source, name) for name in _LOGPROBS), source]
    found = next((tokens for tokens in map(read_tokens, places) if tokens), ())
    answer = _first_answer(source)
    return found or (tokens_of(answer) if answer is not None else _spoken(source))


def _first_answer(source: Any) -> Any:
    answers = next((a for a in (_get(source, name) for name in _ANSWERS) if a), None)
    return answers[0] if isinstance(answers, list | tuple) else None


def _spoken(source: Any) -> tuple[Token, ...]:
    """Tokens of OpenAI's responses, which hold them with each part of each output."""
    outputs = _get(source, "output")
    items = outputs if isinstance(outputs, list | tuple) else ()
    parts = [part for item in items for part in _get(item, "content") or ()]
    return read_tokens([entry for part in parts for entry in _get(part, "logprobs") or ()])


def _average(source: Any) -> float | None:
    """Gemini's mean log-probability of a whole answer."""
    names = ("avg_logprobs", "avgLogprobs")
    answer = _first_answer(source)
    places = (source, answer) if not isinstance(source, str | list | tuple) else ()
    numbers = [_get(place, name) for place in places if place is not None for name in names]
    tokens = [token for n in numbers for token in read_tokens([{"token": "", "logprob": n}])]
    return tokens[0].logprob if tokens else None


def _listed(source: Sequence[Any]) -> tuple[Token, ...]:
    """Tokens of a list of entries, of plain numbers, or of what calling a DSPy LM returns."""
    if source and isinstance(source[0], Real):
        return read_tokens([{"token": "", "logprob": value} for value in source])
    if len(source) == 1 and read_tokens(source) == ():
        return tokens_of(source[0])
    return read_tokens(source)


def _get(source: Any, name: str) -> Any:
    if isinstance(source, Mapping) or hasattr(source, "toDict"):
        return source.get(name)
    return getattr(source, name, None)


def _read_back(text: str, lm: Any) -> tuple[Token, ...]:
    from .calls import offered_evidence, scoring

    if "likelihood" in offered_evidence(lm):
        outputs = lm("Text:", **scoring(text))
    else:
        outputs = lm(REPEAT + text, logprobs=True, top_logprobs=5, temperature=0.0)
    return tokens_of(outputs[0]) if isinstance(outputs[0], Mapping) else ()


def _nothing(source: Any, given: Any, lm: Any) -> str:
    model = getattr(lm, "model", None) or _get(source, "model") or "the model"
    broken = why_unusable(_get(given, "logprobs") or given)
    why = f" that can be used: {broken}" if broken else ""
    return (
        f"{model} gave no token log-probabilities{why}. Either ask for them when generating "
        "(dspy.LM(..., logprobs=True, top_logprobs=5), with a model that has them), or pass the "
        "text with lm= to have a model read it back, which is weaker"
    )


def _mean(tokens: Sequence[Token]) -> float:
    return min(1.0, math.exp(mean_logprob(tokens) or 0.0))


def _least(tokens: Sequence[Token]) -> float:
    return min(1.0, math.exp(min(token.logprob for token in tokens)))


def _over_alternatives(measure: Callable[[list[float]], float]) -> Callable[..., float]:
    def averaged(tokens: Sequence[Token]) -> float:
        known = [_distribution(token) for token in tokens if len(token.top) > 1]
        if not known:
            raise EvidenceError(
                "this method needs the alternatives of each token; "
                "ask for them with top_logprobs=5, or use method='mean'"
            )
        return math.fsum(map(measure, known)) / len(known)

    return averaged


def _distribution(token: Token) -> list[float]:
    """Probabilities of the alternatives given, made to sum to one, falling."""
    most = max(logprob for _, logprob in token.top)
    masses = sorted((math.exp(logprob - most) for _, logprob in token.top), reverse=True)
    total = math.fsum(masses)
    return [mass / total for mass in masses]


def _margin(masses: list[float]) -> float:
    return masses[0] - masses[1]


def _certainty(masses: list[float]) -> float:
    entropy = -math.fsum(mass * math.log(mass) for mass in masses if mass > 0)
    return max(0.0, 1 - entropy / math.log(len(masses)))


def _divergence(masses: list[float]) -> float:
    """KL(uniform || masses), squashed: it has no maximum, so ``1 - exp(-kl)``."""
    uniform = 1 / len(masses)
    kl = math.fsum(uniform * math.log(uniform / max(mass, 1e-12)) for mass in masses)
    return 1 - math.exp(-kl)


METHODS: dict[str, Callable[[Sequence[Token]], float]] = {
    "mean": _mean,
    "min": _least,
    "margin": _over_alternatives(_margin),
    "entropy": _over_alternatives(_certainty),
    "kl": _over_alternatives(_divergence),
}
