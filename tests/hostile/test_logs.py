"""What is logged names errors, and never says what a request has brought."""

import logging

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import ModelError
from dspy_rerank.testing import FaultServer, faults, scripted_lm

SECRET = "the passage about canaries"


@pytest.mark.parametrize("on_error", ["original", "raise"])
def test_a_failure_is_logged_without_the_words_of_the_error(on_error, caplog):
    caplog.set_level(logging.DEBUG, "dspy_rerank")
    lm = scripted_lm([RuntimeError(f"cannot tokenize {SECRET!r}")])
    sorter = dr.ScoreSort(dr.PointwiseJudge(), error_retries=0, on_error=on_error)
    with dspy.context(lm=lm):
        if on_error == "raise":
            with pytest.raises(ModelError, match="canaries"):
                sorter("query of canaries", [SECRET, "other"])
        else:
            assert SECRET in sorter("query of canaries", [SECRET, "other"]).ranking.reasons[0]
    assert "degraded" in caplog.text
    assert "canaries" not in caplog.text


def test_a_failure_is_logged_with_its_kind_and_status(caplog):
    with FaultServer("2", faults=faults.status(503)) as server:
        lm = dr.models.direct(server.base_url, model="m", api_key="sk-canary", cache=False)
        with dspy.context(lm=lm):
            ranking = dr.ScoreSort(dr.PointwiseJudge(), error_retries=0)("q", ["a", "b"]).ranking
    assert ranking.degraded
    assert "LMServerError, status 503" in caplog.text
    assert "sk-canary" not in caplog.text + str(ranking.to_dict())


def test_a_ranking_that_works_logs_nothing(caplog):
    caplog.set_level(logging.DEBUG, "dspy_rerank")
    with dspy.context(lm=scripted_lm("2")):
        dr.ScoreSort(dr.PointwiseJudge())("query of canaries", [SECRET, "other"])
    assert not caplog.records
