"""Models from a LiteLLM configuration: by alias, by whichever path, and without showing keys."""

import asyncio
import importlib
import json
import subprocess
import sys

import dspy
import pytest
import yaml
from dspy.utils.exceptions import LMError

import dspy_rerank as dr
from dspy_rerank import lite
from dspy_rerank.errors import InputError
from dspy_rerank.limits import limit_of
from dspy_rerank.models import aliases
from dspy_rerank.models.direct import DirectEngine
from dspy_rerank.testing import ScriptedEngine

CANARY = "sk-canary-1234567890"


@pytest.fixture(autouse=True)
def no_aliases():
    aliases.forget()
    yield
    aliases.forget()


@pytest.fixture
def written(tmp_path):
    """Writes a configuration: alias, model and parameters a deployment; further sections."""

    def write(*deployments, **sections):
        entries = [
            {"model_name": name, "litellm_params": {"model": model, **params}}
            for name, model, params in deployments
        ]
        path = tmp_path / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": entries, **sections}))
        return path

    return write


def test_an_alias_is_found_by_name_after_loading(written):
    loaded = dr.models.load(written(("judge", "openai/gpt-4o-mini", {"api_key": CANARY})))
    assert list(loaded) == ["judge"]
    assert dr.models.get("judge") is loaded["judge"]
    assert isinstance(loaded["judge"], dspy.LM)
    assert loaded["judge"].model == "openai/gpt-4o-mini"


def test_a_copy_is_made_for_other_parameters(written):
    dr.models.load(written(("judge", "openai/gpt-4o-mini", {})))
    assert dr.models.get("judge", temperature=1.0).kwargs["temperature"] == 1.0
    assert dr.models.get("judge").kwargs.get("temperature") is None


def test_an_unknown_alias_lists_the_known(written):
    dr.models.load(written(("judge", "openai/gpt-4o-mini", {}), ("cheap", "groq/x", {})))
    with pytest.raises(InputError, match=r"'jugde'; expected .*; loaded are judge, cheap"):
        dr.models.get("jugde")


def test_a_name_that_nobody_knows_says_how_models_are_named():
    with pytest.raises(InputError, match=r"'judge'; expected PROVIDER/MODEL, .*--config FILE"):
        dr.models.get("judge")


def test_a_model_whose_provider_litellm_knows_needs_none():
    assert dr.models.get("gpt-4o-mini").model == "gpt-4o-mini"


@pytest.mark.parametrize("name", ["gemini-9-pro", "openai:my-model"])
def test_a_name_that_dspy_itself_routes_is_taken(name):
    assert dr.models.get(name).model == name


@pytest.mark.parametrize("loaded", [False, True])
@pytest.mark.parametrize(
    "given",
    [
        {"custom_llm_provider": "openai"},
        {"deployment_id": "judge-2"},
        {"engine": ScriptedEngine("2")},
    ],
)
def test_any_name_will_do_where_the_provider_is_given_apart(written, given, loaded):
    if loaded:
        dr.models.load(written(("judge", "openai/gpt-4o-mini", {})))
    assert dr.models.get("my-model", **given).model == "my-model"


def test_an_address_alone_is_enough_only_where_it_says_whose_it_is():
    known = dr.models.get("my-model", api_base="https://api.groq.com/openai/v1")
    assert known.model == "my-model"
    with pytest.raises(InputError, match="there is no model 'my-model'"):
        dr.models.get("my-model", api_base="http://127.0.0.1:9/v1")


def test_without_litellm_a_name_is_not_said_to_be_nobodys(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)
    monkeypatch.setattr(lite, "litellm", lambda: importlib.import_module("litellm"))
    assert dr.models.get("my-model").model == "my-model"


def test_names_of_providers_still_work(written):
    dr.models.load(written(("judge", "openai/gpt-4o-mini", {})))
    assert dr.models.get("openai/gpt-4o").model == "openai/gpt-4o"


