"""What the matrix does not show: how long to wait, how much to read, what to close."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import ModelError
from dspy_rerank.limits import LONGEST_PAUSE, Limit
from dspy_rerank.models._failures import seconds
from dspy_rerank.models.direct import LONGEST
from dspy_rerank.testing import faults
from tests.faults.harness import ranked, serving


def test_a_date_to_come_is_so_many_seconds():
    date = datetime.now(UTC) + timedelta(seconds=90)
    assert seconds(format_datetime(date, usegmt=True)) == pytest.approx(90, abs=5)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("7", 7.0), ("0.5", 0.5), ("Wed, 01 Jan 2020 00:00:00 GMT", 0.0),
        ("Wed, 01 Jan 2020 00:00:00", 0.0), (None, None), ("soon", None), ("-1", None),
        ("nan", None), ("inf", None), ("999999", None), ("Wed, 01 Jan 2120 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_the_header_in_seconds(header, expected):
    assert seconds(header) == expected


def test_a_long_pause_is_cut_to_what_anyone_would_wait():
    limit = Limit(clock=lambda: 100.0)
    limit.refused(3000.0)
    assert limit.reserve() == LONGEST_PAUSE


def test_reading_stops_where_no_answer_is_that_long():
    with serving(faults=faults.endless_body()) as (_, lm):
        with pytest.raises(dspy.LMError, match=f"longer than {LONGEST} bytes"):
            asyncio.run(lm.copy(num_retries=0).acall("Passage: text 0"))


def test_closing_the_engine_closes_what_rankings_opened():
    with serving() as (server, lm):
        ranked(dr.ScoreSort(dr.PointwiseJudge()), lm)
        assert server.connections > 0
        lm.engine.close()
        assert server.wait(lambda s: s.connections == 0)
        assert not ranked(dr.ScoreSort(dr.PointwiseJudge()), lm).degraded


def test_connections_are_used_again():
    with serving() as (server, lm):
        for _ in range(5):
            ranked(dr.ScoreSort(dr.PointwiseJudge(), concurrency=2), lm)
        assert server.connections <= 2
        assert server.requests == 30


def test_one_bad_server_does_not_slow_another():
    """A pause after a refusal belongs to the model that asked for it."""
    with serving(faults=faults.rate_limit(60)) as (_, refused), serving() as (server, lm):
        assert ranked(dr.ScoreSort(dr.PointwiseJudge(), deadline=0.2), refused).degraded
        assert not ranked(dr.ScoreSort(dr.PointwiseJudge(), deadline=30), lm).degraded
        assert server.requests == 6


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500, 599])
def test_no_status_raises_what_is_not_documented(status):
    documented = (ModelError, dspy.LMError)
    for engine in ("direct", "litellm", "native"):
        with serving(engine, faults=faults.status(status, "odd")) as (_, lm):
            sorter = dr.ScoreSort(dr.PointwiseJudge(), on_error="raise", error_retries=0)
            with pytest.raises(documented):
                ranked(sorter, lm)


@pytest.mark.parametrize("call", [dr.TopDown.aforward, dr.rerank, dr.pairwise_rerank])
def test_what_faults_raise_is_named_where_one_looks(call):
    raises = call.__doc__.partition("Raises:")[2]
    assert "dspy.LMError" in raises
    assert "ModelError" in raises or call is dr.rerank  # which always degrades
