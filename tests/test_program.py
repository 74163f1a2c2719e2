"""Saving and loading: the same prompts and the same ranking, in another process."""

import json
import subprocess
import sys
from typing import Literal

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import ProgramError
from dspy_rerank.testing import oracle_judge, scripted_lm

DOCUMENTS = ["one", "two", "three"]


class House(dspy.Signature):
    """Grade by the house rule."""

    query: str = dspy.InputField()
    passage: str = dspy.InputField()
    criteria: str = dspy.InputField(desc="what counts")
    verdict: Literal["0", "1"] = dspy.OutputField()


def programs():
    return [
        dr.ScoreSort(dr.PointwiseJudge(), prior=0.3),
        dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood")),
        dr.ScoreSort(dr.PointwiseJudge(House, scale=(0, 1))),
        dr.AllPairs(dr.PairwiseJudge(swap=False, instructions="Which one?")),
        dr.HeapSort(dr.SetwiseJudge(shuffle=True), children=4, seed=5),
        dr.SlidingWindow(dr.ListwiseJudge(reasoning=True), window=6, step=2, deadline=2.5),
        dr.TopDown(dr.ListwiseJudge(adapter=dspy.JSONAdapter()), rounds=2),
        dr.TopDown(dr.PairwiseJudge(), meetings=6, prior=0.1),
        dr.TourRank(dr.ListwiseJudge(), rounds=2),
        dr.TDPart(dr.ListwiseJudge(), window=10),
        dr.Tournament(dr.SetwiseJudge(), window=5),
        dr.PRPSliding(dr.PairwiseJudge(), passes=3),
        dr.Survivor(dr.SetwiseJudge(), window=3),
        dr.Consensus(dr.MergeSort(dr.PairwiseJudge()), passes=4),
    ]


@pytest.mark.parametrize("program", programs(), ids=repr)
def test_what_is_saved_comes_back(program, tmp_path):
    path = dr.save(program, tmp_path / "p.json")
    loaded = dr.load(path)
    assert type(loaded) is type(program)
    assert loaded.settings == program.settings
    assert loaded.judge.settings == program.judge.settings
    assert loaded.dump_state() == program.dump_state()
    again = dr.save(loaded, tmp_path / "again.json")
    assert again.read_text() == path.read_text()


CHILD = """
import sys, json, dspy, dspy_rerank as dr
from dspy_rerank.testing import scripted_lm
lm = scripted_lm("B")
program = dr.load(sys.argv[1], lm=lm)
ranking = program(query="q", documents=["one", "two", "three"]).ranking
print(json.dumps([lm.engine.prompts, ranking.indices]))
"""


def test_another_process_asks_with_byte_identical_prompts(tmp_path):
    program = dr.MergeSort(dr.PairwiseJudge(instructions="Sort für mich."))
    program.judge.predict.demos = [{"query": "d", "passages": "Passage [A]: é", "winner": "A"}]
    lm = scripted_lm("B")
    with dspy.context(lm=lm):
        ranking = program("q", DOCUMENTS).ranking
    path = dr.save(program, tmp_path / "p.json")
    out = subprocess.run(
        [sys.executable, "-c", CHILD, str(path)], capture_output=True, text=True, check=True
    )
    prompts, indices = json.loads(out.stdout.strip().splitlines()[-1])
    assert sorted(prompts) == sorted(lm.engine.prompts)
    assert indices == ranking.indices


def test_no_secret_is_written(tmp_path):
    program = dr.MergeSort(dr.PairwiseJudge())
    program.set_lm(dspy.LM("openai/x", api_key="sk-canary", headers={"x-api-key": "canary-header"}))
    text = dr.save(program, tmp_path / "p.json").read_text()
    assert "canary" not in text
    assert dr.load(tmp_path / "p.json").judge.predict.lm is None


def test_a_function_cannot_be_saved(tmp_path):
    with pytest.raises(ProgramError, match="FunctionJudge"):
        dr.save(dr.MergeSort(oracle_judge({}, "pairwise")), tmp_path / "p.json")


