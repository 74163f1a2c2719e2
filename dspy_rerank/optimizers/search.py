"""Compiles a reranker from labels: sorter, prompt, demonstrations and prior weight, by Optuna."""

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import dspy
import optuna
from dspy.teleprompt.teleprompt import Teleprompter

from ..defaults import resolve_lm
from ..errors import CompileError, InputError
from ..memo import remembering
from ..metrics import parse_metric
from ..sorters import Reranker
from .answers import KeptAnswers
from .arms import Prompts, arms_of, fingerprint, models_of
from .card import card
from .counting import counting
from .ledger import VARIANT, Ledger
from .measuring import Measuring
from .splits import measured
from .state import PRIOR_STEP, SearchState
from .study import answers_beside, new_study
from .trials import ATTRIBUTE, COSTS, Cost, SearchProgress, Trial, settled, stored

logger = logging.getLogger(__name__)

POOLS = ("validation", "all")
UNPRICED = (
    "the price of the model is not known; limit calls or tokens, or give the price in the LiteLLM "
    "configuration"
)


class RerankerSearch(Teleprompter):
    """Searches a reranker's prompt and settings for the best ranking on validation queries.

    Optuna's TPE sampler proposes a reranker where there are several, a wording, a set of
    demonstrations and, where the sorter has scores, the weight of the first stage. Answers are
    kept, so trying another weight on a known prompt costs nothing; a prompt that is clearly
    behind after half of the queries is not asked the rest. The setting chosen is the cheapest
    one whose mean is within one standard error of the best; among equally cheap ones it is the
    best. It is returned when its gain over the student holds in cross-validation, on queries
    left out of the choice; else the student's own setting is. The card has the Pareto front of
    quality against cost.

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
        cost: ``tokens``, ``calls``, ``rounds`` or ``money`` (US dollars) of serving one query: a
            second objective for the sampler, and what cheap means. ``None`` samples for quality
            alone and goes by tokens.
        lms: Further language models to choose among, as objects, names or aliases.
        choose_by: ``validation`` queries, or ``all``: the training queries, too, which takes
            ``demos=()`` as demonstrations would be shown their own answers.
        sure: Standard errors by which a gain must exceed nothing to count, in choosing and in
            cross-validation; 0 takes whatever looks best.
        max_calls: Judge calls in all, failed ones included; settings that would exceed it are not
            tried, and one that does, as calls fail or are asked again, is broken off. Ranking the
            queries chosen by once with the student must have room. Processes that share a study
            each count on what the others have not taken yet for calls that fail.
        max_cost: US dollars in all, likewise, by estimate from what was paid so far; the student
            itself is always measured.
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
        cost: Cost | None = None,
        lms: Sequence[Any] = (),
        choose_by: str = "validation",
        sure: float = 1.0,
        max_calls: int | None = None,
        max_cost: float | None = None,
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
            raise InputError(f"cost={cost!r}; expected None or one of {', '.join(COSTS)}")
        if choose_by not in POOLS or (choose_by == "all" and any(demos)):
            raise InputError(
                f"choose_by={choose_by!r} with demos={tuple(demos)}; expected 'validation', or "
                "'all' with demos=()"
            )
        self.metric = metric
        self.trials = trials
        self.candidates = candidates
        self.prompts = Prompts(instructions, tuple(demos), demo_draws, max_demo_tokens, seed)
        self.cost = cost
        self.lms = lms
        self.choose_by = choose_by
        self.sure = sure
        self.max_calls = max_calls
        self.max_cost = max_cost
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
            InputError: There are no labels, the judge is a function, the storage holds another
                search of this name, or ``max_calls`` is less than ranking with the student takes.
            ModelError: The model failed on every query.
            CompileError: So many calls failed that ``max_calls`` were spent before the student was
                measured.
        """
        begun = time.monotonic()
        train, val = measured(trainset, valset, self.seed, self.choose_by)
        answers = answers_beside(self.storage, self.study_name, self.answers)
        with (
            dspy.context(lm=resolve_lm(self.lm)), remembering(answers) as known, counting() as heard
        ):  # fmt: skip
            search = self._prepared(student, train, val, answers)
            if not known and search.uncompiled is None:
                self._check_calls(search)
            self._run(search, begun)
            trials = search.baseline_first()
            choice = settled(trials, self.cost or "tokens", sure=self.sure, seed=self.seed)
            compiled = search.arms[choice.trial.variant].setting(choice.trial.prior)
        compiled.card = card(
            trials, choice, metric=self.metric, cost=self.cost or "tokens", seed=self.seed,
            train=train, val=val, usage=search.measuring.usage,
            cached=heard.cached, seconds=time.monotonic() - begun,
            study_calls=None if self.storage is None else search.ledger.spent().calls,
            before=compiled.card,
        )  # fmt: skip
        compiled.card["left_out"] = search.left_out
        return compiled

    def _prepared(
        self, student: Reranker, train: Any, val: Any, answers: KeptAnswers | None
    ) -> SearchState:
        arms, left_out = arms_of(student, self.candidates, self.prompts, train, models_of(self.lms))
        study = new_study(
            self.seed,
            directions=("maximize",) if self.cost is None else ("maximize", "minimize"),
            storage=self.storage,
            name=self.study_name,
            fingerprint=fingerprint(
                arms, self.metric, self.cost, self.seed, train.fingerprint, val.fingerprint
            ),
        )
        ledger = Ledger(study, self.max_calls, self.max_cost, answers)
        search = SearchState(Measuring(arms, val, self.metric), study, ledger, answers, left_out)
        for trial in search.trials:
            search.measuring.remember(trial)
        return search

    def _check_calls(self, search: SearchState) -> None:
        most = search.measuring.most(search.unchanged()[VARIANT]).calls
        many = len(search.measuring.data)
        if self.max_calls is not None and most > self.max_calls:
            raise InputError(
                f"max_calls={self.max_calls}, but ranking {many} queries once with the student "
                f"takes up to {most}; give more calls or fewer queries"
            )

    def _run(self, search: SearchState, begun: float) -> None:
        if search.uncompiled is None:
            search.study.enqueue_trial(search.unchanged())
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

    def _try(self, search: SearchState) -> None:
        proposed = search.study.ask()
        try:
            trial = self._tried(search, proposed)
            objectives = None if trial is None else self._objectives(trial)
        except BaseException:  # no other process need wait for it
            search.study.tell(proposed, state=optuna.trial.TrialState.FAIL)
            raise
        if trial is None:
            search.study.tell(proposed, state=optuna.trial.TrialState.PRUNED)
            return
        proposed.set_user_attr(ATTRIBUTE, stored(trial))
        search.study.tell(proposed, objectives)
        self._tell(search)

    def _tried(self, search: SearchState, proposed: optuna.Trial) -> Trial | None:
        """The trial, unless the budget has no room for it or it is outrun."""
        search.ledger.own(proposed)
        variant = proposed.suggest_categorical(VARIANT, list(search.arms))
        prior = 0.0
        if search.arms[variant].reranker.SCORED:
            prior = round(proposed.suggest_float("prior", 0.0, 1.0, step=PRIOR_STEP), 4)
        if not search.may_begin(proposed, variant, prior):
            return None
        measuring = search.measuring
        before = measuring.usage
        try:
            room = search.ledger.room(proposed)
            trial = measuring.within(room, variant, prior, search.trials)
        finally:
            search.ledger.paid(proposed, measuring.since(before))
        if trial is None and not search.trials:
            raise CompileError(
                f"max_calls={self.max_calls} were spent before all queries were ranked once with "
                f"the student: {search.measuring.usage.failed_calls} calls had no answer, or their "
                "answers could not be read and were asked for again; give more calls, or see why"
            )
        if self.max_cost is not None and measuring.usage.cost is None:
            raise InputError(f"max_cost={self.max_cost}, but {UNPRICED}")
        return trial

    def _objectives(self, trial: Trial) -> list[float]:
        """The metric and, where one was asked for, the cost.

        Raises:
            InputError: It is money, and the model has no known price.
        """
        if self.cost is None:
            return [trial.value]
        price = trial.price(self.cost)
        if price == float("inf"):
            raise InputError(f"cost='money', but {UNPRICED}")
        return [trial.value, price]

    def _tell(self, search: SearchState) -> None:
        if self.progress is not None:
            done, bill = search.trials, search.measuring.bill
            best = max(trial.value for trial in done)
            told = SearchProgress(len(done), self.trials, best, bill.calls, bill.dollars)
            self.progress(told)
