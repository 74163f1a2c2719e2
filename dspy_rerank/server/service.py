"""One ranking for one request: its turn, its time, its program, and an end when nobody waits."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import dspy
from dspy.clients import base_lm

from ..errors import DocumentTypeError, InputError, ModelError, NoModelError, RerankError
from ..ranking import Ranking
from .gate import Entrance, Gate
from .limits import Limits
from .programs import Program, Programs
from .refusals import RefusedError, invalid
from .requests import RerankRequest

logger = logging.getLogger(__name__)

T = TypeVar("T")

GRACE = 5.0
"""Seconds that a ranking has to end by itself after its deadline."""


class Service:
    """The programs with their gates.

    Args:
        programs: By name.
        limits: Of every request.
    """

    def __init__(self, programs: Programs, limits: Limits):
        self.programs = programs
        self.limits = limits
        self.gates = {name: Gate(limits.at_once, limits.queue) for name in programs}
        self.entrance = Entrance((limits.at_once + limits.queue) * len(programs))
        self.draining = False

    async def rank(
        self, program: Program, request: RerankRequest, texts: list[str]
    ) -> tuple[Ranking, float]:
        """The ranking of a request, and the seconds that it waited for its turn.

        Raises:
            RefusedError: There was no turn or no time, or the program or its model failed.
        """
        limit = self.limits.seconds
        async with self.gates[program.name].turn(limit) as waited:
            left = max(0.0, limit - waited)
            try:
                async with asyncio.timeout(left + GRACE):
                    return await self._ranked(program, request, texts, left), waited
            except TimeoutError:
                raise RefusedError(
                    504, f"no ranking within {limit:g} s", reason="time-out"
                ) from None

    async def _ranked(
        self, program: Program, request: RerankRequest, texts: list[str], seconds: float
    ) -> Ranking:
        options = self._options(program, request, seconds)
        try:
            with dspy.context(**settings_for(program)):
                prediction = await program.reranker.acall(
                    query=request.query,
                    documents=texts,
                    top_k=request.top_n,
                    **{**(request.inputs or {}), **options},
                )
        except (InputError, DocumentTypeError) as error:
            raise invalid(str(error)[:300]) from None
        except (RerankError, dspy.LMError) as error:
            raise _unusable(program, error) from error
        finally:
            base_lm.GLOBAL_HISTORY.clear()
        return prediction.ranking

    def _options(self, program: Program, request: RerankRequest, seconds: float) -> dict[str, Any]:
        """The program's own limits, or the request's and the service's where those are tighter."""
        own = program.reranker.settings.values
        tighter = {
            "deadline": seconds,
            "max_calls": self.limits.calls,
            "max_passage_tokens": request.max_tokens_per_doc,
        }
        limits = {name: [own.get(name), value] for name, value in tighter.items()}
        return {
            name: min((v for v in values if v is not None), default=None)
            for name, values in limits.items()
        }


def settings_for(program: Program) -> dict[str, Any]:
    """DSPy's settings for one request: it would otherwise keep ten thousand prompts in memory."""
    kept = {"trace": None, "max_history_size": 1}
    return kept if program.lm is None else {**kept, "lm": program.lm}


def _unusable(program: Program, error: Exception) -> RefusedError:
    """A program or model that cannot answer: no words of a provider's, which may quote a key."""
    kind = type(error.__cause__ if isinstance(error, ModelError) else error).__name__
    facts = {"program": program.name, "kind": kind}
    logger.error("a program cannot answer", exc_info=error, extra={"facts": facts})
    status, what = (502, "its language model failed")
    if isinstance(error, NoModelError):
        status, what = (503, "it has no language model")
    return RefusedError(
        status, f"program {program.name!r} cannot answer: {what} ({kind})", reason="model failed"
    )


class ClientGoneError(Exception):
    """Nobody waits for the answer any more."""


async def while_connected(receive: Callable[[], Awaitable[Any]], work: Awaitable[T]) -> T:
    """The result of some work, which is cancelled when the client hangs up.

    Args:
        receive: Of the request, whose body has been read.
        work: What the client waits for.

    Raises:
        ClientGoneError: It hung up.
    """
    working = asyncio.ensure_future(work)
    listening = asyncio.ensure_future(_gone(receive))
    try:
        await asyncio.wait((working, listening), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGoneError
        return working.result()
    finally:
        for task in (working, listening):
            task.cancel()
        await asyncio.gather(working, listening, return_exceptions=True)


async def _gone(receive: Callable[[], Awaitable[Any]]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