def saved(tmp_path, change):
    path = dr.save(dr.MergeSort(dr.PairwiseJudge()), tmp_path / "p.json")
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda c: c.update(format="other"), "not a saved reranker"),
        (lambda c: c.update(version=99), "upgrade"),
        (lambda c: c.update(version="1"), "version"),
        (lambda c: c.pop("state"), "lacks 'state'"),
        (lambda c: c.pop("program"), "lacks 'program'"),
        (lambda c: c["program"].update({"class": "os.system"}), "may be loaded"),
        (lambda c: c["program"].update({"class": "PairwiseJudge"}), "usable reranker|not a rer"),
        (lambda c: c["program"]["settings"].update(concurrency=-4), "concurrency"),
        (lambda c: c["program"]["settings"].update(wings=2), "wings"),
        (
            lambda c: c["program"]["children"]["judge"]["signature"]["fields"][0].update(name="q2"),
            "query",
        ),
        (
            lambda c: c["program"]["children"]["judge"]["signature"]["fields"][2].update(name="w"),
            "signature was changed",
        ),
        (
            lambda c: c["program"]["children"]["judge"]["signature"]["fields"][2].update(type="x"),
            "field type",
        ),
        (lambda c: c["state"].pop("judge.predict"), "judge.predict"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_with_a_reason(tmp_path, change, says):
    with pytest.raises(ProgramError, match=says):
        dr.load(saved(tmp_path, change))


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "\x00", '{"format": "dspy_rerank.program"}']
)
def test_any_other_file_is_refused(tmp_path, text):
    path = tmp_path / "p.json"
    path.write_text(text)
    with pytest.raises(ProgramError, match=r"p\.json"):
        dr.load(path)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(ProgramError, match="no such file"):
        dr.load(tmp_path / "nowhere.json")


class MySort(dr.MergeSort):
    """A sorter of the caller's own."""


def test_classes_of_the_caller_have_to_be_passed(tmp_path):
    path = dr.save(MySort(dr.PairwiseJudge()), tmp_path / "p.json")
    with pytest.raises(ProgramError, match="MySort"):
        dr.load(path)
    assert isinstance(dr.load(path, classes=[MySort]), MySort)


def test_settings_survive_inside_a_larger_program(tmp_path):
    class Rag(dspy.Module):
        def __init__(self, window):
            super().__init__()
            self.reranker = dr.SlidingWindow(dr.ListwiseJudge(), window=window, step=1)
            self.answer = dspy.Predict("question, context -> answer")

    Rag(7).save(tmp_path / "rag.json")
    other = Rag(20)
    other.load(tmp_path / "rag.json")
    assert other.reranker.settings["window"] == 7


def test_a_reranker_keeps_its_predictor_under_dspy_optimizers():
    program = dr.MergeSort(dr.PairwiseJudge())
    assert [name for name, _ in program.named_predictors()] == ["judge.predict"]
    consensus = dr.Consensus(program)
    assert [name for name, _ in consensus.named_predictors()] == ["reranker.judge.predict"]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["state"]["settings"]["values"].update(concurrency="x"),
        lambda c: c["state"]["judge.settings"]["values"].update(votes=0),
        lambda c: c["program"]["children"]["judge"]["signature"]["fields"][2].update(name="_x"),
    ],
)
def test_settings_that_no_constructor_would_take_are_refused(tmp_path, change):
    with pytest.raises(ProgramError):
        dr.load(saved(tmp_path, change))


def test_what_is_no_json_is_refused_and_the_old_file_stays(tmp_path):
    path = dr.save(dr.MergeSort(dr.PairwiseJudge()), tmp_path / "p.json")
    before = path.read_text()
    with pytest.raises(ProgramError, match="JSON"):
        dr.save(dr.MergeSort(dr.PairwiseJudge(temperature=float("nan"))), path)
    assert path.read_text() == before


def test_a_program_with_a_model_of_its_own_is_saved_without_it_also_where_dspy_cannot(tmp_path):
    program, lm = dr.ScoreSort(dr.PointwiseJudge()), scripted_lm("2")
    program.set_lm(lm)
    dr.save(program, tmp_path / "p.json")
    assert dr.load(tmp_path / "p.json").judge.predict.lm is None
    assert program.judge.predict.lm is lm
