"""Runs plans: rounds, concurrency, retries, memo, budget and accounting, once for everyone.

A plan says which groups to ask about; a judge answers one question. What lies between them is
here: how many questions are in flight, what happens when one fails or cannot be read, what has
been asked before, what it costs and when to stop.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from .budget import Allowance, LimitReached, Meter, allowance, shared_meter
from .errors import Crowded, Deferred, RerankError
from .judges.parts import in_parts
from .judges.presenting import rollouts
from .judges.protocol import Answer, Judge, Question
from .options import Options
from .together import all_or_cancel
from .types import Group, Judgment, Outcome, Plan, Usage

_jitter = random.Random()

LONGEST_WAIT = 60.0
"""Seconds between two attempts, whatever the provider asks for."""

shared_limit: ContextVar[asyncio.Semaphore | None] = ContextVar("shared_limit", default=None)
"""Set around many rankings to let them share one limit on questions in flight."""


class AskError(RerankError):
    """A question could not be answered; ``cause`` is the model's last error."""

    def __init__(self, cause: BaseException, usage: Usage | None = None):
        super().__init__(f"{type(cause).__name__}: {cause}")
        self.cause = cause
        self.usage = usage or Usage()


class Result(NamedTuple):
    """What running a plan gave."""

    outcome: Outcome
    judgments: tuple[Judgment, ...]
    usage: Usage
    stopped: str


