"""Decision models ("System One"): one request, and probabilities of given answers come back.

DSPy's own client, `dspy.experimental.TypeSafe`, speaks to them. What many small questions need
beside it is here: kept connections, one try, DSPy's errors, and answers that fit their questions.
"""

import asyncio
import copy
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Self
from weakref import WeakKeyDictionary

import dspy
from dspy import experimental
from dspy.utils.callback import with_callbacks
from dspy.utils.exceptions import (
    AdapterParseError,
    LMAuthError,
    LMBillingError,
    LMConfigurationError,
    LMInvalidRequestError,
    LMProviderError,
    LMRateLimitError,
    LMServerError,
    LMTimeoutError,
    LMTransportError,
    LMUnsupportedModelError,
)

from .errors import MissingExtraError

KEY_VARIABLE = "TYPESAFE_API_KEY"
MISSING = "decision models need the TypeSafe SDK: pip install 'dspy-rerank[decision]'"

TypeSafe: Any = experimental.TypeSafe
_ANSWERS: Any = dspy.make_signature("state -> answers")
_BY_STATUS: Mapping[int, type[LMProviderError]] = {
    401: LMAuthError,
    402: LMBillingError,
    403: LMAuthError,
    404: LMUnsupportedModelError,
    408: LMTimeoutError,
    429: LMRateLimitError,
    504: LMTimeoutError,
}


def decides(lm: Any) -> bool:
    """Whether a client answers with probabilities of given options, and writes no text."""
    return getattr(lm, "supports_decision_requests", False) is True


class SystemOne(TypeSafe):
    """`dspy.experimental.TypeSafe` for many small questions.

    Connections are kept: a client for each call takes 27 ms of CPU on loopback, a kept one 1.7.
    A call is tried once, since a ranking has retries of its own. Failures are DSPy's errors and
    never hold the key. An answer that does not fit its question is an
    `dspy.utils.exceptions.AdapterParseError`, and is not cached.

    Args:
        model: As the server names it.
        api_key: A key, or an object whose ``reveal()`` gives it when it is needed.
        options: ``base_url``, ``cache``, ``timeout`` and ``callbacks`` as TypeSafe takes them.
    """

    def __init__(
        self,
        model: str | None = None,
        *,
        api_key: Any = None,
        **options: Any,
    ):
        super().__init__(model, api_key=api_key, **options)
        self.price: Any = None
        self.kwargs = {"base_url": self.base_url}
        self._by_loop: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    @classmethod
    def like(cls, client: Any) -> "SystemOne":
        """The same model with the same settings and history."""
        made = cls(
            client.model, api_key=client.api_key, base_url=client.base_url, cache=client.cache,
            timeout=client.timeout,
        )  # fmt: skip
        made.callbacks, made.history = client.callbacks, client.history
        return made

    def copy(self, **kwargs: Any) -> Any:
        """The same model with other settings and an empty history."""
        made = super().copy(**kwargs)
        made.price = self.price
        return made

    @with_callbacks
    def __call__(self, state: Any, questions: Mapping[str, Any]) -> Any:
        """The answer to each question about a state."""
        request, known = self._looked_up(state, questions)
        if known is not None:
            return self._finish(request, known, True)
        with self._speaking():
            said = self._client.system_one(state=state, questions=questions)
        return self._checked(request, self._response(said))

    @with_callbacks
    async def acall(self, state: Any, questions: Mapping[str, Any]) -> Any:
        """The same for coroutines."""
        request, known = self._looked_up(state, questions)
        if known is not None:
            return self._finish(request, known, True)
        with self._speaking():
            said = await self._async_client().system_one(state=state, questions=questions)
        return self._checked(request, self._response(said))

    def _looked_up(self, state: Any, questions: Any) -> tuple[dict[str, Any], Any]:
        request = self._request(state, questions)
        return request, dspy.cache.get(request) if self.cache else None

    def _checked(self, request: dict[str, Any], response: dict[str, Any]) -> Any:
        """The answers, counted in any case, kept only where they fit."""
        problem = misfit(request["questions"], response["answers"])
        if not problem:
            return self._finish(request, response, False)
        uncached = copy.copy(self)
        uncached.cache = False
        raise MisfitError(problem, uncached._finish(request, response, False))

    @cached_property
    def _client(self) -> Any:
        return _sdk().TypeSafeClient(**self._sdk_kwargs())

    def _async_client(self) -> Any:
        loop = asyncio.get_running_loop()
        if loop not in self._by_loop:
            self._by_loop[loop] = _sdk().AsyncTypeSafeClient(**self._sdk_kwargs())
        return self._by_loop[loop]

    def _sdk_kwargs(self) -> dict[str, Any]:
        once = _sdk().RetryPolicy(max_retries=0)
        return {**super()._sdk_kwargs(), "api_key": self._key(), "retry": once}

    def _key(self) -> str | None:
        reveal = getattr(self.api_key, "reveal", None)
        return reveal() if reveal else self.api_key

    @contextmanager
    def _speaking(self) -> Iterator[None]:
        """The SDK's errors in DSPy's terms, without keys."""
        problem = None
        try:
            yield
        except _sdk().TypeSafeError as error:
            secrets = (self._key(), os.environ.get(KEY_VARIABLE))
            problem = translated(error, self.model, [s for s in secrets if s])
        if problem is not None:  # raised out here, it does not refer to what the SDK said
            raise problem

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        """Settings alone: no connections, no history, and of a key what its own pickle shows."""
        names = ("model", "base_url", "cache", "timeout", "api_key")
        return _restored, ({name: getattr(self, name) for name in names}, self.price)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.model!r}, base_url={self.base_url!r})"


