"""Which model a command asks: ``--lm``, the program's own, the one alias of ``--config``."""

import argparse
import json

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.binding import named_in
from dspy_rerank.cli import main
from dspy_rerank.cli._common import model
from dspy_rerank.cli._rerankers import program_and_model
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
    program = named_in(dr.ScoreSort(dr.PointwiseJudge()), lm, "judge")
    path = dr.save(program, tmp_path / "p.json")
    aliases.forget()
    return str(path)


def given(config=None, lm=None):
    return argparse.Namespace(config=config, lm=lm)


def test_a_compiled_program_keeps_its_alias(compiled, config):
    assert json.loads(open(compiled).read())["lm"] == "judge"
    loaded = dr.models.load(config("judge", "other"))
    reranker, lm = program_and_model(compiled, given())
    assert lm is loaded["judge"]
    assert {id(predict.lm) for predict in reranker.predictors()} == {id(lm)}
    assert "lm" not in reranker.card


def test_a_named_model_goes_before_it(compiled, config):
    loaded = dr.models.load(config("judge", "other"))
    reranker, lm = program_and_model(compiled, given(lm="other"))
    assert lm is loaded["other"]
    assert {id(predict.lm) for predict in reranker.predictors()} == {id(lm)}


def test_without_the_configuration_no_other_model_is_taken_for_it(compiled):
    with pytest.raises(
        InputError, match=r"made for the alias 'judge', which is not loaded: .*--config"
    ):
        program_and_model(compiled, given())


def test_a_model_by_its_providers_name_is_known_from_the_card(tmp_path):
    lm = dr.models.get("openai/gpt-4o-mini")
    program = named_in(dr.ScoreSort(dr.PointwiseJudge()), lm, "openai/gpt-4o-mini")
    path = str(dr.save(program, tmp_path / "p.json"))
    assert json.loads(open(path).read())["lm"] is None
    assert program_and_model(path, given())[1].model == "openai/gpt-4o-mini"


def test_a_program_of_nobody_says_so(tmp_path):
    path = str(dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "p.json"))
    assert program_and_model(path, given())[1] is None


def test_the_one_alias_of_a_configuration_is_meant(config):
    assert model(given(config("judge"))) is aliases.named("judge")


@pytest.mark.parametrize("names", [("judge", "other"), ("openai/*",)])
def test_of_several_aliases_one_has_to_be_named(config, names):
    path = config(*names)
    with pytest.raises(InputError, match="--config without --lm: name one of its aliases, "):
        model(given(path))
    if len(names) > 1:
        assert model(given(path, "other")) is aliases.named("other")


def test_a_providers_model_of_the_same_name_is_not_taken_for_an_alias(config, tmp_path):
    lm = dr.models.load(config("gpt-4o-mini"))["gpt-4o-mini"]
    path = str(dr.save(named_in(dr.ScoreSort(dr.PointwiseJudge()), lm, None), tmp_path / "p.json"))
    aliases.forget()
    with pytest.raises(InputError, match=r"made for the alias 'gpt-4o-mini', which is not loaded"):
        program_and_model(path, given())


def test_the_model_that_a_search_has_chosen_is_the_programs(tmp_path):
    program = dr.ScoreSort(dr.PointwiseJudge())
    program.set_lm(dr.models.get("openai/good"))
    named_in(program, dr.models.get("openai/cheap"), "openai/cheap")
    assert program_and_model(str(dr.save(program, tmp_path / "p.json")), given())[1].model == (
        "openai/good"
    )


def test_one_alias_is_one_model_however_often_it_is_meant(config):
    arguments = given(config("judge"))
    assert model(arguments) is model(arguments)


def test_compare_asks_each_program_with_its_own_model(compiled, config, tmp_path, monkeypatch):
    asked = []

    def measured(programs, data, metrics, lm, quiet):
        asked.extend(each.predictors()[0].lm for each in programs.values())
        raise InputError("seen")

    monkeypatch.setattr("dspy_rerank.cli.compare.measured", measured)
    path = config("judge", "other")
    loaded = dr.models.load(path)
    program = named_in(dr.ScoreSort(dr.PointwiseJudge()), loaded["other"], None)
    other = str(dr.save(program, tmp_path / "o.json"))
    assert main(["compare", compiled, other, "ostrel", "--split", "test", "--config", path]) != 0
    assert [aliases.alias_of(lm) for lm in asked] == ["judge", "other"]
