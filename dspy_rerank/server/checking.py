"""Whether the programs' models answer: one question to each, to all of them at once, and seldom.

What ``/ready?ask=1`` says. A question costs a call, so its outcome holds for some seconds, however
often it is looked at, and whoever looks meanwhile waits for it.
"""

import asyncio
import logging
from collections.abc import Iterator
from time import monotonic
from typing import Any
from uuid import uuid4

import dspy

from ..errors import EvidenceError, NoModelError
from ..judges.protocol import Question
from ..types import Usage
from .metrics import Metrics
from .programs import Program
from .refusals import RefusedError, invalid
from .service import Service, settings_for

logger = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds that a model has for its answer."""
FRESH = 30.0
"""Seconds for which the outcome of asking holds."""
SHOWN = {"pointwise": 1, "pairwise": 2, "setwise": 2, "listwise": 2}
FAILED = Usage(failed_calls=1, cost=0.0)


class Check:
    """Asks the model of each program a question of the program's own kind.

    A judge that is a function has no model and is not asked. An answer that cannot be read is an
    answer.

    Args:
        service: Whose programs.
        metrics: Where the calls are counted.
    """

    def __init__(self, service: Service, metrics: Metrics):
        self._service, self._metrics = service, metrics
        self._lock = asyncio.Lock()
        self._until = 0.0
        self._failed: dict[str, str] = {}

    async def __call__(self) -> None:
        """Ask, unless the last outcome still holds.

        Raises:
            RefusedError: 503: a model does not answer; the class of the error, none of its words.
        """
        async with self._lock:
            if monotonic() >= self._until:
                self._failed = await self._asked()
                self._until = monotonic() + FRESH
        if self._failed:
            told = "; ".join(f"program {n!r}: {why}" for n, why in self._failed.items())
            raise RefusedError(503, f"not ready: {told}", reason="model failed")

    async def _asked(self) -> dict[str, str]:
        """Why the model of a program does not answer, by program; each model is asked once."""
        askers = [
            (_model(judge, program), program, judge)
            for program in self._service.programs.values()
            for judge in _judges(program.reranker.judge)
        ]
        once = {model: (program, judge) for model, program, judge in reversed(askers)}
        said = await asyncio.gather(*(self._outcome(*asker) for asker in once.values()))
        outcomes = dict(zip(once, said, strict=True))
        return {program.name: outcomes[model] for model, program, _ in askers if outcomes[model]}

    async def _outcome(self, program: Program, judge: Any) -> str:
        """Empty where the model has answered."""
        try:
            async with asyncio.timeout(PATIENCE):
                with dspy.context(**settings_for(program)):
                    answer = await judge.ready().ask(_question(judge))
        except TimeoutError:
            self._metrics.spent(program.name, FAILED)
            return f"its language model has not answered within {PATIENCE:g} s"
        except Exception as error:
            facts = {"program": program.name}
            logger.warning("a model does not answer", exc_info=error, extra={"facts": facts})
            if not isinstance(error, NoModelError | EvidenceError):  # nobody was asked
                self._metrics.spent(program.name, FAILED)
            return f"its language model failed ({type(error).__name__})"
        self._metrics.spent(program.name, answer.usage)
        return ""


def _judges(judge: Any) -> Iterator[Any]:
    """Those of a judge, or of a panel, that ask a model."""
    for each in getattr(judge, "judges", [judge]):
        if hasattr(each, "predict"):
            yield each


def _model(judge: Any, program: Program) -> tuple[int, str]:
    """What tells the model that a judge asks, and how it asks it."""
    lm = judge.predict.lm or program.lm or dspy.settings.lm
    return id(lm), str(judge.settings["evidence"])


def _question(judge: Any) -> Question:
    """A short question that no cache has an answer to."""
    passages = tuple(f"A passage of no meaning, {uuid4().hex}." for _ in range(SHOWN[judge.kind]))
    inputs: dict[str, Any] = dict.fromkeys(judge.extra_inputs or (), "none")
    return Question("Is anybody there?", passages, inputs)


def wanted(value: str | None) -> bool:
    """What ``ask`` of a request says.

    Raises:
        RefusedError: 400: neither 0 nor 1.
    """
    if value not in (None, "0", "1"):
        raise invalid("ask is neither 0 nor 1")
    return value == "1"
