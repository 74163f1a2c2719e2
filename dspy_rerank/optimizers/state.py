"""Where one search stands: what it measures, its study, its books and its paid answers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import optuna

from .answers import KeptAnswers
from .arms import Arm
from .ledger import VARIANT, Bill, Ledger
from .measuring import Measuring
from .trials import Trial, finished

PRIOR_STEP = 0.05


@dataclass
class SearchState:
    """The state of one compile run.

    Attributes:
        measuring: Measures settings.
        study: May be shared with other processes.
        ledger: The books of the study.
        answers: Paid answers, shared likewise; ``None`` without a storage.
        left_out: Candidates that a model cannot serve, and why.
    """

    measuring: Measuring
    study: optuna.Study
    ledger: Ledger
    answers: KeptAnswers | None
    left_out: Mapping[str, str]

    @property
    def arms(self) -> Mapping[str, Arm]:
        """All there is to choose among."""
        return self.measuring.arms

    @property
    def trials(self) -> list[Trial]:
        """Those that came to their end, by whatever process."""
        return finished(self.study)

    @property
    def uncompiled(self) -> Trial | None:
        """The student as it is, once that was measured."""
        return self._student_of(self.trials)

    def _student_of(self, trials: Sequence[Trial]) -> Trial | None:
        return next((t for t in trials if self._unchanged(t.variant, t.prior)), None)

    def unchanged(self) -> dict[str, Any]:
        """The student as it is, as parameters of a trial."""
        name, arm = next(iter(self.arms.items()))
        if not arm.reranker.SCORED:
            return {VARIANT: name}
        steps = round(arm.reranker.settings["prior"] / PRIOR_STEP)
        return {VARIANT: name, "prior": steps * PRIOR_STEP}

    def _unchanged(self, variant: str, prior: float) -> bool:
        student = self.unchanged()
        return variant == student[VARIANT] and abs(prior - student.get("prior", 0.0)) < 1e-6

    def baseline_first(self) -> list[Trial]:
        """All trials, the one of the student as it is before the others."""
        trials = self.trials
        base = self._student_of(trials) or trials[0]
        return [base, *(trial for trial in trials if trial is not base)]

    def may_begin(self, proposed: optuna.Trial, variant: str, prior: float) -> bool:
        """Whether the budget has room for a trial, once it is known what has been paid already.

        What the trial takes at most is held before it waits for one that buys the same answers,
        so that no other process counts on it meanwhile; when those answers are there, it is free.
        The student as it is may always begin.
        """
        most = self.measuring.most(variant)
        first = self.uncompiled is None and self._unchanged(variant, prior)
        room = self.ledger.reserve(proposed, most, anyway=first)
        if self.answers is None:
            return room
        self.answers.by = proposed.number
        self.ledger.queue_behind(proposed)
        for trial in self.trials:
            self.measuring.remember(trial)
        free = not self.measuring.most(variant).calls
        if free and most.calls:
            self.ledger.hold(proposed, Bill())
        return room or free
