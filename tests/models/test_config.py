"""What a LiteLLM proxy's configuration may say, and what is made of it."""

import os

import dspy
import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.limits import limit_of
from dspy_rerank.models import aliases
from dspy_rerank.models._config import read_config
from dspy_rerank.models._paced import PacedLM
from dspy_rerank.prices import Price

PROXY = """
model_list:
  - model_name: judge
    litellm_params:
      model: azure/my-deployment
      api_base: os.environ/AZURE_BASE
      api_key: os.environ/AZURE_KEY
      api_version: "2024-10-21"
      rpm: 60
    model_info:
      base_model: azure/gpt-4o-mini
      mode: chat
  - model_name: judge
    litellm_params: {model: gpt-4o-mini, litellm_credential_name: openai, rpm: 30, weight: 2}
  - model_name: cheap
    litellm_params:
      model: groq/llama
      input_cost_per_token: 0.0000001
      output_cost_per_token: 0.0000002
  - model_name: long
    litellm_params: {model: gemini/gemini-2.0-flash}
  - model_name: "anthropic/*"
    litellm_params: {model: "anthropic/*", api_key: os.environ/ANTHROPIC_KEY}
credential_list:
  - credential_name: openai
    credential_values: {api_key: os.environ/OPENAI_KEY}
litellm_settings:
  drop_params: true
  num_retries: 2
  request_timeout: 30
  fallbacks: [{judge: [cheap]}]
  context_window_fallbacks: [{judge: [long]}]
  set_verbose: true
  callbacks: [prometheus]
router_settings:
  routing_strategy: simple-shuffle
  model_group_alias: {gpt-4: judge, hidden: {model: cheap, hidden: true}}
  redis_host: localhost
general_settings:
  master_key: sk-1234
environment_variables:
  DSPY_RERANK_TEST_VARIABLE: from-the-file
guardrails: []
"""


@pytest.fixture(autouse=True)
def no_aliases():
    aliases.forget()
    yield
    aliases.forget()


@pytest.fixture
def proxy(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(PROXY)
    return path


def loaded(tmp_path, content):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(content))
    return dr.models.load(path)


def entry(name, model="openai/m", info=None, **params):
    return {"model_name": name, "litellm_params": {"model": model, **params},
            "model_info": info or {}}  # fmt: skip


def test_a_proxys_file_is_understood(proxy):
    config = read_config(proxy)
    assert list(config.groups) == ["judge", "cheap", "long", "anthropic/*", "gpt-4", "hidden"]
    assert config.groups["gpt-4"] == config.groups["judge"]
    assert config.groups["judge"][1].params["api_key"] == "os.environ/OPENAI_KEY"
    assert config.reachable("judge") == ("judge", "cheap", "long")
    assert (config.retries, config.drop_params) == (2, True)
    assert dict(config.router) == {"routing_strategy": "simple-shuffle", "timeout": 30}
    assert config.groups["judge"][0].listed == "azure/gpt-4o-mini"


def test_what_is_not_used_is_named_in_one_warning(proxy, caplog):
    with caplog.at_level("WARNING", logger="dspy_rerank"):
        read_config(proxy)
    (record,) = caplog.records
    assert record.getMessage().endswith(
        "not used here: guardrails, router_settings.redis_host, litellm_settings.callbacks, "
        "litellm_settings.set_verbose"
    )


def test_variables_of_the_file_are_set_at_first_use_where_nobody_has_set_them(proxy, monkeypatch):
    monkeypatch.delenv("DSPY_RERANK_TEST_VARIABLE", raising=False)
    found = dr.models.load(proxy)
    assert "DSPY_RERANK_TEST_VARIABLE" not in os.environ
    _ = found["cheap"]
    assert os.environ.pop("DSPY_RERANK_TEST_VARIABLE") == "from-the-file"


def test_a_pattern_stands_for_every_model_that_fits(proxy, monkeypatch):
    monkeypatch.setenv("ANTHROPIC_KEY", "k")
    found = dr.models.load(proxy)
    lm = dr.models.get("anthropic/claude-x")
    assert lm is found["anthropic/claude-x"]
    assert (lm.model, lm.kwargs["api_key"]) == ("anthropic/claude-x", "k")
    assert "mistral/x" not in found
    with pytest.raises(KeyError):
        found["mistral/x"]


