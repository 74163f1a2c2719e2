"""Which model a command asks: ``--lm``, the program's own, the one alias of ``--config``."""

import argparse
import json

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.cli._common import model
from dspy_rerank.cli._rerankers import program_and_model
from dspy_rerank.cli.compiling import with_model
from dspy_rerank.errors import InputError
from dspy_rerank.models import aliases


@pytest.fixture(autouse=True)
def nothing_is_known():
    aliases.forget()
    dspy.configure(lm=None)
    yield
    aliases.forget()


@pytest.fixture
def config(tmp_path):
    """Writes a LiteLLM configuration with these aliases."""

    def write(*names):
        path = tmp_path / "litellm.yaml"
        entries = [
            {"model_name": name, "litellm_params": {"model": f"openai/{name}", "api_key": "k"}}
            for name in names
        ]
        path.write_text(json.dumps({"model_list": entries}))
        return str(path)

    return write


@pytest.fixture
def compiled(tmp_path, config):
    """A program that was compiled with the alias ``judge``, which is forgotten again."""
    lm = dr.models.load(config("judge", "other"))["judge"]
    program = with_model(dr.ScoreSort(dr.PointwiseJudge()), lm, "judge")
    path = dr.save(program, tmp_path / "p.json")
    aliases.forget()
    return str(path)


def given(config, lm=None):
    return argparse.Namespace(config=config, lm=lm)


def test_a_compiled_program_keeps_its_alias(compiled, config):
    assert json.loads(open(compiled).read())["lm"] == "judge"
    loaded = dr.models.load(config("judge", "other"))
    reranker, lm = program_and_model(compiled, None)
    assert lm is loaded["judge"]
    assert {id(predict.lm) for predict in reranker.predictors()} == {id(lm)}
    assert reranker.card["lm"] == "judge"


def test_a_named_model_goes_before_it(compiled, config):
    loaded = dr.models.load(config("judge", "other"))
    reranker, lm = program_and_model(compiled, "other")
    assert lm is loaded["other"]
    assert {id(predict.lm) for predict in reranker.predictors()} == {id(lm)}


def test_without_the_configuration_no_other_model_is_taken_for_it(compiled):
    with pytest.raises(InputError, match="is made for 'judge', which is not at hand: give --conf"):
        program_and_model(compiled, None)


def test_a_model_by_its_providers_name_is_known_from_the_card(tmp_path):
    lm = dr.models.get("openai/gpt-4o-mini")
    program = with_model(dr.ScoreSort(dr.PointwiseJudge()), lm, "openai/gpt-4o-mini")
    path = str(dr.save(program, tmp_path / "p.json"))
    assert json.loads(open(path).read())["lm"] is None
    assert program_and_model(path, None)[1].model == "openai/gpt-4o-mini"


def test_a_program_of_nobody_says_so(tmp_path):
    path = str(dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "p.json"))
    assert program_and_model(path, None)[1] is None


def test_the_one_alias_of_a_configuration_is_meant(config):
    assert model(given(config("judge"))) is aliases.named("judge")


@pytest.mark.parametrize("names", [("judge", "other"), ("openai/*",)])
def test_of_several_aliases_one_has_to_be_named(config, names):
    path = config(*names)
    with pytest.raises(InputError, match="--config without --lm: name one of its aliases, "):
        model(given(path))
    if len(names) > 1:
        assert model(given(path, "other")) is aliases.named("other")
