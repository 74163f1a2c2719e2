"""How fast a model may be asked, with a clock that stands still."""

import asyncio

import dspy
import pytest
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank.limits import BURST, Limit, limit_of, set_limit
from dspy_rerank.testing import scripted_lm


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


def test_requests_beyond_the_burst_wait_for_their_share_of_a_minute():
    limit = Limit(rpm=60, clock=Clock())
    waits = [limit.reserve() for _ in range(int(BURST) + 3)]
    assert waits[: int(BURST)] == [0.0] * int(BURST)
    assert waits[int(BURST) :] == pytest.approx([1.0, 2.0, 3.0])


def test_time_that_passes_gives_the_burst_back():
    clock = Clock()
    limit = Limit(rpm=60, clock=clock)
    for _ in range(int(BURST)):
        limit.reserve()
    clock.now += 60
    assert [limit.reserve() for _ in range(int(BURST))] == [0.0] * int(BURST)


def test_a_slow_model_still_answers_its_first_question_at_once():
    limit = Limit(rpm=1, clock=Clock())
    assert [limit.reserve(), limit.reserve()] == pytest.approx([0.0, 60.0])


def test_tokens_are_limited_too_and_put_right_afterwards():
    limit = Limit(tpm=600, clock=Clock())
    assert limit.reserve(100) == 0.0
    assert limit.reserve(100) == pytest.approx(10.0)
    limit.correct(100, 50)
    assert limit.reserve(0) == pytest.approx(5.0)


def test_a_refusal_holds_everyone_back_for_as_long_as_asked():
    limit = Limit(clock=Clock())
    limit.refused(7.0)
    assert limit.reserve() == pytest.approx(7.0)


def test_refusals_without_a_time_double():
    clock = Clock()
    limit = Limit(clock=clock)
    pauses = []
    for _ in range(3):
        limit.refused(None)
        pauses.append(limit.reserve())
        clock.now += 100
    assert 0.5 <= pauses[0] <= 1 <= pauses[1] <= 2 <= pauses[2] <= 4


def test_no_limit_never_waits():
    limit = Limit(clock=Clock())
    assert {limit.reserve(1000) for _ in range(100)} == {0.0}


def test_a_limit_belongs_to_its_model():
    one, other = scripted_lm("2"), scripted_lm("2")
    set_limit(one, rpm=60)
    assert (limit_of(one).rpm, limit_of(other).rpm) == (60, None)


def test_a_ranking_waits_out_what_the_model_asked_for(monkeypatch):
    refusal = lm15.RateLimitError("slow down", status=429, retry_after=0.2)
    lm = scripted_lm([refusal, "2", "2"])
    slept = []
    sleep = asyncio.sleep

    async def recorded(seconds, *rest):
        slept.append(seconds)
        await sleep(seconds, *rest)

    monkeypatch.setattr("dspy_rerank.limits.asyncio.sleep", recorded)
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge(), concurrency=1)("q", ["x", "y"]).ranking
    assert not ranking.degraded
    assert ranking.usage.failed_calls == 1
    assert any(0.1 < seconds <= 0.2 for seconds in slept)


def test_a_deadline_ends_the_waiting():
    lm = scripted_lm("2")
    set_limit(lm, rpm=1)
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(dr.PointwiseJudge(), deadline=0.3)
        ranking = sorter("q", ["x", "y", "z"]).ranking
    assert ranking.degraded
    assert len(lm.engine.prompts) == 1


def test_many_refusals_of_one_wave_are_one_refusal():
    """Eight questions in flight, all refused: a guess of about a second, not of two minutes."""
    limit = Limit(clock=Clock())
    for _ in range(8):
        limit.refused(None)
    assert limit.reserve() <= 1.0


def test_a_refusal_halves_the_places_and_answers_bring_them_back():
    clock = Clock()
    limit = Limit(clock=clock)
    assert [limit.enter() for _ in range(8)] == [True] * 8
    limit.refused(0.0)
    for _ in range(8):
        limit.leave()
    assert [limit.enter() for _ in range(5)] == [True] * 4 + [False]
    limit.leave()
    for _ in range(9):
        limit.correct(0, 0)
    assert [limit.enter() for _ in range(3)] == [True, True, False]
    for _ in range(150):
        limit.correct(0, 0)
    assert all(limit.enter() for _ in range(50))


def test_one_wave_of_refusals_halves_the_places_once():
    clock = Clock()
    limit = Limit(clock=clock)
    for _ in range(8):
        limit.enter()
    for _ in range(8):
        limit.refused(5.0)
    for _ in range(8):
        limit.leave()
    assert sum(limit.enter() for _ in range(8)) == 4


def test_a_model_that_always_refuses_keeps_one_place():
    clock = Clock()
    limit = Limit(clock=clock)
    for _ in range(20):
        limit.enter()
        limit.refused(0.0)
        limit.leave()
        clock.now += 100
    assert [limit.enter(), limit.enter()] == [True, False]


def test_places_may_be_few_from_the_start():
    limit = Limit(at_once=2, clock=Clock())
    assert [limit.enter() for _ in range(3)] == [True, True, False]


def test_nobody_is_kept_waiting_for_longer_than_is_sensible():
    limit = Limit(clock=Clock())
    limit.refused(3000.0)
    assert limit.reserve() == 60.0


def in_flight(limit):
    """The most turns that are taken at once when twenty are wanted."""
    inside, most = 0, 0

    async def one():
        nonlocal inside, most
        async with limit.turn():
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0.001)
            inside -= 1

    async def all_of_them():
        await asyncio.gather(*(one() for _ in range(20)))

    asyncio.run(all_of_them())
    return most


def test_turns_wait_for_a_place():
    assert in_flight(Limit(at_once=3)) == 3


def test_a_turn_that_is_cancelled_gives_its_place_back():
    limit = Limit(at_once=1, rpm=1)

    async def run():
        async with limit.turn():
            pass
        waiting = asyncio.ensure_future(limit.turn().__aenter__())
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        return limit.enter()

    assert asyncio.run(run())


def test_a_concurrent_identical_question_is_asked_once():
    lm = scripted_lm("2", latency=0.01)

    class Twice(dr.ScoreSort):
        def _plan(self, n, top_k, evidence):
            answers = yield [(0,), (0,), (1,), (0,)]
            from dspy_rerank.types import Outcome

            return Outcome(tuple(range(n)), tuple(answer.score for answer in answers[:n]))

    with dspy.context(lm=lm):
        usage = Twice(dr.PointwiseJudge())("q", ["x", "y"]).ranking.usage
    assert len(lm.engine.prompts) == usage.calls == 2