@pytest.mark.parametrize(
    ("pattern", "model", "name", "asked"),
    [
        ("*", "openrouter/*", "meta/llama", "openrouter/meta/llama"),
        ("my-*-judge", "openai/*", "my-gpt-judge", "openai/gpt"),
        ("fast/*", "groq/llama", "fast/anything", "groq/llama"),
    ],
)
def test_the_star_of_the_model_is_what_the_star_of_the_name_was(
    tmp_path, pattern, model, name, asked
):
    config = read_config_of(tmp_path, entry(pattern, model)).with_name(name)
    assert config.groups[name][0].model == asked


def read_config_of(tmp_path, *entries, **sections):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"model_list": list(entries), **sections}))
    return read_config(path)


def test_the_longest_pattern_counts(tmp_path):
    config = read_config_of(tmp_path, entry("*", "a/*"), entry("openai/*", "b/*"))
    assert config.with_name("openai/x").groups["openai/x"][0].model == "b/x"


@pytest.mark.parametrize("place", ["litellm_params", "model_info"])
def test_a_price_is_known_wherever_the_file_gives_it(tmp_path, place):
    price = {"input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
             "cache_read_input_token_cost": 5e-7}  # fmt: skip
    given = entry("judge", api_base="http://h:1/v1")
    given[place] |= price
    lm = loaded(tmp_path, {"model_list": [given]})["judge"]
    assert lm.price == lm.copy(temperature=0.5).price == Price(1e-6, 2e-6, 5e-7)
    assert not set(price) & set(lm.kwargs)


@pytest.mark.parametrize(
    ("price", "says"),
    [
        ({"input_cost_per_token": 1e-6}, "lacks output_cost_per_token"),
        ({"input_cost_per_token": -1, "output_cost_per_token": 1}, "input_cost_per_token=-1"),
        ({"input_cost_per_token": "x", "output_cost_per_token": 1}, "input_cost_per_token='x'"),
    ],
)
def test_a_price_that_is_none_is_refused_with_its_place(tmp_path, price, says):
    with pytest.raises(InputError, match=rf"config\.yaml: model_list\[0\].*{says}"):
        read_config_of(tmp_path, entry("judge", **price))


BAD = {
    "fallbacks name 'lost'": {"litellm_settings": {"fallbacks": [{"judge": ["lost"]}]}},
    "context_window_fallbacks name 'lost'": {
        "router_settings": {"context_window_fallbacks": [{"judge": ["lost"]}]}
    },
    "model_group_alias names 'lost'": {"router_settings": {"model_group_alias": {"x": "lost"}}},
    "model_group_alias is list": {"router_settings": {"model_group_alias": ["x"]}},
    "num_retries is 'x'": {"router_settings": {"num_retries": "x"}},
    "retry_after is -1": {"router_settings": {"retry_after": -1}},
    "router_settings is list": {"router_settings": ["x"]},
    "environment_variables is str": {"environment_variables": "x"},
    "credential_list needs": {"credential_list": [{"credential_name": "x"}]},
}


@pytest.mark.parametrize("says", BAD)
def test_what_cannot_be_is_said_in_one_line(tmp_path, says):
    with pytest.raises(InputError, match=says) as caught:
        read_config_of(tmp_path, entry("judge"), **BAD[says])
    assert "\n" not in str(caught.value)


def test_a_credential_that_is_not_listed_is_an_error(tmp_path):
    with pytest.raises(InputError, match=r"model_list\[0\] names the credential 'lost'"):
        read_config_of(tmp_path, entry("judge", litellm_credential_name="lost"))


def test_fallbacks_for_everyone(tmp_path):
    config = read_config_of(
        tmp_path, entry("a"), entry("b"), entry("c"),
        litellm_settings={"fallbacks": [{"*": ["c"]}, {"b": ["a"]}]},
    )  # fmt: skip
    assert config.fallbacks == {"a": ("c",), "b": ("a",)}


def test_rates_hold_for_plain_calls_of_hosted_models(tmp_path):
    lm = loaded(tmp_path, {"model_list": [entry("judge", rpm=30, max_parallel_requests=4)]})[
        "judge"
    ]
    assert isinstance(lm, PacedLM)
    limit = limit_of(lm)
    assert (limit.rpm, limit.at_once) == (30, 4)
    assert limit_of(lm.copy(temperature=1.0)) is limit
    assert lm.dump_state()["_dspy_lm_class"] == "dspy.clients.lm.LM"
    assert type(dspy.BaseLM.load_state(lm.dump_state())) is dspy.LM
