"""A group of deployments: one that fails, others that answer, and fallbacks."""

import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank.background import background_loop
from dspy_rerank.errors import ModelError
from dspy_rerank.models import aliases
from dspy_rerank.testing import FaultServer, faults, oracle_answers
from tests.faults.harness import GRADES, MODES, best_first, own_tasks, ranked

FAILURES = [
    faults.status(500), faults.status(503), faults.rate_limit(), faults.rate_limit(0),
    faults.reset(), faults.half_body(),
]  # fmt: skip


@pytest.fixture
def grouped(tmp_path):
    """An LM of the alias ``group`` over servers by alias."""

    def load(servers, **settings):
        entries = [
            {"model_name": name, "litellm_params": {
                "model": "openai/m", "api_base": server.base_url, "api_key": "none"}}
            for name, server in servers
        ]  # fmt: skip
        path = tmp_path / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": entries, **settings}))
        return dr.models.load(path)["group"].copy(cache=False)

    yield load
    aliases.forget()


def answering(**options):
    return FaultServer(oracle_answers(GRADES), **options)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fault", FAILURES, ids=str)
def test_another_deployment_answers(fault, mode, grouped):
    with answering(faults=fault) as bad, answering() as good:
        lm = grouped([("group", bad), ("group", good)])
        ranking = ranked(dr.ScoreSort(dr.PointwiseJudge()), lm, mode)
        assert ranking.indices == best_first()
        assert not ranking.degraded
        assert good.requests == len(GRADES)
        assert good.in_flight == bad.in_flight == 0


@pytest.mark.parametrize("fault", FAILURES, ids=str)
def test_a_fallback_answers(fault, grouped):
    settings = {"router_settings": {"num_retries": 0, "fallbacks": [{"group": ["other"]}]}}
    with answering(faults=fault) as bad, answering() as good:
        lm = grouped([("group", bad), ("other", good)], **settings)
        ranking = ranked(dr.ScoreSort(dr.PointwiseJudge()), lm)
        assert ranking.indices == best_first()
        assert not ranking.degraded


@pytest.mark.parametrize("on_error", ["original", "raise"])
def test_when_all_fail_the_policy_holds(on_error, grouped):
    settings = {"router_settings": {"num_retries": 1}}
    with answering(faults=faults.status(500)) as one, answering(faults=faults.reset()) as other:
        lm = grouped([("group", one), ("group", other)], **settings)
        sorter = dr.ScoreSort(dr.PointwiseJudge(), on_error=on_error, error_retries=0)
        if on_error == "raise":
            with pytest.raises(ModelError):
                ranked(sorter, lm)
        else:
            ranking = ranked(sorter, lm)
            assert (ranking.indices, ranking.degraded) == (list(range(6)), True)
        assert one.wait(lambda s: s.in_flight == 0)
        assert not own_tasks(background_loop())


@pytest.mark.parametrize("limit", [1, 5])
def test_tries_and_fallbacks_count_as_calls(limit, grouped):
    settings = {"router_settings": {"num_retries": 3, "fallbacks": [{"group": ["other"]}]}}
    with answering(faults=faults.status(500)) as bad, answering(faults=faults.prose()) as vague:
        lm = grouped([("group", bad), ("other", vague)], **settings)
        sorter = dr.AllPairs(dr.PairwiseJudge(), max_calls=limit, retries=3)
        ranking = ranked(sorter, lm)
        assert sorted(ranking.indices) == list(range(6))
        assert bad.requests + vague.requests <= limit
