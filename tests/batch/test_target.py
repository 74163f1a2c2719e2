"""Who is asked, with which parameters, at what price."""

import dspy
import pytest
import yaml

from dspy_rerank import models
from dspy_rerank.batch.replay import worst
from dspy_rerank.batch.target import target_of
from dspy_rerank.errors import InputError


@pytest.fixture
def written(tmp_path):
    """Writes a configuration of one alias with some deployments."""

    def write(*deployments, **info):
        entries = [
            {"model_name": "judge", "litellm_params": d, "model_info": info} for d in deployments
        ]
        path = tmp_path / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": entries}))
        return path

    yield write
    models.aliases.forget()


def test_connection_and_request_are_told_apart(written, monkeypatch):
    monkeypatch.setenv("A_KEY", "sk-secret")
    path = written(
        {"model": "azure/cheap", "api_base": "https://x.invalid", "api_key": "os.environ/A_KEY",
         "api_version": "2026-01-01", "max_tokens": 100, "rpm": 5, "extra_body": {"mode": 1}}
    )  # fmt: skip
    target = target_of("judge", path)
    assert target.client["api_key"] == "sk-secret"
    assert target.identity["request"] == {"max_tokens": 100, "mode": 1}
    assert "sk-secret" not in repr(target) + str(target.identity)
    assert target.secrets == ["sk-secret"]
    assert target.body({"messages": []}) == {
        "messages": [], "model": "cheap", "max_completion_tokens": 100, "mode": 1,
    }  # fmt: skip


def test_models_that_reason_get_no_temperature_from_openai():
    asked = {"messages": [], "temperature": 0.0, "max_tokens": 5}
    body = target_of("openai/gpt-5-mini").body(asked)
    assert body == {"messages": [], "model": "gpt-5-mini", "max_completion_tokens": 5}
    assert "temperature" in target_of("openai/gpt-4o-mini").body(asked)
    served = dspy.LM("openai/gpt-5-mini", api_base="http://127.0.0.1:1/v1", api_key="none")
    assert target_of(served).body(asked) == {**asked, "model": "gpt-5-mini"}


def test_a_group_of_deployments_is_refused(written):
    path = written({"model": "openai/a"}, {"model": "openai/b"})
    with pytest.raises(InputError, match="2 deployments, and a batch goes to one"):
        target_of("judge", path)


def test_the_price_is_the_one_for_batches_as_configured(written):
    path = written(
        {"model": "openai/m", "input_cost_per_token": 1.0, "output_cost_per_token": 2.0},
        input_cost_per_token_batches=0.25, output_cost_per_token_batches=0.75,
    )  # fmt: skip
    price = target_of("judge", path).price
    assert (price.read, price.written) == (0.25, 0.75)


def test_the_price_is_half_of_the_configured_one(written):
    deployment = {"model": "openai/m", "input_cost_per_token": 1.0, "output_cost_per_token": 2.0}
    price = target_of("judge", written(deployment)).price
    assert (price.read, price.written) == (0.5, 1.0)


def test_the_price_is_the_listed_one_for_batches():
    price = target_of("openai/gpt-4o-mini").price
    assert (price.read, price.written) == (7.5e-08, 3e-07)


def test_no_price_is_made_up():
    assert target_of("openai/some-model-of-mine").price is None


def test_the_worst_covers_an_answer_of_any_allowed_length(written):
    deployment = {"model": "openai/m", "input_cost_per_token": 0.0, "output_cost_per_token": 2.0}
    price = target_of("judge", written(deployment)).price
    body = {"messages": [{"role": "user", "content": "a b c"}]}
    assert worst({**body, "max_tokens": 7}, price) == 7
    assert worst(body, price) == 2048
    assert worst(body, None) == 0
