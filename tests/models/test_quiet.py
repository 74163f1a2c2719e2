"""LiteLLM prints no advice on standard output, where JSON may stand, for calls of ours."""

import json
import threading

import litellm
import pytest
import yaml

import dspy_rerank as dr
from dspy_rerank.cli import main
from dspy_rerank.models import aliases
from dspy_rerank.prices import listed_price
from dspy_rerank.quiet import quiet

NOBODYS = "nobody-has-made-this"


@pytest.fixture(autouse=True)
def loud(monkeypatch):
    """LiteLLM as it is before DSPy has touched it."""
    monkeypatch.setattr(litellm, "suppress_debug_info", False)
    yield
    aliases.forget()


def written(folder, url, count, **more):
    params = {"model": "openai/m", "api_base": url, "api_key": "k"}
    path = folder / "litellm.yaml"
    entry = {"model_name": "judge", "litellm_params": params, **more}
    path.write_text(yaml.safe_dump({"model_list": [entry] * count}))
    return path


def test_litellm_does_print_advice(capsys):
    with pytest.raises(Exception, match=NOBODYS):
        litellm.get_model_info(NOBODYS)
    assert "Provider List" in capsys.readouterr().out


def test_a_price_that_no_table_has_is_looked_up_in_silence(capsys):
    assert listed_price(NOBODYS) is None
    assert capsys.readouterr().out == ""
    assert litellm.suppress_debug_info is False


@pytest.mark.parametrize("count", [1, 2])
def test_a_probe_prints_its_table_and_nothing_else(count, serve, chat, tmp_path, capsys):
    path = written(tmp_path, serve(chat("A")).url, count, model_info={"base_model": NOBODYS})
    assert main(["models", "probe", "--config", str(path), "--json"]) == 0
    out = capsys.readouterr().out
    assert [told["name"] for told in json.loads(out)][-1] == "judge"
    assert "\x1b" not in out


def test_a_group_that_fails_prints_nothing(serve, tmp_path, capsys):
    refusal = (400, {}, {"error": {"message": "no"}})
    lm = dr.models.load(written(tmp_path, serve(refusal).url, 2))["judge"]
    with pytest.raises(Exception, match="answered 400"):
        lm("hello", cache=False)
    assert capsys.readouterr().out == ""


def test_it_is_silent_until_the_last_call_under_way_is_over():
    inside, over = threading.Event(), threading.Event()

    def other():
        with quiet():
            inside.set()
            over.wait(10)

    thread = threading.Thread(target=other)
    with quiet():
        thread.start()
        assert inside.wait(10)
    assert litellm.suppress_debug_info is True
    over.set()
    thread.join()
    assert litellm.suppress_debug_info is False


@pytest.mark.parametrize("silent", [True, False])
def test_what_dspy_sets_meanwhile_stays(silent, monkeypatch):
    monkeypatch.setattr(litellm, "_dspy_logging_configured", False, raising=False)
    with quiet():
        litellm._dspy_logging_configured = True
        litellm.suppress_debug_info = silent
    assert litellm.suppress_debug_info is silent
