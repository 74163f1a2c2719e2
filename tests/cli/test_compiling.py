"""``dspy-rerank compile`` with several seeds and plain DSPy beside it."""

import json

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.cli import main
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import labelled, skilled

RECIPE = """
[judge]
optimizer = "BootstrapFewShotWithRandomSearch"
per_query = 4
options = { max_bootstrapped_demos = 2, num_candidate_programs = 2 }
[search]
trials = 3
demos = []
"""


@pytest.fixture
def start(tmp_path):
    """Arguments of the command, with a data set, a program and a recipe."""
    lines = [
        json.dumps({"query": q.text, "documents": [d.text for d in q.documents],
                    "relevance": list(q.relevance)})
        for q in labelled(20)
    ]  # fmt: skip
    data, recipe = tmp_path / "l.jsonl", tmp_path / "r.toml"
    data.write_text("\n".join(lines), encoding="utf-8")
    recipe.write_text(RECIPE, encoding="utf-8")
    judge = dr.PointwiseJudge(evidence="generate")
    program = dr.save(dr.ScoreSort(judge), tmp_path / "start.json")
    return ["compile", data, "--program", program, "--recipe", recipe, "--out"]


def run(capsys, *arguments):
    """What the command printed, and the calls that the model counted."""
    lm = scripted_lm(skilled)
    with dspy.context(lm=lm):
        code = main(list(map(str, arguments)))
    assert code == 0
    return capsys.readouterr().out, len(lm.engine.prompts)


def test_seeds_and_plain_dspy_are_printed_saved_and_reported(tmp_path, capsys, start):
    out, _ = run(
        capsys, *start, tmp_path / "p.json", "--seeds", 2, "--plain", "--report", tmp_path / "r"
    )
    assert "all 2 seeds took " in out
    assert "\nplain DSPy " in out
    assert "\ncompiled, seed " in out
    assert "plain DSPy that can be told" in out or " than plain DSPy" in out
    assert "2 seeds (0, 1), of which " in out
    told = json.loads((tmp_path / "r" / "report.json").read_text())
    assert told["plain"]["spent"]["calls"] <= told["plain"]["compiled_calls"]
    assert told["seeds"]["saved"] == dr.load(tmp_path / "p.json").card["seed"]


def test_json_has_every_call_that_was_made(tmp_path, capsys, start):
    out, asked = run(capsys, *start, tmp_path / "p.json", "--seeds", 2, "--plain", "--json")
    told = json.loads(out)
    ranked = sum(
        row["usage"]["calls"] - row["usage"]["cached_calls"] for row in told["test"]["rows"]
    )
    assert told["seeds"]["calls"] + told["plain"]["spent"]["calls"] + ranked == asked


def test_the_same_command_gives_the_same_file(tmp_path, capsys, start):
    for name in ("a", "b"):
        run(capsys, *start, tmp_path / name, "--seeds", 2, "--plain", "--json")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_without_them_nothing_is_said_of_them(tmp_path, capsys, start):
    out, _ = run(capsys, *start, tmp_path / "p.json", "--json")
    assert not {"seeds", "plain"} & {*json.loads(out)}
    assert "seeds" not in dr.load(tmp_path / "p.json").card


def with_splits(path, *names):
    """The rows of a file dealt to these splits in turn."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for number, row in enumerate(rows):
        row["split"] = names[number % len(names)]
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")


def test_another_split_can_be_measured_on(tmp_path, capsys, start):
    with_splits(start[1], "train", "validation", "test", "fresh", "fresh")
    out, _ = run(capsys, *start, tmp_path / "p.json", "--test-split", "fresh", "--json")
    assert json.loads(out)["test"]["queries"] == 8
    assert json.loads(out)["card"]["train"]["queries"] == 4


@pytest.mark.parametrize("name", ["train", "validation", "tset"])
def test_a_split_that_cannot_be_measured_on_is_refused(tmp_path, capsys, start, name):
    with_splits(start[1], "train", "validation", "test")
    code = main([*map(str, start), str(tmp_path / "p.json"), "--test-split", name])
    assert code != 0
    assert name in capsys.readouterr().err


def test_the_bill_of_compiling_has_dollars_or_says_why_not(tmp_path, capsys, start):
    out, _ = run(capsys, *start, tmp_path / "p.json")
    (said,) = [line for line in out.splitlines() if line.startswith("compiling took ")]
    assert " (0 more were in DSPy's cache) for " in said
    assert "prompt tokens, cost unknown (no price is known for scripted/model), " in said
