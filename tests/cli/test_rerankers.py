"""``--sorter`` and ``--judge``, in every command that takes a program."""

import json

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.cli import main
from dspy_rerank.cli._app import parser
from dspy_rerank.cli.serve import _programs
from dspy_rerank.testing import scripted_lm


@pytest.fixture(autouse=True)
def model():
    lm = scripted_lm("2")
    dspy.configure(lm=lm)
    return lm


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.fixture
def data(tmp_path):
    rows = [
        {"query": f"q{i}", "documents": [f"a {i}", f"b {i}", f"c {i}"], "relevance": [0, 1, 2]}
        for i in range(12)
    ]
    path = tmp_path / "l.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rerank_takes_them_for_one_query(tmp_path, capsys):
    (tmp_path / "d.txt").write_text("one\ntwo\n")
    code, out, _ = run(
        capsys, "rerank", "q", tmp_path / "d.txt", "--judge", "PointwiseJudge", "--json"
    )
    assert (code, json.loads(out)["usage"]["calls"]) == (0, 2)


def test_rerank_takes_them_for_a_file(tmp_path, data, capsys, model):
    out = tmp_path / "o.jsonl"
    code, _, _ = run(capsys, "rerank", data, "--out", out, "--sorter", "ScoreSort")
    assert (code, len(model.engine.prompts)) == (0, 36)


def test_evaluate_names_the_row_after_them(data, capsys):
    code, out, _ = run(
        capsys, "evaluate", data, "--sorter", "ScoreSort", "--judge", "PointwiseJudge"
    )
    assert (code, "ScoreSort + PointwiseJudge" in out) == (0, True)


def test_estimate_counts_their_calls(data, capsys, model):
    code, out, _ = run(capsys, "estimate", data, "--judge", "PointwiseJudge", "--json")
    calls = json.loads(out)["forecast"]["calls"]
    assert (code, calls["lo"], calls["hi"], model.engine.prompts) == (0, 36, 36, [])


def test_compile_starts_from_them(tmp_path, data, capsys):
    out = tmp_path / "p.json"
    code, _, _ = run(capsys, "compile", data, "--out", out, "--trials", 2, "--demos", 1,
                     "--judge", "PointwiseJudge(scale=[0, 2])")  # fmt: skip
    assert code == 0
    assert list(dr.load(out).judge.settings["scale"]) == [0, 2]


def test_serve_takes_them_in_place_of_a_program():
    arguments = parser().parse_args(["serve", "--sorter", "SlidingWindow"])
    (program,) = _programs(arguments)
    assert (program.name, type(program.reranker).__name__) == ("default", "SlidingWindow")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--program", "p.json", "--judge", "PointwiseJudge"], "give it or --sorter and --judge"),
        (["--sorter", "ScoreSort", "--judge", "PairwiseJudge"], "ScoreSort goes with Pointwise"),
        (["--sorter", "Quicksort"], "'Quicksort' is none of"),
    ],
)
@pytest.mark.parametrize("command", ["evaluate", "compile", "estimate"])
def test_what_does_not_go_together_is_exit_code_2(data, capsys, model, command, arguments, says):
    code, _, err = run(capsys, command, data, *arguments)
    assert (code, model.engine.prompts) == (2, [])
    assert says in err


def test_serve_takes_programs_or_names(capsys):
    code, _, err = run(capsys, "serve", "p.json", "--sorter", "ScoreSort")
    assert (code, "give programs or --sorter and --judge" in err) == (2, True)


def test_a_recipe_for_weights_says_which_options_give_scores(tmp_path, data, capsys):
    (tmp_path / "w.toml").write_text("[weights]\n")
    arguments = ["compile", data, "--out", tmp_path / "p.json", "--recipe", tmp_path / "w.toml"]
    code, _, err = run(capsys, *arguments)
    assert (code, "--sorter ScoreSort --judge PointwiseJudge" in err) == (2, True)
