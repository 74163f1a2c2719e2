"""One program, and models of three kinds behind one alias: only a line of the file changes."""

import dspy
import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank.models import aliases
from dspy_rerank.testing import FaultServer, completion, faults

DOCUMENTS = ["Bananas are yellow.", "Paris is the capital of France.", "France borders Spain."]


@pytest.fixture(autouse=True)
def no_aliases():
    aliases.forget()
    yield
    aliases.forget()


def program(config):
    """All that a user writes."""
    dr.models.load(config)
    reranker = dr.ScoreSort(dr.PointwiseJudge(max_tokens=3), concurrency=1)
    with dspy.context(lm=dr.models.get("judge")):
        return reranker("What is the capital of France?", DOCUMENTS, top_k=3).ranking


def configured(folder, *deployments):
    entries = [
        {"model_name": "judge", "litellm_params": {"api_key": "none", **params}}
        for params in deployments
    ]
    path = folder / "litellm.yaml"
    path.write_text(yaml.safe_dump({"model_list": entries}))
    return path


def grades(asked):
    said = "3" if "Passage: Paris" in asked.prompt else "1"
    return completion(said, odds={said: 0.9, "0": 0.1})


def test_a_server_on_loopback(tmp_path):
    with FaultServer(grades) as server:
        path = configured(tmp_path, {"model": "openai/m", "api_base": server.base_url})
        ranking = program(path)
        assert server.requests == ranking.usage.calls == 3
    assert (ranking.indices[0], ranking.degraded, ranking.usage.failed_calls) == (1, False, 0)
    assert ranking.judgments[0].confidence == pytest.approx(0.9)


def test_a_group_of_which_one_deployment_fails(tmp_path):
    with FaultServer(grades) as good, FaultServer(grades, faults=faults.status(500)) as bad:
        path = configured(
            tmp_path,
            {"model": "openai/m", "api_base": bad.base_url, "weight": 10**9},
            {"model": "openai/m", "api_base": good.base_url, "weight": 1},
        )
        ranking = program(path)
        assert good.requests == ranking.usage.calls == 3
        assert bad.requests == ranking.usage.failed_calls == 1
    assert (ranking.indices[0], ranking.degraded) == (1, False)
    assert ranking.judgments[0].confidence == pytest.approx(0.9)


@pytest.mark.local_model
@pytest.mark.skipif(not dr.models.available(), reason="the embedded model is not installed")
def test_the_embedded_model(tmp_path):
    ranking = program(configured(tmp_path, {"model": "local/embedded", "api_key": None}))
    assert sorted(ranking.indices) == [0, 1, 2]
    assert (ranking.degraded, ranking.usage.cost) == (False, 0.0)
    assert ranking.usage.prompt_tokens > 0
