"""Places in the order of arrival."""

import asyncio
import threading

from dspy_rerank.limits import Limit
from dspy_rerank.line import Line


def test_places_go_to_those_who_came_first():
    async def run():
        limit, order = Limit(at_once=2), []

        async def one(number):
            async with limit.turn():
                order.append(number)
                await asyncio.sleep(0)

        await asyncio.gather(*(one(number) for number in range(20)))
        return order

    assert asyncio.run(run()) == list(range(20))


def test_a_place_wakes_one_who_waits_and_not_all():
    """Waking everyone costs as many steps as there are waiting, for every answer."""

    async def run():
        limit, steps = Limit(at_once=1), 0
        loop = asyncio.get_running_loop()
        wake = loop.call_soon_threadsafe

        def counted(*arguments):
            nonlocal steps
            steps += 1
            return wake(*arguments)

        loop.call_soon_threadsafe = counted

        async def one():
            async with limit.turn():
                await asyncio.sleep(0)

        await asyncio.gather(*(one() for _ in range(50)))
        return steps

    assert asyncio.run(run()) == 49


def test_who_goes_away_leaves_the_line_and_keeps_no_place():
    async def run():
        limit = Limit(at_once=1)
        order = []

        async def one(number):
            async with limit.turn():
                order.append(number)
                await asyncio.sleep(0.001)

        tasks = [asyncio.ensure_future(one(number)) for number in range(6)]
        await asyncio.sleep(0)
        for number in (2, 4):
            tasks[number].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return order, limit.enter()

    assert asyncio.run(run()) == ([0, 1, 3, 5], True)


def test_who_goes_away_at_the_moment_of_the_call_passes_the_place_on():
    async def run():
        limit = Limit(at_once=1)
        assert limit.enter()
        first = asyncio.ensure_future(limit.turn().__aenter__())
        second = asyncio.ensure_future(limit.turn().__aenter__())
        await asyncio.sleep(0)
        limit.leave()  # the place is on its way to the first
        first.cancel()
        await asyncio.wait_for(second, 5)
        return first.cancelled()

    assert asyncio.run(run())


def test_a_loop_that_has_ended_is_passed_over():
    line = Line()
    loop = asyncio.new_event_loop()
    loop.run_until_complete(asyncio.sleep(0))
    waiting = loop.create_task(line.wait(lambda: None, lambda: None))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    assert len(line) == 1
    assert not line.hand(lambda: None)
    assert len(line) == 0
    waiting.get_coro().close()


def test_places_pass_from_loop_to_loop():
    limit, most, inside, lock = Limit(at_once=2), 0, 0, threading.Lock()

    async def one():
        nonlocal most, inside
        async with limit.turn():
            with lock:
                inside += 1
                most = max(most, inside)
            await asyncio.sleep(0.001)
            with lock:
                inside -= 1

    async def many():
        await asyncio.gather(*(one() for _ in range(20)))

    threads = [threading.Thread(target=asyncio.run, args=(many(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert not any(thread.is_alive() for thread in threads)
    assert most == 2
    assert inside == 0
