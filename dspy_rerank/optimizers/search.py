"""Compiles a reranker from labels: prompt, demonstrations and prior weight, by Optuna."""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

import dspy
import optuna
from dspy.teleprompt.teleprompt import Teleprompter

from ..defaults import resolve_lm
from ..errors import InputError
from ..evaluation import Row, rank_all, scored
from ..memo import remembering
from ..metrics import parse_metric
from ..sorters import Reranker
from ..sorters.estimates import bounds
from ..stats import standard_error
from ..types import Usage
from .card import card
from .examples import judgment_examples
from .splits import parts
from .study import new_study
from .trials import SearchProgress, Trial, choose
from .variants import Variant, demo_sets, with_settled_judge, wordings

logger = logging.getLogger(__name__)

PRIOR_STEP = 0.05


@dataclass
class _Search:
    """The state of one compile run."""

    student: Reranker
    variants: dict[str, Variant]
    data: Any
    trials: list[Trial] = field(default_factory=list)
    tokens: dict[str, float] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)


class RerankerSearch(Teleprompter):
    """Searches a reranker's prompt and settings for the best ranking on validation queries.

    Optuna's TPE sampler proposes a wording, a set of demonstrations and, where the sorter has
    scores, the weight of the first stage. Answers are kept, so trying another weight on a known
    prompt costs nothing; a prompt that is clearly behind after half of the queries is not asked
    the rest. The setting returned is the cheapest one (prompt tokens) whose mean is within one
    standard error of the best; among equally cheap ones it is the best.

    Args:
        metric: What to maximise, such as ``nDCG@10``.
        trials: How many settings to try.
        instructions: Wordings to try beside the judge's own; none tries a few general ones. For
            a likelihood judge they are headings before the query, such as "A user searched for".
        demos: Numbers of demonstrations to try.
        demo_draws: Different sets to try for each number.
        max_demo_tokens: For all demonstrations of a set.
        max_calls: Judge calls in all; settings that would exceed it are not tried.
        timeout: Seconds after which no further setting is tried.
        lm: A DSPy LM or a model name; ``None`` as in :func:`dspy_rerank.rerank`.
        seed: Of every draw.
        progress: Called after each trial.
    """

    def __init__(
        self,
        metric: str = "nDCG@10",
        *,
        trials: int = 40,
        instructions: Sequence[str] = (),
        demos: Sequence[int] = (1, 2, 4),
        demo_draws: int = 2,
        max_demo_tokens: int = 1500,
        max_calls: int | None = None,
        timeout: float | None = None,
        lm: Any = None,
        seed: int = 0,
        progress: Callable[[SearchProgress], None] | None = None,
    ):
        super().__init__()
        parse_metric(metric)
        if trials < 1:
            raise InputError(f"trials={trials}; expected at least 1")
        self.metric = metric
        self.trials = trials
        self.instructions = tuple(instructions)
        self.demos = tuple(demos)
        self.demo_draws = demo_draws
        self.max_demo_tokens = max_demo_tokens
        self.max_calls = max_calls
        self.timeout = timeout
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
            InputError: There are no labels, or the judge is a function.
        """
        begun = time.monotonic()
        train, val = parts(trainset, valset, self.seed)
        with dspy.context(lm=resolve_lm(self.lm)), remembering():
            search = self._prepared(student, train, val)
            self._run(search, begun)
            chosen = choose(search.trials)
            compiled = self._setting(search, chosen.variant, chosen.prior)
        compiled.card = card(
            search.trials, chosen, metric=self.metric, seed=self.seed, train=train, val=val,
            usage=search.usage, seconds=time.monotonic() - begun,
        )  # fmt: skip
        return compiled

    def _prepared(self, student: Reranker, train: Any, val: Any) -> _Search:
        settled = with_settled_judge(student)
        judge = settled.judge
        pool = judgment_examples(judge, train, seed=self.seed)
        sets = demo_sets(
            pool, sizes=self.demos, draws=self.demo_draws,
            max_tokens=self.max_demo_tokens, seed=self.seed,
        )  # fmt: skip
        variants = [
            Variant(f"{wording}, {demos}", text, chosen)
            for wording, text in wordings(judge, self.instructions)
            for demos, chosen in sets
        ]
        if judge.predict.demos:
            variants.insert(0, Variant("as given", None, tuple(judge.predict.demos)))
        return _Search(settled, {variant.name: variant for variant in variants}, val)

    def _run(self, search: _Search, begun: float) -> None:
        study = new_study(self.seed)
        study.enqueue_trial(self._uncompiled(search))
        try:
            for _ in range(self.trials):
                if self.timeout is not None and time.monotonic() - begun > self.timeout:
                    break
                self._try(search, study)
        except KeyboardInterrupt:
            if not search.trials:
                raise
            logger.warning("interrupted: keeping the best of %d settings", len(search.trials))

    def _uncompiled(self, search: _Search) -> dict[str, Any]:
        first = next(iter(search.variants))
        values: dict[str, Any] = {"variant": first}
        if search.student.SCORED:
            prior = search.student.settings["prior"]
            values["prior"] = round(prior / PRIOR_STEP) * PRIOR_STEP
        return values

    def _try(self, search: _Search, study: optuna.Study) -> None:
        proposed = study.ask()
        variant = proposed.suggest_categorical("variant", list(search.variants))
        prior = 0.0
        if search.student.SCORED:
            prior = proposed.suggest_float("prior", 0.0, 1.0, step=PRIOR_STEP)
        if not self._affordable(search, variant):
            study.tell(proposed, state=optuna.trial.TrialState.PRUNED)
            return
        if self._outrun(search, variant, prior):
            study.tell(proposed, state=optuna.trial.TrialState.PRUNED)
            return
        trial = self._measured(search, variant, round(prior, 4))
        search.trials.append(trial)
        study.tell(proposed, trial.value)
        if self.progress is not None:
            best = max(t.value for t in search.trials)
            self.progress(
                SearchProgress(len(search.trials), self.trials, best, search.usage.paid_calls)
            )

    def _affordable(self, search: _Search, variant: str) -> bool:
        """Whether all questions of a setting fit into what is left, at most."""
        if self.max_calls is None or not search.trials:
            return True
        if variant in search.tokens and search.student.PRIOR_IS_FREE:
            return True
        sizes = (len(query.documents) for query in search.data)
        most = sum(bounds(search.student.estimate(size).calls)[1] for size in sizes)
        return search.usage.paid_calls + most <= self.max_calls

    def _outrun(self, search: _Search, variant: str, prior: float) -> bool:
        """Whether a new prompt is already clearly behind the best after half of the queries.

        Compared on the same queries; behind by more than a standard error is clearly.
        """
        half = len(search.data) // 2
        if variant in search.tokens or not search.trials or half < 3:
            return False
        best = max(search.trials, key=lambda trial: trial.value).values[:half]
        values = self._row(search, variant, prior, search.data[:half]).values[self.metric]
        lead = [a - b for a, b in zip(best, values, strict=True)]
        return fmean(lead) > standard_error(lead)

    def _row(self, search: _Search, variant: str, prior: float, data: Any) -> Row:
        rankings = rank_all(self._setting(search, variant, prior), data)
        row = scored(variant, rankings, data, [self.metric])
        search.usage = search.usage + row.usage
        return row

    def _measured(self, search: _Search, variant: str, prior: float) -> Trial:
        row = self._row(search, variant, prior, search.data)
        if row.usage.paid_calls:
            search.tokens.setdefault(variant, row.usage.prompt_tokens / row.usage.paid_calls)
        values = row.values[self.metric]
        tokens = search.tokens.setdefault(variant, 0.0)
        return Trial(variant, prior, fmean(values), values, tokens, row.usage.paid_calls)

    def _setting(self, search: _Search, variant: str, prior: float) -> Reranker:
        reranker = search.student.deepcopy()
        search.variants[variant].apply(reranker.judge)
        if reranker.SCORED:
            reranker.settings.update(prior=prior)
        return reranker
