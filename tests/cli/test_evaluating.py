"""``evaluate`` and ``compare`` where labels or answers are missing."""

import json

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.cli import main
from dspy_rerank.testing import scripted_lm


def run(capsys, lm, *arguments):
    with dspy.context(lm=lm):
        code = main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def written(path, *keys, **more):
    """A query a line, whose grades stand below each of these keys in turn."""
    rows = [
        {"query": f"q{i}", "documents": [f"a {i}", f"b {i}"], key: [0, 1], **more}
        for i, key in enumerate(keys)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture
def half(tmp_path):
    return written(tmp_path / "half.jsonl", *["relevance", "relevence"] * 4)


@pytest.mark.parametrize("more", [[], ["--incoming"], ["--json"]])
def test_nothing_labelled_is_exit_code_2_before_any_call(tmp_path, capsys, more):
    lm = scripted_lm("2")
    data = written(tmp_path / "l.jsonl", *["labels"] * 4)
    code, out, err = run(capsys, lm, "evaluate", data, *more)
    assert (code, out, lm.engine.prompts) == (2, "", [])
    assert "have query, documents, labels; expected relevance" in err


def test_queries_without_labels_are_left_out_and_said(half, capsys):
    lm = scripted_lm("2")
    code, out, err = run(capsys, lm, "evaluate", half, "--judge", "PointwiseJudge")
    assert code == 0
    assert "half: 4 queries (4 without labels left out)" in out
    assert err.count("without labels are left out of all means (2, 4, 6, 8)") == 1
    assert "not read as labels: relevence" in err
    assert len(lm.engine.prompts) == 8


def test_json_has_the_queries_that_were_left_out_and_the_problems(half, capsys):
    code, out, err = run(capsys, scripted_lm("2"), "evaluate", half, "--incoming", "--json")
    told = json.loads(out)
    assert (code, told["queries"], told["unlabelled"]) == (0, 4, ["2", "4", "6", "8"])
    assert any(problem.startswith("unlabelled: 4 queries") for problem in told["problems"])
    assert "left out" in err


def test_problems_of_the_labels_are_warned_of_and_not_refused(tmp_path, capsys):
    documents = ["a", "a"]
    data = written(tmp_path / "l.jsonl", *["relevance"] * 5, documents=documents)
    code, out, err = run(capsys, scripted_lm("2"), "evaluate", data, "--incoming")
    assert (code, "incoming order" in out) == (0, True)
    assert err.count("warning: contradiction: 'a' has the grades [0, 1]") == 3
    assert "warning: contradiction: 2 more; dspy-rerank check lists them" in err


def test_a_model_that_fails_on_every_query_is_exit_code_1_and_said_once(tmp_path, capsys, caplog):
    data = written(tmp_path / "l.jsonl", *["relevance"] * 6)
    lm = scripted_lm([dspy.lm15.InvalidRequestError("down")])
    code, out, err = run(capsys, lm, "evaluate", data)
    assert (code, "default reranker" in out) == (1, True)
    assert err.count("all 6 rankings are degraded") == err.count("the model failed") == 1
    assert [r for r in caplog.records if "degraded" in r.message] == []
    code, _, err = run(capsys, lm, "evaluate", data, "--json")
    assert (code, err.count("the model failed")) == (1, 1)


def test_a_model_that_fails_on_some_queries_is_no_failure(tmp_path, capsys):
    data = written(tmp_path / "l.jsonl", *["relevance"] * 6)
    lm = scripted_lm(lambda prompt: "2" if "q1" in prompt else dspy.lm15.InvalidRequestError("no"))
    code, _, err = run(capsys, lm, "evaluate", data, "--judge", "PointwiseJudge")
    assert (code, "the model failed" in err) == (0, False)
    assert "5 of 6 rankings are degraded" in err


def test_unreadable_answers_are_said_below_the_table(tmp_path, capsys):
    data = written(tmp_path / "l.jsonl", *["relevance"] * 3)
    code, out, _ = run(capsys, scripted_lm("no idea"), "evaluate", data)
    assert (code, "default reranker: all 3 judgments are unknown" in out) == (0, True)


def test_help_says_the_gain_and_how_queries_count(capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "nDCG has linear gain" in said
    assert "is left out of all means" in said


def test_compare_leaves_the_same_queries_out(tmp_path, half, capsys):
    first = dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "a.json")
    second = dr.save(dr.MergeSort(dr.PairwiseJudge()), tmp_path / "b.json")
    code, out, err = run(capsys, scripted_lm("2"), "compare", first, second, half, "--json")
    told = json.loads(out)
    assert (code, told["queries"], told["query_ids"]) == (0, 4, ["1", "3", "5", "7"])
    assert told["unlabelled"] == ["2", "4", "6", "8"]
    assert "left out of all means" in err


def test_compare_says_that_no_query_differs(tmp_path, capsys):
    data = written(tmp_path / "l.jsonl", *["relevance"] * 3)
    run_of = "".join(f"{q} Q0 {d} 1 {-d} x\n" for q in (1, 2, 3) for d in (0, 1))
    for name in ("a.run", "b.run"):
        (tmp_path / name).write_text(run_of)
    arguments = ["compare", tmp_path / "a.run", tmp_path / "b.run", data, "--each", 2]
    code, out, _ = run(capsys, scripted_lm("2"), *arguments)
    assert (code, "no query differs in nDCG@10" in out) == (0, True)
    assert "query  first" not in out


def test_compile_measures_labelled_queries_only(tmp_path, capsys):
    data = written(tmp_path / "l.jsonl", *["relevance", "relevence"] * 8)
    out = tmp_path / "p.json"
    arguments = ["compile", data, "--out", out, "--trials", 2, "--demos", 1, "--report"]
    more = ["--judge", "PointwiseJudge"]
    code, said, err = run(capsys, scripted_lm("2"), *arguments, tmp_path / "r", *more)
    assert code == 0
    assert "3 training, 2 validation and 3 test queries" in said
    assert err.count("8 of 16 queries without labels are left out") == 1
    card = dr.load(out).card
    assert (card["validation"]["queries"], card["test"]["queries"]) == (2, 3)


def test_compile_says_which_split_has_no_label(tmp_path, capsys):
    rows = [
        {"query": f"q{i}", "documents": ["a", "b"], "split": split,
         "relevance": [None, None] if split == "test" else [0, 1]}
        for i, split in enumerate(["train", "validation", "test"] * 3)
    ]  # fmt: skip
    data = tmp_path / "l.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    code, _, err = run(capsys, scripted_lm("2"), "compile", data, "--out", tmp_path / "p.json")
    assert (code, "no query of the split 'test' has a label" in err) == (2, True)
