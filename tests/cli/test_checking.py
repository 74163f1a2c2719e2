"""``dspy-rerank check``: what is wrong with labels, and what they hold."""

import json

import pytest

from dspy_rerank.cli import main


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def written(path, *rows):
    base = {"documents": ["a", "b"], "relevance": [0, 2]}
    lines = [{"query": f"q{n}", **base, **row} for n, row in enumerate(rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_a_clean_set_is_summed_up(tmp_path, capsys):
    data = written(tmp_path / "l.jsonl", {"split": "train"}, {"split": "test"})
    code, out, err = run(capsys, "check", data)
    assert (code, err) == (0, "")
    assert out == (
        "l: 2 queries (2 labelled), 4 documents; splits train: 1, test: 1; grades 0: 2, 2: 2; "
        "0 errors, 0 warnings\n"
    )


def test_warnings_are_listed_with_their_queries(tmp_path, capsys):
    unlabelled = {"relevance": [None, None]}
    twice = {"documents": [{"id": "x", "text": "a"}, {"id": "x", "text": "b"}]}
    code, out, _ = run(capsys, "check", written(tmp_path / "l.jsonl", {}, unlabelled, twice))
    assert code == 0
    assert "warning: unlabelled: 1 query has no grades" in out
    assert "which teaches and measures nothing [2]" in out
    assert "warning: repeated id: query '3' has 2 different documents with the id 'x' [3]" in out
    assert "3 queries (2 labelled)" in out
    assert "unjudged: 2" in out
    assert "0 errors, 2 warnings" in out


def test_errors_are_exit_code_1(tmp_path, capsys):
    data = written(tmp_path / "l.jsonl", {}, {"relevance": [2, -1]})
    code, out, _ = run(capsys, "check", data)
    assert (code, "error: bad label: query '2'" in out) == (1, True)
    assert "1 error, 0 warnings" in out


def test_json_has_everything(tmp_path, capsys):
    data = written(tmp_path / "l.jsonl", {}, {"relevance": [2, -1]})
    code, out, _ = run(capsys, "check", data, "--json")
    told = json.loads(out)
    assert (code, told["errors"], told["labelled"]) == (1, 1, 2)
    assert told["grades"] == {"-1": 1, "0": 1, "2": 2}
    (problem,) = told["problems"]
    assert (problem["kind"], problem["severity"], problem["queries"]) == (
        "bad label",
        "error",
        ["2"],
    )


@pytest.mark.parametrize(
    ("more", "queries"), [([], 234), (["--split", "test"], 31), (["--queries", "5"], 5)]
)
def test_shipped_sets_are_sound_in_whole_and_in_part(capsys, more, queries):
    code, out, _ = run(capsys, "check", "ostrel", *more)
    assert (code, out.startswith(f"ostrel: {queries} queries")) == (0, True)


def test_what_cannot_be_read_is_exit_code_2(capsys):
    assert run(capsys, "check", "nowhere")[0] == 2