def _restored(settings: dict[str, Any], price: Any) -> SystemOne:
    made = SystemOne(settings.pop("model"), **settings)
    made.price = price
    return made


_tried_once: WeakKeyDictionary[Any, SystemOne] = WeakKeyDictionary()


def once(lm: Any) -> Any:
    """The decision client to ask: DSPy's own is replaced by `SystemOne`, others are as they are."""
    if type(lm) is not TypeSafe:
        return lm
    made = _tried_once.get(lm)
    if made is None or made.history is not lm.history:
        made = _tried_once[lm] = SystemOne.like(lm)
    return made


def _sdk() -> Any:
    """The TypeSafe SDK.

    Raises:
        MissingExtraError: It is not installed.
    """
    try:
        import typesafe_sdk
    except ImportError:
        raise MissingExtraError(MISSING) from None
    return typesafe_sdk


class MisfitError(AdapterParseError):
    """An answer that does not fit its question; ``problem`` says how."""

    def __init__(self, problem: str, said: Any):
        super().__init__("System One", _ANSWERS, str(said)[:500], problem)
        self.problem = problem


def translated(error: Any, model: str, secrets: list[str]) -> Exception:
    """A failure of the SDK as DSPy's error of that kind.

    Args:
        error: Any ``typesafe_sdk.TypeSafeError``.
        model: To name.
        secrets: Blotted out of the message.
    """
    sdk = _sdk()
    said = " ".join(str(error).split())[:500]
    for secret in secrets:
        said = said.replace(secret, "***")
    if isinstance(error, sdk.TypeSafeAPIResponseValidationError):
        return MisfitError(said, "")
    if isinstance(error, sdk.TypeSafeAPITimeoutError):
        return LMTimeoutError(said, model=model)
    if isinstance(error, sdk.TypeSafeAPIConnectionError):
        return LMTransportError(said, model=model)
    if not isinstance(error, sdk.TypeSafeAPIError):
        return LMConfigurationError(said, model=model)
    return _of_status(error.status, said)(
        said, model=model, status=error.status, retry_after=_retry_after(error)
    )


def _of_status(status: int, said: str) -> type[LMProviderError]:
    if status == 400 and "unknown model" in said.lower():
        return LMUnsupportedModelError
    return _BY_STATUS.get(status) or (LMInvalidRequestError if status < 500 else LMServerError)


def _retry_after(error: Any) -> float | None:
    asked = getattr(error, "retry_after_ms", None)
    if asked is not None:
        return asked / 1000
    try:
        return float(error.headers.get("retry-after"))
    except (TypeError, ValueError):
        return None


def misfit(questions: Mapping[str, Any], answers: Mapping[str, Any]) -> str:
    """Why answers do not fit their questions; empty when they do."""
    for name, question in questions.items():
        answer = answers.get(name)
        if answer is None:
            return f"there is no answer to {name!r}"
        if question["type"] == "noul":
            if not _probability(answer.get("noul")):
                return f"{name!r} has no probability from 0 to 1"
            continue
        given = answer.get("probabilities") or {}
        criteria = question["criteria"]
        wanted = criteria if isinstance(criteria, Mapping) else range(len(criteria))
        if {str(key) for key in given} != {str(key) for key in wanted}:
            return f"the probabilities of {name!r} are not those of its options"
        if not all(map(_probability, given.values())) or sum(given.values()) <= 0:
            return f"the probabilities of {name!r} are no distribution"
        if not _probability(answer.get("confidence")):
            return f"{name!r} has no confidence from 0 to 1"
    return ""


def _probability(value: Any) -> bool:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return number and math.isfinite(value) and 0 <= value <= 1
