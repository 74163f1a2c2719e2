"""What a language model can do, found out by one tiny call to it."""

import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import dspy

from dspy_rerank import capability
from dspy_rerank.certainty import label_masses, place_of, read_tokens
from dspy_rerank.decisions import decides
from dspy_rerank.models.decision import probed
from dspy_rerank.prices import known_price, litellm_entry

QUESTION = "Which is a colour? A: blue  B: seven. Answer with the letter only."
PREFIX_WORDS = 1200
PREFIX = " ".join(f"word{number % 97}" for number in range(PREFIX_WORDS))
SCHEMA = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"letter": {"type": "string", "enum": ["A", "B"]}},
            "required": ["letter"],
            "additionalProperties": False,
        },
    },
}
ROOM = 64
"""Tokens for the answer: enough for a wrapped letter, too few for a model that thinks."""


@dataclass(frozen=True)
class Probe:
    """What one call told.

    Attributes:
        model: As DSPy names it.
        answer: What the model said.
        seconds: How long it took.
        logprobs: Whether log-probabilities came.
        top: Alternatives a token, at most.
        confidence: Probability of the right letter, where it can be told.
        thinks: The answer began with reasoning, so it cannot be scored by its first token.
        json_schema: Whether an answer kept to a schema; ``None`` where that was not tried.
        cached_tokens: Tokens of a prompt's beginning that a prompt cache had the second time;
            ``None`` where that was not tried or the provider does not say.
        context: Longest prompt in tokens, by the configuration, the engine or LiteLLM's table.
        prompt_price: US dollars a million tokens read, by the configuration or LiteLLM's table.
        completion_price: The same for tokens written.
        problem: Why there was no answer, or no log-probabilities; else empty.
    """

    model: str
    answer: str = ""
    seconds: float = 0.0
    logprobs: bool = False
    top: int = 0
    confidence: float | None = None
    thinks: bool = False
    json_schema: bool | None = None
    cached_tokens: int | None = None
    context: int | None = None
    prompt_price: float | None = None
    completion_price: float | None = None
    problem: str = ""

    @property
    def answered(self) -> bool:
        """Whether the model said anything."""
        return bool(self.answer)

    def to_dict(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)


def probe(
    lm: dspy.LM,
    *,
    table: str | None = None,
    thorough: bool = False,
    info: Mapping[str, Any] | None = None,
) -> Probe:
    """Ask a model one question and see what comes with the answer; judges remember it.

    A failing call is a result, not an error. The costs are one call, two or three where the model
    refuses log-probabilities; three more, two of them of `PREFIX_WORDS` words, if ``thorough``.

    Args:
        lm: The language model.
        table: The model's name in LiteLLM's table, to look its size and price up there, which
            imports LiteLLM.
        thorough: Try a JSON schema and the provider's prompt cache, too.
        info: What a configuration says of the model, as ``model_info``.
    """
    if decides(lm):
        return probed(lm)
    began = time.perf_counter()
    try:
        output = _ask(lm)
    except Exception as error:
        why = " ".join(str(error).split())[:300]
        return Probe(lm.model, problem=why, **_known(lm, table, info))
    took = time.perf_counter() - began
    text = output if isinstance(output, str) else str(output.get("text") or "")
    tokens = () if isinstance(output, str) else read_tokens(output.get("logprobs"))
    labels = {"A": (), "B": ()}
    masses = label_masses(tokens, place_of(tokens, text, None, ("A",)), labels)
    why = "" if tokens else capability.found(lm).why or "it gave no log-probabilities"
    return Probe(
        model=lm.model,
        answer=text,
        seconds=took,
        logprobs=bool(tokens),
        top=max((len(token.top) for token in tokens), default=0),
        confidence=masses.of["A"] if masses.of else None,
        thinks=text.lstrip().lower().startswith(("<think", "<|channel|>")),
        json_schema=_keeps_to_schema(lm) if thorough else None,
        cached_tokens=_cached_tokens(lm) if thorough else None,
        problem=why if text else "the answer was empty",
        **_known(lm, table, info),
    )


def _ask(lm: dspy.LM) -> Any:
    """One answer, without retries and caches; with log-probabilities unless they are refused."""
    single = lm.copy(num_retries=0)
    while True:
        asking = capability.asking(lm)
        try:
            (output,) = single(QUESTION, max_tokens=ROOM, cache=False, **asking)
            break
        except dspy.LMError as error:
            if not asking or not capability.refused(lm, error, asking):
                raise
    given = not isinstance(output, str) and bool(read_tokens(output.get("logprobs")))
    text = output if isinstance(output, str) else str(output.get("text") or "")
    if asking:
        capability.learn(lm, text, given)
    return output


def _keeps_to_schema(lm: dspy.LM) -> bool:
    """Whether an answer is what a JSON schema asks for."""
    single = lm.copy(num_retries=0)
    try:
        (output,) = single(QUESTION, max_tokens=ROOM, cache=False, response_format=SCHEMA)
        text = output if isinstance(output, str) else str(output.get("text") or "")
        return json.loads(text).get("letter") in ("A", "B")
    except (dspy.LMError, ValueError, AttributeError):
        return False


def _cached_tokens(lm: dspy.LM) -> int | None:
    """How much of a long prompt's beginning the provider reads from its cache when it comes again.

    Providers cache from 1,024 tokens on, and some only after a moment.
    """
    single, told = lm.copy(num_retries=0), None
    for ending in ("first", "second"):
        with dspy.track_usage() as tracker:
            try:
                single(f"{PREFIX}\n{ending}: {QUESTION}", max_tokens=ROOM, cache=False)
            except dspy.LMError:
                return None
        for used in tracker.get_total_tokens().values():
            details = used.get("prompt_tokens_details")
            told = details.get("cached_tokens") if isinstance(details, Mapping) else None
    return told


def _known(lm: Any, table: str | None, info: Mapping[str, Any] | None) -> dict[str, Any]:
    """Size and price: as configured, as the engine says, or by LiteLLM's table."""
    found = _looked_up(str((info or {}).get("base_model") or table) if table else None)
    price = known_price(lm)
    if price is not None:
        dollars = (round(1e6 * price.read, 6), round(1e6 * price.written, 6))
        found |= dict(zip(("prompt_price", "completion_price"), dollars, strict=True))
    configured = (info or {}).get("max_input_tokens")
    context = configured or getattr(getattr(lm, "engine", None), "n_ctx", None)
    return found | ({"context": context} if context else {})


def _looked_up(name: str | None) -> dict[str, Any]:
    """Size and price by LiteLLM's table; nothing where it does not know the model."""
    if name is None:
        return {}
    info = litellm_entry(name)
    if not info:
        return {}
    prices = {"prompt_price": "input_cost_per_token", "completion_price": "output_cost_per_token"}
    found = {ours: info.get(theirs) for ours, theirs in prices.items()}
    dear = {ours: round(price * 1e6, 6) if price else None for ours, price in found.items()}
    return {"context": info.get("max_input_tokens"), **dear}
