"""Compiles a reranker from labels: sorter, prompt, demonstrations and prior weight, by Optuna."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import dspy
import optuna
from dspy.teleprompt.teleprompt import Teleprompter

from ..defaults import resolve_lm
from ..errors import InputError, ModelError
from ..evaluation import Row, rank_all, scored
from ..memo import remembering
from ..metrics import parse_metric
from ..sorters import Reranker
from ..sorters.estimates import bounds
from ..stats import standard_error
from ..types import Usage
from .answers import KeptAnswers
from .arms import Arm, Prompts, arms_of, fingerprint
from .card import card
from .ledger import Ledger
from .splits import parts
from .study import answers_beside, new_study
from .trials import ATTRIBUTE, COSTS, SearchProgress, Trial, choose, finished, stored

logger = logging.getLogger(__name__)

PRIOR_STEP = 0.05


@dataclass
class _Search:
    """The state of one compile run."""

    arms: dict[str, Arm]
    data: Any
    study: optuna.Study
    ledger: Ledger
    answers: KeptAnswers | None
    tokens: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)

    @property
    def trials(self) -> list[Trial]:
        """Those that came to their end, by whatever process."""
        return finished(self.study)


class RerankerSearch(Teleprompter):
    """Searches a reranker's prompt and settings for the best ranking on validation queries.

    Optuna's TPE sampler proposes a reranker where there are several, a wording, a set of
    demonstrations and, where the sorter has scores, the weight of the first stage. Answers are
    kept, so trying another weight on a known prompt costs nothing; a prompt that is clearly
    behind after half of the queries is not asked the rest. The setting returned is the cheapest
    one whose mean is within one standard error of the best; among equally cheap ones it is the
    best. The card has the Pareto front of quality against cost.

    With a storage, a search that was killed is taken up where it stopped, without buying an
    answer twice, and several processes may work on one: they share trials, answers and budget.

    Args:
        metric: What to maximise, such as ``nDCG@10``.
        trials: How many settings to try, by all processes together.
        candidates: Further rerankers to choose among, by name or in a row.
        instructions: Wordings to try beside the judge's own; an empty list tries a few general
            ones, ``None`` no others. For a likelihood judge they are headings before the query,
            such as "A user searched for".
        demos: Numbers of demonstrations to try.
        demo_draws: Different sets to try for each number.
        max_demo_tokens: For all demonstrations of a set.
        cost: ``tokens`` or ``calls`` of serving one query: a second objective for the sampler,
            and what cheap means. ``None`` samples for quality alone and goes by tokens.
        max_calls: Judge calls in all; settings that would exceed it are not tried.
        timeout: Seconds after which no further setting is tried.
        storage: A file for Optuna's journal, a database's URL, or an Optuna storage.
        study_name: Of the search in the storage.
        answers: File of the paid answers; ``None`` is ``.answers.jsonl`` beside the storage.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        seed: Of every draw.
        progress: Called after each trial.
    """

    def __init__(
        self,
        metric: str = "nDCG@10",
        *,
        trials: int = 40,
        candidates: Mapping[str, Reranker] | Sequence[Reranker] = (),
        instructions: Sequence[str] | None = (),
        demos: Sequence[int] = (1, 2, 4),
        demo_draws: int = 2,
        max_demo_tokens: int = 1500,
        cost: str | None = None,
        max_calls: int | None = None,
        timeout: float | None = None,
        storage: Any = None,
        study_name: str = "rerank",
        answers: str | Path | None = None,
        lm: Any = None,
        seed: int = 0,
        progress: Callable[[SearchProgress], None] | None = None,
    ):
        super().__init__()
        parse_metric(metric)
        if trials < 1:
            raise InputError(f"trials={trials}; expected at least 1")
        if cost not in (None, *COSTS):
            raise InputError(f"cost={cost!r}; expected None, {' or '.join(COSTS)}")
        self.metric = metric
        self.trials = trials
        self.candidates = candidates
        self.prompts = Prompts(instructions, tuple(demos), demo_draws, max_demo_tokens, seed)
        self.cost = cost
        self.max_calls = max_calls
        self.timeout = timeout
        self.storage = storage
        self.study_name = study_name
        self.answers = answers
        self.lm = lm
        self.seed = seed
        self.progress = progress

    def compile(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, student: Reranker, *, trainset: Any, valset: Any = None, teacher: Any = None
    ) -> Reranker:
        """A compiled copy of a reranker; the student is left as it is.

        Args:
            student: Any reranker over a signature judge.
            trainset: Labelled queries from which demonstrations are drawn.
            valset: Labelled queries on which settings are compared; ``None`` takes half of the
                training queries away for it.
            teacher: Not used: labels take its place.

        Returns:
            The copy, with ``card`` saying what was tried, what it gave and what it cost.

        Raises:
            InputError: There are no labels, the judge is a function, or the storage holds
                another search of this name.
            ModelError: The model failed on every query.
        """
        begun = time.monotonic()
        train, val = parts(trainset, valset, self.seed)
        answers = answers_beside(self.storage, self.study_name, self.answers)
        with dspy.context(lm=resolve_lm(self.lm)), remembering(answers):
            search = self._prepared(student, train, val, answers)
            self._run(search, begun)
            trials = self._baseline_first(search)
            chosen = choose(trials, self.cost or "tokens")
            compiled = search.arms[chosen.variant].setting(chosen.prior)
        compiled.card = card(
            trials, chosen, metric=self.metric, cost=self.cost or "tokens", seed=self.seed,
            train=train, val=val, usage=search.usage, seconds=time.monotonic() - begun,
            study_calls=None if self.storage is None else search.ledger.spent(),
        )  # fmt: skip
        return compiled

    def _prepared(
        self, student: Reranker, train: Any, val: Any, answers: KeptAnswers | None
    ) -> _Search:
        arms = arms_of(student, self.candidates, self.prompts, train)
        study = new_study(
            self.seed,
            directions=("maximize",) if self.cost is None else ("maximize", "minimize"),
            storage=self.storage,
            name=self.study_name,
            fingerprint=fingerprint(
                arms, self.metric, self.cost, self.seed, train.fingerprint, val.fingerprint
            ),
        )
        ledger = Ledger(study, self.max_calls, answers)
        search = _Search(arms, val, study, ledger, answers)
        search.tokens.update({trial.variant: trial.tokens for trial in search.trials})
        return search

    def _baseline_first(self, search: _Search) -> list[Trial]:
        """All trials, the one of the student as it is before the others."""
        first = next(iter(search.arms))
        trials = search.trials
        base = next((trial for trial in trials if trial.variant == first), trials[0])
        return [base, *(trial for trial in trials if trial is not base)]

    def _run(self, search: _Search, begun: float) -> None:
        if not search.trials:
            search.study.enqueue_trial(self._uncompiled(search))
        try:
            for _ in range(self.trials):
                late = self.timeout is not None and time.monotonic() - begun > self.timeout
                if len(search.trials) >= self.trials or (late and search.trials):
                    break
                self._try(search)
        except KeyboardInterrupt:
            if not search.trials:
                raise
            logger.warning("interrupted: keeping the best of %d settings", len(search.trials))

    def _uncompiled(self, search: _Search) -> dict[str, Any]:
        name, arm = next(iter(search.arms.items()))
        values: dict[str, Any] = {"variant": name}
        if arm.reranker.SCORED:
            prior = arm.reranker.settings["prior"]
            values["prior"] = round(prior / PRIOR_STEP) * PRIOR_STEP
        return values

    def _try(self, search: _Search) -> None:
        proposed = search.study.ask()
        if search.answers is not None:
            search.answers.refresh()
            search.answers.by = proposed.number
        variant = proposed.suggest_categorical("variant", list(search.arms))
        prior = 0.0
        if search.arms[variant].reranker.SCORED:
            prior = proposed.suggest_float("prior", 0.0, 1.0, step=PRIOR_STEP)
        before = search.usage.paid_calls
        most, first = self._most(search, variant), not search.trials
        if not search.ledger.reserve(proposed, most, anyway=first):
            search.study.tell(proposed, state=optuna.trial.TrialState.PRUNED)
            return
        trial = self._outrun_or_measured(search, variant, round(prior, 4))
        search.ledger.paid(proposed, search.usage.paid_calls - before)
        if trial is None:
            search.study.tell(proposed, state=optuna.trial.TrialState.PRUNED)
            return
        proposed.set_user_attr(ATTRIBUTE, stored(trial))
        objectives = [trial.value] if self.cost is None else [trial.value, trial.price(self.cost)]
        search.study.tell(proposed, objectives)
        self._tell(search)

    def _tell(self, search: _Search) -> None:
        if self.progress is not None:
            done = search.trials
            best = max(trial.value for trial in done)
            self.progress(SearchProgress(len(done), self.trials, best, search.usage.paid_calls))

    def _most(self, search: _Search, variant: str) -> int:
        """New questions that a setting takes at most."""
        reranker = search.arms[variant].reranker
        if variant in search.tokens and reranker.PRIOR_IS_FREE:
            return 0
        sizes = (len(query.documents) for query in search.data)
        return sum(bounds(reranker.estimate(size).calls)[1] for size in sizes)

    def _outrun_or_measured(self, search: _Search, variant: str, prior: float) -> Trial | None:
        """The trial, or nothing when a new prompt is clearly behind after half of the queries.

        Compared with the best on the same queries; behind by more than a standard error is clear.
        """
        half = len(search.data) // 2
        known = search.trials
        if variant not in search.tokens and known and half >= 3:
            best = max(known, key=lambda trial: trial.value).values[:half]
            values = self._row(search, variant, prior, search.data[:half]).values[self.metric]
            lead = [a - b for a, b in zip(best, values, strict=True)]
            if fmean(lead) > standard_error(lead):
                return None
        return self._measured(search, variant, prior)

    def _row(self, search: _Search, variant: str, prior: float, data: Any) -> Row:
        rankings = rank_all(search.arms[variant].setting(prior), data)
        row = scored(variant, rankings, data, [self.metric])
        search.usage = search.usage + row.usage
        return row

    def _measured(self, search: _Search, variant: str, prior: float) -> Trial:
        row = self._row(search, variant, prior, search.data)
        if row.degraded and row.degraded == len(search.data):
            reason = next(r for ranking in row.rankings for r in ranking.reasons)
            raise ModelError(f"the model failed on all {row.degraded} queries: {reason}")
        if row.usage.paid_calls:
            search.tokens.setdefault(variant, row.usage.prompt_tokens / row.usage.paid_calls)
        values = row.values[self.metric]
        tokens = search.tokens.setdefault(variant, self._estimated(search, variant))
        return Trial(
            variant, prior, fmean(values), values, tokens, row.usage.paid_calls,
            row.usage.calls / len(search.data), row.degraded,
        )  # fmt: skip

    def _estimated(self, search: _Search, variant: str) -> float:
        """Tokens of a question whose answers were all known before, such as from a killed run."""
        reranker, query = search.arms[variant].setting(0.0), search.data[0]
        told = reranker.estimate(len(query.documents), query=query.text, documents=query.documents)
        return bounds(told.prompt_tokens or 0)[1] / max(1, bounds(told.calls)[1])