@dataclass
class Engine:
    """One ranking being run.

    Args:
        judge: A judge that is ready.
        query: What is looked for.
        passages: Text of every candidate, by position.
        inputs: Further inputs of the judge's signature.
        options: Limits and policies.
        memo: Answers that are known already, by the group as shown (further answers to the same
            question: with minus their number behind it); filled as the run goes on.
    """

    judge: Judge
    query: str
    passages: Sequence[str]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    options: Options = field(default_factory=Options)
    memo: dict[Group, Judgment] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._meter = Meter(self.options, shared_meter.get())
        self._limit = shared_limit.get() or asyncio.Semaphore(self.options.concurrency)
        self._asking: dict[Group, asyncio.Task[Judgment]] = {}
        self._stopped = ""
        self._inherited = set(self.memo)

    async def run(self, plan: Plan) -> Result:
        """Drive a plan to its end.

        Raises:
            AskError: A question kept failing; nothing of the ranking is used then.
        """
        judgments: list[Judgment] = []
        try:
            outcome = await self._drive(plan, judgments)
        except AskError as error:
            raise AskError(error.cause, self._meter.total()) from error.cause
        return Result(outcome, tuple(judgments), self._meter.total(), self._stopped)

    async def _drive(self, plan: Plan, judgments: list[Judgment]) -> Outcome:
        try:
            groups = next(plan)
            while True:
                answers = await self._round(groups)
                judgments += answers
                groups = plan.send(answers)
        except StopIteration as end:
            return end.value

    async def _round(self, groups: Sequence[Group]) -> list[Judgment]:
        """One judgment a group, in their order; all groups at the same time."""
        if self._stopped:  # a plan may have a hundred thousand questions left
            await asyncio.sleep(0)
            return [self._unasked(group) for group in groups]
        before = self._meter.total()
        answers = await all_or_cancel(self._judge(group) for group in groups)
        after = self._meter.total()
        if after.calls + after.failed_calls > before.calls + before.failed_calls:
            self._meter.add_round()
        return answers

    async def _judge(self, group: Group) -> Judgment:
        shown = self.judge.presentations(group, self.query, self.options.seed)
        judgments = await all_or_cancel(self._known(*asked) for asked in rollouts(shown))
        return self._combined(group, judgments)

    def _unasked(self, group: Group) -> Judgment:
        """The judgment once nothing more is asked: out of what is known already."""
        shown = rollouts(self.judge.presentations(group, self.query, self.options.seed))
        return self._combined(group, [self._recalled(*a) or self._silence(a[0]) for a in shown])

    def _combined(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        combined = self.judge.combine(group, judgments)
        cut = {position for judgment in judgments for position in judgment.cut}
        return replace(combined, cut=tuple(sorted(cut))) if cut else combined

    def _recalled(self, shown: Group, rollout: int = 0) -> Judgment | None:
        """The answer where it is known; one of another ranking counts like a cached one, once."""
        key = _key(shown, rollout)
        judgment, inherited = self.memo.get(key), key in self._inherited
        self._inherited.discard(key)
        if judgment is None or not (judgment.known or judgment.tries > self.options.retries):
            return None  # also where this ranking would ask again, and that one did not
        if inherited:
            self._meter.add(remembered(judgment))
        return judgment

    async def _known(self, shown: Group, rollout: int = 0) -> Judgment:
        """The answer to a question, asked only when nobody has or is about to."""
        recalled = self._recalled(shown, rollout)
        if recalled is not None:
            return recalled
        key = _key(shown, rollout)
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.ensure_future(self._answer(shown, rollout))
        try:
            judgment = await task
        finally:
            if not task.done():
                task.cancel()
            self._asking.pop(key, None)
        if judgment.known or not self._stopped:  # what a limit kept from us may yet be asked
            self.memo[key] = judgment
        return judgment

    async def _answer(self, shown: Group, rollout: int) -> Judgment:
        """The answer about a group, which is asked about in parts where it does not fit."""
        try:
            return await self._whole(shown, rollout)
        except Crowded as crowd:
            self._meter.add(Usage(failed_calls=int(crowd.refused), cost=0.0))
            parts = in_parts(shown, self.judge.kind)
        try:
            groups = next(parts)
            while True:
                answers = await all_or_cancel(self._known(group, rollout) for group in groups)
                groups = parts.send(answers)
        except StopIteration as end:
            return end.value

    async def _whole(self, shown: Group, rollout: int) -> Judgment:
        """Ask, and ask again with the complaint while the answer cannot be read."""
        passages = tuple(self.passages[position] for position in shown)
        question = Question(self.query, passages, self.inputs, rollout=rollout)
        judgment = await self._ask(question)
        while not (judgment.known or self._stopped) and judgment.tries <= self.options.retries:
            again = await self._ask(replace(question, complaint=complaint(judgment)))
            if not again.asks:  # a limit forbids it: what was said stays
                break
            judgment = replace(again, tries=judgment.tries + 1)
        return judgment.at(shown)

    async def _ask(self, question: Question) -> Judgment:
        """One answer, trying again after passing failures."""
        for attempt in range(self.options.error_retries + 1):
            try:
                return await self._attempt(question, attempt)
            except LimitReached as limit:
                return self._stop(question, str(limit), attempt)
            except Deferred:
                raise
            except Exception as error:
                kind = self.judge.failure(error)
                if kind == "fatal":
                    raise
                self._meter.add(Usage(failed_calls=1, cost=0.0))
                if kind == "lasting" or attempt == self.options.error_retries:
                    raise AskError(error) from error
                await self._wait(attempt, getattr(error, "retry_after", None))
        raise AssertionError("the last attempt returns or raises")

    async def _attempt(self, question: Question, asked: int) -> Judgment:
        """One answer, within the deadline; waiting for a place among others counts, too."""
        try:
            async with _Until(self._meter.seconds_left()), self._limit:
                reason = self._stopped or self._meter.start_call()
                if reason:
                    return self._stop(question, reason, asked)
                asked += 1
                answer = await self._put(question)
        except _DeadlineError:
            return self._stop(question, self.options.late, asked)
        self._meter.add(answer.usage)
        return answer.judgment

    async def _put(self, question: Question) -> Answer:
        """Put the question to the judge, whose calls are counted."""
        token = allowance.set(Allowance(self._meter))
        try:
            return await self.judge.ask(question)
        finally:
            allowance.reset(token)

    async def _wait(self, attempt: int, asked: float | None) -> None:
        """Full jitter on an exponential ceiling, never past the deadline."""
        guess = _jitter.uniform(0.1, min(0.5 * 2**attempt, 20))
        seconds = guess if asked is None else min(asked, LONGEST_WAIT)
        left = self._meter.seconds_left()
        await asyncio.sleep(seconds if left is None else max(0.0, min(seconds, left)))

    def _stop(self, question: Question, reason: str, asked: int) -> Judgment:
        """Nothing more is asked: the plan goes on to its end with unknowns."""
        self._stopped = self._stopped or reason
        return self._silence(tuple(range(len(question.passages))), int(asked > 0))

    def _silence(self, group: Group, asks: int = 0) -> Judgment:
        return Judgment(self.judge.kind, group, "unknown", reason=self._stopped, asks=asks)


def _key(shown: Group, rollout: int) -> Group:
    return (*shown, -rollout) if rollout else shown


class _DeadlineError(TimeoutError):
    """The ranking's own deadline, as opposed to a time-out of the judge's."""


class _Until:
    """``asyncio.timeout`` that tells the ranking's deadline from other time-outs."""

    def __init__(self, seconds: float | None):
        self._timeout = asyncio.timeout(seconds)

    async def __aenter__(self) -> None:
        await self._timeout.__aenter__()

    async def __aexit__(self, *error: Any) -> None:
        try:
            await self._timeout.__aexit__(*error)
        except TimeoutError as late:
            if self._timeout.expired():
                raise _DeadlineError from late
            raise


def remembered(judgment: Judgment) -> Usage:
    """What an answer costs that another ranking has paid for."""
    calls = judgment.tries
    read = calls * len(judgment.group)
    return Usage(calls=calls, cached_calls=calls, passages_read=read, cost=0.0)


def complaint(judgment: Judgment) -> str:
    """What a model is told when its answer could not be read."""
    said = judgment.raw.strip()
    quoted = f" It was: {said[:200]!r}." if said else ""
    return (
        f"Your last answer could not be read ({judgment.reason}).{quoted} "
        "Give only the answer, in the form asked for."
    )
