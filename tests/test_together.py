"""Several things at once: a failure ends them all, and nothing is left behind."""

import asyncio
import gc
import warnings

import pytest

from dspy_rerank.errors import Deferred
from dspy_rerank.together import all_or_cancel


async def said(value):
    await asyncio.sleep(0)
    return value


def test_results_come_in_order():
    async def main():
        return await all_or_cancel(said(n) for n in range(3))

    assert asyncio.run(main()) == [0, 1, 2]


def test_the_first_failure_ends_the_rest():
    ended = []

    async def waits():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append("cancelled")

    async def fails():
        await asyncio.sleep(0)
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        asyncio.run(all_or_cancel([waits(), fails()]))
    assert ended == ["cancelled"]


def test_what_comes_later_is_told_when_the_rest_has_ended():
    ended = []

    async def later():
        raise Deferred("in a batch")

    async def now():
        await asyncio.sleep(0.01)
        ended.append("now")

    with pytest.raises(Deferred):
        asyncio.run(all_or_cancel([later(), now()]))
    assert ended == ["now"]


def test_what_was_cancelled_before_it_began_is_closed():
    async def main():
        task = asyncio.ensure_future(all_or_cancel([said(1), said(2)]))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        asyncio.run(main())
        gc.collect()
    assert [str(each.message) for each in told] == []
