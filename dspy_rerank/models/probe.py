"""What a language model can do, found out by one tiny call to it."""

import time
from dataclasses import asdict, dataclass
from typing import Any

import dspy

from dspy_rerank import capability
from dspy_rerank.certainty import label_masses, place_of, read_tokens

QUESTION = "Which is a colour? A: blue  B: seven. Answer with the letter only."
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
        json_schema: Whether a schema can be sent along, by DSPy's tables; not tried.
        context: Longest prompt in tokens, by LiteLLM's table, if it is known.
        prompt_price: US dollars a million tokens read, by LiteLLM's table, if it is known.
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


def probe(lm: dspy.LM, *, table: str | None = None) -> Probe:
    """Ask a model one question and see what comes with the answer; judges remember it.

    A failing call is a result, not an error. The costs are one call, two or three where the model
    refuses log-probabilities.

    Args:
        lm: The language model.
        table: The model's name in LiteLLM's table, to look its size and price up there, which
            imports LiteLLM.
    """
    began = time.perf_counter()
    try:
        output = _ask(lm)
    except Exception as error:
        return Probe(lm.model, problem=" ".join(str(error).split())[:300], **_looked_up(table))
    text = output if isinstance(output, str) else str(output.get("text") or "")
    tokens = () if isinstance(output, str) else read_tokens(output.get("logprobs"))
    labels = {"A": (), "B": ()}
    masses = label_masses(tokens, place_of(tokens, text, None, ("A",)), labels)
    why = "" if tokens else capability.found(lm).why or "it gave no log-probabilities"
    return Probe(
        model=lm.model,
        answer=text,
        seconds=time.perf_counter() - began,
        logprobs=bool(tokens),
        top=max((len(token.top) for token in tokens), default=0),
        confidence=masses.of["A"] if masses.of else None,
        thinks=text.lstrip().lower().startswith(("<think", "<|channel|>")),
        json_schema=_schema(lm),
        problem=why if text else "the answer was empty",
        **_looked_up(table),
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
            if not asking or not capability.refused(lm, error, asking["top_logprobs"]):
                raise
    given = not isinstance(output, str) and bool(read_tokens(output.get("logprobs")))
    text = output if isinstance(output, str) else str(output.get("text") or "")
    if asking:
        capability.learn(lm, text, given)
    return output


def _schema(lm: dspy.LM) -> bool | None:
    try:
        return bool(lm.supports_response_schema)
    except Exception:
        return None


def _looked_up(name: str | None) -> dict[str, Any]:
    """Size and price by LiteLLM's table; nothing where it does not know the model."""
    if name is None:
        return {}
    from litellm.utils import get_model_info

    try:
        info: Any = get_model_info(name)
    except Exception:
        return {}
    prices = {"prompt_price": "input_cost_per_token", "completion_price": "output_cost_per_token"}
    found = {ours: info.get(theirs) for ours, theirs in prices.items()}
    dear = {ours: round(price * 1e6, 6) if price else None for ours, price in found.items()}
    return {"context": info.get("max_input_tokens"), **dear}
