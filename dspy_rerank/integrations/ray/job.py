"""What every worker of a run is told, and the program that it makes of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dspy

from ... import binding, models, program
from ...defaults import default_reranker, resolve_lm
from ...sorters import Reranker
from ...streaming import identity_of
from . import rates as sharing

Model = str | Callable[[], dspy.LM] | None
"""A model's name, an alias, or a function that makes a model; ``None`` is the saved alias."""


@dataclass(frozen=True, slots=True)
class Job:
    """What every worker is told; no key and no model is in it.

    Attributes:
        program: The content of a saved program; ``None`` is the default for the model.
        lm: See :data:`Model`.
        models: The path of a LiteLLM configuration, on every machine.
        top_k: Of queries that do not bring their own.
        queries_at_once: Rankings under way in a worker.
        inputs: Keys or columns to take as further inputs of the judge.
        workers: How many share the models' rates.
        out: The folder of results.
        run: The number of the run, as text.
        only_failed: Whether only queries are ranked that failed before.
    """

    program: Mapping[str, Any] | None
    lm: Model
    models: str | None
    top_k: int | None
    queries_at_once: int | None
    inputs: tuple[str, ...]
    workers: int
    out: str
    run: str
    only_failed: bool

    def opened(self, rates: Any) -> Reranker:
        """The program with its model, whose rate is that of all workers together.

        Raises:
            RerankError: The program, the model or its configuration cannot be used.
        """
        reranker, lm = self._made()
        binding.bound(reranker, lm)
        sharing.share(lm, rates, self.workers)
        return reranker

    def identity(self) -> str:
        """Which program, model and ``top_k`` this is, found out where the workers run.

        Raises:
            RerankError: As for :meth:`opened`.
        """
        reranker, lm = self._made()
        sharing.deal(lm, self.workers)
        return identity_of(reranker, lm, self.top_k)

    def _made(self) -> tuple[Reranker, dspy.LM]:
        if self.models is not None:
            models.load(self.models)
        lm = self.lm() if callable(self.lm) else self.lm
        if lm is None and self.program is not None:
            lm = binding.own_model(self.program)
        model = resolve_lm(lm)
        if self.program is None:
            return default_reranker(model), model
        return program.from_dict(self.program), model