@pytest.mark.parametrize(
    ("model", "params", "url"),
    [
        ("openai/m", {"api_base": "http://h:1/v1"}, "http://h:1/v1"),
        ("hosted_vllm/org/m", {"api_base": "http://h:1/v1/"}, "http://h:1/v1"),
        ("ollama/m", {"api_base": "http://h:1"}, "http://h:1/v1"),
    ],
)
def test_a_server_of_ones_own_is_reached_directly(written, model, params, url):
    dr.models.load(written(("judge", model, {**params, "temperature": 0.2})))
    lm = dr.models.get("judge")
    assert isinstance(lm.engine, DirectEngine)
    assert lm.engine.url == url
    assert lm.engine.model == model.partition("/")[2]
    assert lm.kwargs["temperature"] == 0.2


def test_keys_come_from_the_environment_when_the_alias_is_used(written, monkeypatch):
    path = written(("judge", "openai/m", {"api_key": "os.environ/CANARY_KEY"}))
    monkeypatch.delenv("CANARY_KEY", raising=False)
    dr.models.load(path)
    with pytest.raises(InputError, match="judge: the environment variable CANARY_KEY is not set"):
        dr.models.get("judge")
    monkeypatch.setenv("CANARY_KEY", CANARY)
    assert dr.models.get("judge").kwargs["api_key"] == CANARY


def test_rates_become_limits(written):
    params = {"api_base": "http://h:1/v1", "rpm": 30, "tpm": 1000}
    dr.models.load(written(("one", "openai/m", params), ("two", "openai/m", params),
                           ("two", "openai/n", params)))  # fmt: skip
    limits = [limit_of(dr.models.get(name)) for name in ("one", "two")]
    assert [(limit.rpm, limit.tpm) for limit in limits] == [(30, 1000), (60, 2000)]


def test_one_model_at_two_addresses_shares_no_cache_entry(written):
    params = [{"api_base": f"http://h:{port}"} for port in (1, 2)]
    dr.models.load(written(*((f"m{i}", "anthropic/c", p) for i, p in enumerate(params))))
    salts = {dr.models.get(name).kwargs["rollout_id"] for name in ("m0", "m1")}
    assert len(salts) == 2


def three_lines(written, serve, chat):
    """One program's models: a direct server, and a group of which one deployment fails."""
    says = chat("A", {"A": 0.9, "B": 0.1})
    good, broken = serve(says), serve((500, {}, {"error": {"message": f"down {CANARY}"}}))
    path = written(
        ("direct", "openai/m", {"api_base": good.url, "api_key": CANARY}),
        ("group", "openai/m", {"api_base": broken.url, "api_key": CANARY}),
        ("group", "openai/m", {"api_base": good.url, "api_key": CANARY}),
        ("broken", "openai/m", {"api_base": broken.url, "api_key": CANARY}),
        ("saved", "openai/m", {"api_base": broken.url, "api_key": CANARY}),
        router_settings={"num_retries": 4, "retry_after": 0},
        litellm_settings={"fallbacks": [{"saved": ["direct"]}]},
    )
    return path, good, broken


@pytest.mark.parametrize("alias", ["direct", "group", "saved"])
def test_one_program_runs_on_any_alias(written, serve, chat, alias):
    path, *_ = three_lines(written, serve, chat)
    dr.models.load(path)
    reranker = dr.MergeSort(dr.PairwiseJudge(swap=False))
    with dspy.context(lm=dr.models.get(alias)):
        ranking = reranker("q", ["x", "y", "z"]).ranking
    assert not ranking.degraded
    assert ranking.indices == [0, 1, 2]
    assert ranking.judgments[0].confidence == pytest.approx(0.9)
    assert ranking.usage.prompt_tokens == 7 * ranking.usage.calls


def test_a_failing_deployment_is_survived_and_reported(written, serve, chat, caplog):
    path, good, broken = three_lines(written, serve, chat)
    lm = dr.models.load(path)["saved"]
    with caplog.at_level("WARNING", logger="dspy_rerank"):
        assert lm("hello")[0] in ("A", {"text": "A"})
    assert broken.asked
    assert good.asked
    assert "saved: answered by" in caplog.text
    assert "fallbacks" in caplog.text


def test_groups_answer_synchronous_and_asynchronous_calls(written, serve, chat):
    path, *_ = three_lines(written, serve, chat)
    lm = dr.models.load(path)["group"]
    assert lm("hello") == ["A"] == asyncio.run(lm.acall("hello again"))


