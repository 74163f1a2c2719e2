"""Places, turns and being told to come back."""

import asyncio

import pytest

from dspy_rerank.errors import InputError
from dspy_rerank.server import Limits
from dspy_rerank.server.gate import Entrance, Gate, busy
from dspy_rerank.server.refusals import RefusedError


def test_turns_come_in_order_and_never_more_than_allowed():
    async def go():
        gate, order, most = Gate(at_once=2, queue=10), [], 0

        async def one(name):
            nonlocal most
            async with gate.turn(5):
                order.append(name)
                most = max(most, gate.running)
                await asyncio.sleep(0)

        await asyncio.gather(*map(one, range(8)))
        return order, most, (gate.running, gate.waiting)

    assert asyncio.run(go()) == (list(range(8)), 2, (0, 0))


def test_a_full_queue_turns_away_at_once():
    async def go():
        gate = Gate(at_once=1, queue=1)
        async with gate.turn(5):
            waiting = asyncio.ensure_future(gate.turn(5).__aenter__())
            await asyncio.sleep(0)
            with pytest.raises(RefusedError) as full:
                await gate.turn(5).__aenter__()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            return full.value, gate.waiting

    refusal, waiting = asyncio.run(go())
    assert refusal.status == 429
    assert refusal.headers["Retry-After"].isdecimal()
    assert waiting == 0


def test_waiting_ends_with_the_time():
    async def go():
        gate = Gate(at_once=1, queue=1)
        async with gate.turn(5):
            with pytest.raises(RefusedError, match="no place became free"):
                await gate.turn(0.01).__aenter__()
        async with gate.turn(0.01) as waited:
            return waited

    assert asyncio.run(go()) < 0.01


def test_a_cancelled_turn_gives_its_place_back():
    async def go():
        gate = Gate(at_once=1, queue=1)

        async def forever():
            async with gate.turn(5):
                await asyncio.sleep(60)

        task = asyncio.ensure_future(forever())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        async with gate.turn(1):
            return gate.running

    assert asyncio.run(go()) == 1


def test_the_entrance_counts_and_forgets():
    entrance = Entrance(1)
    with entrance.inside_of():
        with pytest.raises(RefusedError, match="1 requests"), entrance.inside_of():
            pass
    with entrance.inside_of():
        assert entrance.inside == 1


@pytest.mark.parametrize(("seconds", "said"), [(0, "1"), (1.2, "2"), (1e9, "60")])
def test_retry_after_is_whole_seconds_within_bounds(seconds, said):
    assert busy("busy", seconds).headers == {"Retry-After": said}


@pytest.mark.parametrize(
    "wrong",
    [{"documents": 0}, {"at_once": 0}, {"queue": -1}, {"seconds": 0}, {"seconds": float("inf")},
     {"calls": 0}, {"body_bytes": True}, {"upload_seconds": "5"}],
)  # fmt: skip
def test_limits_are_checked(wrong):
    with pytest.raises(InputError, match=next(iter(wrong))):
        Limits(**wrong)
