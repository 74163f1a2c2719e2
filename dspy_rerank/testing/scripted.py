"""Language models that answer from a script."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import dspy
from dspy.lm15 import (
    Message,
    Request,
    Response,
    TextPart,
    TokenLogprob,
    TopLogprob,
    Usage,
    response_to_events,
)

Script = str | Sequence[str | BaseException] | Callable[[str], str]
"""What a scripted model says: always the same, one after another, or a function of the prompt."""


class ScriptedEngine:
    """A DSPy engine that answers from a script and keeps every prompt.

    Args:
        script: A text, texts in turn (the last one is repeated; an exception is raised), or a
            function of the whole prompt.
        logprobs: Log-probabilities of the first token's alternatives, by token.
        latency: Seconds that the asynchronous engine waits before it answers.

    Attributes:
        prompts: Every prompt as text, system message first.
    """

    supported_params = frozenset({"temperature", "max_tokens", "logprobs", "top_logprobs", "stop"})
    supports_response_schema = False

    def __init__(
        self, script: Script, *, logprobs: Mapping[str, float] | None = None, latency: float = 0.0
    ):
        self.script = script
        self.logprobs = logprobs
        self.latency = latency
        self.prompts: list[str] = []

    def complete(self, request: Request) -> Response:
        """Answer one request."""
        prompt = prompt_text(request)
        self.prompts.append(prompt)
        said = self._say(prompt)
        if isinstance(said, BaseException):
            raise said
        counted = Usage(input_tokens=len(prompt.split()), output_tokens=max(1, len(said.split())))
        return Response(
            id=None,
            model=request.model,
            message=Message.assistant([TextPart(said)]),
            finish_reason="stop",
            usage=counted,
            logprobs=self._logprobs(said),
        )

    def _say(self, prompt: str) -> str | BaseException:
        if isinstance(self.script, str):
            return self.script
        if callable(self.script):
            return self.script(prompt)
        return self.script[min(len(self.prompts), len(self.script)) - 1]

    def _logprobs(self, said: str) -> tuple[TokenLogprob, ...] | None:
        if self.logprobs is None:
            return None
        token = said.strip()
        top = tuple(TopLogprob(text, value) for text, value in self.logprobs.items())
        return (TokenLogprob(token, self.logprobs.get(token, -20.0), top=top),)

    def stream(self, request: Request) -> Any:
        """The answer as events."""
        return response_to_events(self.complete(request))

    def __deepcopy__(self, memo: Any) -> "ScriptedEngine":
        return self


class AsyncScriptedEngine:
    """The asynchronous twin: same script, same list of prompts."""

    supported_params = ScriptedEngine.supported_params
    supports_response_schema = False

    def __init__(self, engine: ScriptedEngine):
        self.engine = engine

    async def complete(self, request: Request) -> Response:
        """Answer one request, after the latency."""
        await asyncio.sleep(self.engine.latency)
        return self.engine.complete(request)

    async def stream(self, request: Request) -> Any:
        """The answer as events."""
        for event in response_to_events(await self.complete(request)):
            yield event

    def __deepcopy__(self, memo: Any) -> "AsyncScriptedEngine":
        return self


def prompt_text(request: Request) -> str:
    """A request's messages as one text."""
    system = request.system if isinstance(request.system, str) else ""
    texts = [message.text or "" for message in request.messages]
    return "\n".join(text for text in [system, *texts] if text)


def scripted_lm(
    script: Script,
    *,
    logprobs: Mapping[str, float] | None = None,
    latency: float = 0.0,
    model: str = "scripted/model",
    **options: Any,
) -> dspy.LM:
    """A DSPy LM that answers from a script; its prompts are in ``lm.engine.prompts``.

    Caching is off unless asked for, so that every question is seen.

    >>> import dspy, dspy_rerank as dr
    >>> from dspy_rerank.testing import scripted_lm
    >>> lm = scripted_lm(["It depends.", "[2] > [1] > [3]"])  # asked again, it answers
    >>> with dspy.context(lm=lm):
    ...     ranking = dr.TopDown(dr.ListwiseJudge())("q", ["a", "b", "c"]).ranking
    >>> ranking.indices, ranking.unknowns, len(lm.engine.prompts)
    ([1, 0, 2], 0, 2)
    >>> graded = scripted_lm(lambda prompt: "3" if "Paris" in prompt else "0")
    >>> with dspy.context(lm=graded):
    ...     dr.ScoreSort(dr.PointwiseJudge())("capital?", ["Bananas.", "Paris."]).ranking.scores
    [3.0, 0.0]
    """
    engine = ScriptedEngine(script, logprobs=logprobs, latency=latency)
    twin = AsyncScriptedEngine(engine)
    return dspy.LM(model, engine=engine, async_engine=twin, **{"cache": False, **options})