@pytest.mark.parametrize("alias", ["broken", "direct", "group", "saved"])
def test_a_key_is_nowhere_to_be_seen(written, serve, chat, caplog, tmp_path, alias):
    path, *_ = three_lines(written, serve, chat)
    loaded = dr.models.load(path)
    lm = loaded[alias].copy(num_retries=0)
    program = dspy.Predict("question -> answer")
    program.set_lm(lm)
    reranker = dr.MergeSort(dr.PairwiseJudge())
    reranker.set_lm(lm)
    said = ""
    with caplog.at_level("INFO"):
        try:
            lm("hello")
        except LMError as error:
            said = str(error) + repr(error)
    program.save(tmp_path / "dspy.json")
    dr.save(reranker, tmp_path / "ours.json")
    shown = [
        said, caplog.text, repr(lm), repr(lm.engine), repr(loaded), repr(loaded.config),
        str(lm.history), (tmp_path / "dspy.json").read_text(), (tmp_path / "ours.json").read_text(),
    ]  # fmt: skip
    assert not [text for text in shown if CANARY in text]
    assert (alias == "broken") is bool(said)


BAD = {
    "not yaml": "model_list: [",
    "no list": "models: []",
    "empty": "",
    "a name only": "model_list: [{model_name: judge}]",
    "no model": "model_list: [{model_name: judge, litellm_params: {}}]",
    "wrong fallbacks": "model_list: [{model_name: a, litellm_params: {model: x/y}}]\n"
    "litellm_settings: {fallbacks: [a]}",
    "lost fallback": "model_list: [{model_name: a, litellm_params: {model: x/y}}]\n"
    "litellm_settings: {fallbacks: [{a: [b]}]}",
}


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_cannot_be_used_is_named(tmp_path, name):
    path = tmp_path / "bad.yaml"
    path.write_text(BAD[name])
    with pytest.raises(InputError, match=r"bad\.yaml"):
        dr.models.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        dr.models.load(tmp_path / "none.yaml")


def test_loading_imports_no_litellm(written):
    path = written(("a", "openai/m", {}), ("a", "openai/n", {}))
    code = (
        "import sys, dspy_rerank as dr\n"
        f"lm = dr.models.load({str(path)!r})['a']\n"
        "print('litellm' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_the_state_of_a_group_names_alias_and_file(written):
    path = written(("a", "openai/m", {"api_key": CANARY}), ("a", "openai/n", {"api_key": CANARY}))
    state = dr.models.load(path)["a"].dump_state()
    assert CANARY not in json.dumps(state, default=str)
    assert state["engine"]["state"] == {"alias": "a", "config": str(path)}


def test_a_saved_program_names_its_alias_and_finds_it_again(written, tmp_path):
    path = written(("judge", "openai/m", {"api_key": CANARY, "api_base": "http://h:1/v1"}))
    dr.models.load(path)
    reranker = dr.MergeSort(dr.PairwiseJudge())
    reranker.set_lm(dr.models.get("judge"))
    saved = dr.save(reranker, tmp_path / "program.json")
    assert json.loads(saved.read_text())["lm"] == "judge"
    assert dr.load(saved).judge.predict.lm is dr.models.get("judge")
    dr.models.load(written(("judge", "anthropic/claude", {})))
    assert dr.load(saved).judge.predict.lm.model == "anthropic/claude"
    aliases.forget()
    assert dr.load(saved).judge.predict.lm is None


def test_a_copy_of_an_alias_shares_its_limit(written):
    dr.models.load(written(("judge", "openai/m", {"rpm": 30})))
    assert limit_of(dr.models.get("judge", temperature=0.5)) is limit_of(dr.models.get("judge"))


def test_what_keeps_the_caches_of_addresses_apart_warns_nobody(written, recwarn):
    address = {"api_base": "http://127.0.0.1:9/v1", "api_key": CANARY, "drop_params": True}
    dr.models.load(written(("judge", "openai/m", address)))
    lm = dr.models.get("judge")
    assert lm.kwargs["rollout_id"]
    lm._warn_zero_temp_rollout(0.0, lm.kwargs["rollout_id"])
    lm.copy(cache=False)._warn_zero_temp_rollout(0.0, None)
    assert not [each for each in recwarn if "rollout_id" in str(each.message)]
