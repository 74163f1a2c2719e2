"""A server that never comes to an end is left after a while, with no deadline from anyone."""

import dspy
import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank.errors import ModelError
from dspy_rerank.models import aliases
from dspy_rerank.patience import TIMEOUT, patience_with
from dspy_rerank.testing import FaultServer, faults, oracle_answers
from tests.faults.harness import (
    ENGINES,
    GRADES,
    MODES,
    best_first,
    close,
    language_model,
    ranked,
    serving,
)

DOCUMENTS = ("text 0", "text 1", "text 2")
HANGING = {"no answer": faults.hang(), "endless body": faults.endless_body()}
SOON = 0.4
"""Seconds; on a busy machine an answer may take longer, which is one more failure to get over."""


def sorter(error_retries=1, **options):
    judge = dr.PointwiseJudge()
    return dr.ScoreSort(judge, concurrency=1, error_retries=error_retries, **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", HANGING)
@pytest.mark.parametrize("engine", ENGINES)
def test_a_call_that_hangs_is_given_up_and_tried_again(engine, fault, mode):
    if engine == "native" and mode == "sync":
        pytest.skip("its connections are counted by the asynchronous tests")
    with serving(engine, faults=[HANGING[fault]]) as (server, lm):
        hurried = impatient(lm, server, engine)
        ranking = ranked(sorter(20), hurried, mode, DOCUMENTS)
        close(hurried, engine)
        assert ranking.indices == best_first(DOCUMENTS)
        assert not ranking.degraded
        assert ranking.usage.failed_calls >= 1
        assert 4 <= server.requests <= ranking.usage.calls + ranking.usage.failed_calls


def impatient(lm, server, engine):
    """The LM with little patience; a direct engine has its own."""
    if engine == "direct":
        return language_model(server, engine, timeout=SOON)
    return lm.copy(timeout=SOON)


@pytest.mark.parametrize("engine", ["litellm", "native"])
def test_one_that_always_hangs_degrades_the_ranking_and_says_what_to_set(engine):
    with serving(engine, faults=faults.endless_body()) as (server, lm):
        lm = lm.copy(timeout=SOON)
        ranking = ranked(sorter(), lm, "async", DOCUMENTS)
        assert (ranking.indices, ranking.degraded) == ([0, 1, 2], True)
        assert f"no answer within {SOON} s" in ranking.reasons[0]
        assert "timeout=" in ranking.reasons[0]
        assert 1 <= server.requests <= ranking.usage.failed_calls
        with pytest.raises(ModelError, match=f"within {SOON} s"):
            ranked(sorter(on_error="raise"), lm, "async", DOCUMENTS)


@pytest.mark.parametrize("fault", HANGING)
def test_a_group_goes_on_to_another_deployment(fault, tmp_path):
    with (
        FaultServer(oracle_answers(GRADES), faults=HANGING[fault]) as bad,
        FaultServer(oracle_answers(GRADES)) as good,
    ):
        entry = {"model": "openai/m", "api_key": "none", "timeout": SOON}
        models = [
            {"model_name": name, "litellm_params": {**entry, "api_base": server.base_url}}
            for name, server in (("group", bad), ("other", good))
        ]
        settings = {"num_retries": 0, "fallbacks": [{"group": ["other"]}]}
        path = tmp_path / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": models, "router_settings": settings}))
        try:
            lm = dr.models.load(path)["group"].copy(cache=False)
            ranking = ranked(sorter(20), lm, documents=DOCUMENTS)
        finally:
            aliases.forget()
        assert ranking.indices == best_first(DOCUMENTS)
        assert not ranking.degraded
        assert good.requests >= 3
        assert bad.wait(lambda s: s.in_flight == 0)


def test_a_paced_alias_is_given_up_too(tmp_path):
    with FaultServer(oracle_answers(GRADES), faults=faults.endless_body()) as server:
        path = tmp_path / "litellm.yaml"
        params = {
            "model": "openai/m", "api_base": server.base_url, "api_key": "none", "rpm": 6000,
            "timeout": SOON, "user": "any",
        }  # fmt: skip
        path.write_text(yaml.safe_dump({"model_list": [
            {"model_name": "judge", "litellm_params": params}]}))  # fmt: skip
        try:
            lm = dr.models.load(path)["judge"].copy(cache=False)
            ranking = ranked(sorter(), lm, documents=DOCUMENTS)
        finally:
            aliases.forget()
        assert ranking.degraded
        assert 1 <= server.requests <= ranking.usage.failed_calls
        assert f"no answer within {SOON} s" in ranking.reasons[0]


@pytest.mark.parametrize(
    ("given", "seconds"),
    [({}, TIMEOUT), ({"timeout": 7}, 7.0), ({"timeout": None}, None), ({"timeout": ()}, None)],
)  # fmt: skip
def test_how_long_a_call_may_take(given, seconds):
    assert patience_with(dspy.LM("openai/m", **given)) == seconds


def test_an_engine_of_its_own_is_left_to_itself():
    assert patience_with(dr.models.direct("http://127.0.0.1:1/v1", model="m")) is None
