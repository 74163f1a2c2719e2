"""The command line with a scripted model: output, JSON and exit codes."""

import json
import sys

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.cli import main
from dspy_rerank.testing import scripted_lm


@pytest.fixture(autouse=True)
def model():
    """Orders any window backwards; grades by a number in the passage."""

    def answer(prompt):
        shown = prompt.count("\nPassage [")
        return " > ".join(f"[{place}]" for place in range(shown, 0, -1)) or "2"

    lm = scripted_lm(answer)
    dspy.configure(lm=lm)
    return lm


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


LINES = "one\ntwo\n\nthree\n"
JSONL = '{"id": "x", "text": "one"}\n{"id": "y", "text": "two"}\n'
CSV = "id,body\n1,one\n2,two\n"


@pytest.mark.parametrize(
    ("name", "content", "more", "texts"),
    [
        ("d.txt", LINES, [], ["three", "two", "one"]),
        ("d.jsonl", JSONL, [], ["two", "one"]),
        ("d.csv", CSV, ["--text", "body"], ["two", "one"]),
        ("d.jsonl", '{"body": "one"}\n{"body": "two"}', ["--text", "body"], ["two", "one"]),
    ],
)
def test_rerank_reads_every_format(tmp_path, capsys, name, content, more, texts):
    path = write(tmp_path / name, content)
    code, out, _ = run(capsys, "rerank", "q", path, "--json", *more)
    assert code == 0
    assert [item["text"] for item in json.loads(out)["ranking"]] == texts


def test_rerank_reads_standard_input(capsys, monkeypatch):
    import io

    monkeypatch.setattr(sys, "stdin", io.StringIO(LINES))
    code, out, _ = run(capsys, "rerank", "q", "--top-k", "2")
    assert code == 0
    assert "three" in out
    assert "2 rounds" not in out
    assert "one" not in out.split("three")[1].split("two")[1].split("\n")[1]


@pytest.mark.parametrize(
    "order", ["q D --top-k 1", "q --top-k 1 D", "--top-k 1 q D", "--top-k 1 -- q D"]
)
def test_options_may_stand_anywhere(tmp_path, capsys, order):
    path = write(tmp_path / "d.txt", LINES)
    words = [str(path) if word == "D" else word for word in order.split()]
    code, out, _ = run(capsys, "rerank", "--json", *words)
    assert code == 0
    assert len(json.loads(out)["ranking"]) == 1


def test_a_query_may_begin_with_a_dash(tmp_path, capsys):
    path = write(tmp_path / "d.txt", LINES)
    code, out, _ = run(capsys, "rerank", "--json", "--", "-q", path)
    assert (code, json.loads(out)["query"]) == (0, "-q")


def test_rerank_writes_a_trec_run(tmp_path, capsys):
    code, out, _ = run(capsys, "rerank", "q", write(tmp_path / "d.jsonl", JSONL), "--trec", "7")
    assert code == 0
    assert [line.split()[:4] for line in out.splitlines()] == [
        ["7", "Q0", "y", "1"], ["7", "Q0", "x", "2"],
    ]  # fmt: skip


def test_rerank_uses_a_saved_program(tmp_path, capsys):
    program = dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "p.json")
    path = write(tmp_path / "d.txt", LINES)
    code, out, _ = run(capsys, "rerank", "q", path, "--program", program, "--json")
    assert code == 0
    assert json.loads(out)["usage"]["calls"] == 3


@pytest.mark.parametrize(
    ("content", "arguments", "says"),
    [
        ("", [], "no documents"),
        ('{"text": "a"}\n{oops', ["--format", "jsonl"], "line 2: not JSON"),
        ('{"id": "z", "text": null}', ["--format", "jsonl"], "line 1: the document is a mapping"),
        ('{"text": 7}', ["--format", "jsonl"], "line 1: the text of the document is int"),
        ('{"id": 1}', ["--format", "jsonl"], "line 1: the document is a mapping without a text"),
        ('{"id": 1}', ["--format", "jsonl", "--text", "body"], "no field 'body'"),
        ("a,b\n1,2", ["--format", "csv"], "no column"),
        ("a\nb", ["--program", "nowhere.json"], "no such file"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, capsys, content, arguments, says):
    code, out, err = run(capsys, "rerank", "q", write(tmp_path / "d", content), *arguments)
    assert code == 2
    assert out == ""
    assert says in err
    assert err.count("\n") == 1


def test_a_failing_model_is_exit_code_1(tmp_path, capsys):
    dspy.configure(lm=scripted_lm([dspy.lm15.AuthError("bad key")]))
    code, _, err = run(capsys, "rerank", "q", write(tmp_path / "d.txt", LINES))
    assert code == 1
    assert "bad key" in err


def labelled(path, queries=12):
    lines = [
        json.dumps(
            {"query": f"q{i}", "documents": [f"a {i}", f"b {i}", f"c {i}"], "relevance": [0, 1, 3]}
        )
        for i in range(queries)
    ]
    return write(path, "\n".join(lines))


def test_evaluate_prints_baseline_and_interval(tmp_path, capsys):
    data = labelled(tmp_path / "l.jsonl")
    code, out, _ = run(capsys, "evaluate", data, "--metrics", "nDCG@10,MRR")
    assert code == 0
    assert "incoming order" in out
    assert "12 queries" in out
    code, out, _ = run(capsys, "evaluate", data, "--json")
    rows = json.loads(out)["rows"]
    assert rows[1]["mean"]["nDCG@10"]["mean"] == 1.0
    assert rows[1]["gain"]["nDCG@10"]["lo"] > 0


def test_evaluate_of_the_incoming_order_needs_no_model(capsys):
    dspy.configure(lm=None)
    code, out, _ = run(capsys, "evaluate", "ostrel", "--incoming", "--split", "test", "--json")
    assert code == 0
    assert len(json.loads(out)["rows"]) == 1


def test_compile_saves_a_program_that_compare_and_rerank_use(tmp_path, capsys):
    data, out_file = labelled(tmp_path / "l.jsonl"), tmp_path / "p.json"
    start = dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "start.json")
    code, out, _ = run(
        capsys, "compile", data, "--out", out_file, "--program", start, "--trials", 4, "--demos", 1
    )
    assert code == 0
    assert "never saw" in out
    card = dr.load(out_file).card
    assert card["test"]["queries"] > 0
    assert len(card["trials"]) == 4
    code, out, _ = run(capsys, "compare", start, out_file, data)
    assert code == 0
    assert "difference" in out


def test_compile_runs_a_recipe_and_writes_a_report(tmp_path, capsys):
    data = labelled(tmp_path / "l.jsonl")
    start = dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "start.json")
    recipe = write(tmp_path / "r.toml", '[judge]\noptimizer = "LabeledFewShot"\noptions = {k = 2}')
    code, out, _ = run(
        capsys, "compile", data, "--out", tmp_path / "p.json", "--program", start,
        "--recipe", recipe, "--report", tmp_path / "report",
    )  # fmt: skip
    assert code == 0
    assert "chosen: the" in out
    assert (tmp_path / "report" / "report.html").read_text().startswith("<!doctype html>")
    assert json.loads((tmp_path / "report" / "report.json").read_text())["words"]


def test_compile_goes_on_with_a_stored_search(tmp_path, capsys, model):
    data, out_file = labelled(tmp_path / "l.jsonl"), tmp_path / "p.json"
    start = dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "start.json")
    arguments = ["compile", data, "--out", out_file, "--program", start, "--trials", 3, "--json",
                 "--demos", 1, "--storage", tmp_path / "s", "--cost", "tokens"]  # fmt: skip
    _, out, _ = run(capsys, *arguments)
    assert json.loads(out)["card"]["spent"]["calls"] > 0
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    assert json.loads(out)["card"]["spent"]["calls"] == 0


def test_compile_refuses_labels_with_errors_and_warns_of_others(tmp_path, capsys):
    rows = [{"query": f"q{i}", "documents": ["a", "b"], "relevance": [0, 1]} for i in range(8)]
    rows[3]["relevance"] = [0, -1]
    rows[4]["relevance"] = [0, 0]
    data = write(tmp_path / "l.jsonl", "\n".join(map(json.dumps, rows)))
    arguments = ["compile", data, "--out", tmp_path / "p.json", "--trials", 2, "--demos", 1]
    code, out, err = run(capsys, *arguments)
    assert code == 2
    assert "bad label: query '4'" in err
    assert out == ""
    code, out, err = run(capsys, *arguments, "--unchecked")
    assert code == 0
    assert "warning: nothing relevant" in err
    assert "warning" not in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compile", "ostrel", "--recipe", "none.toml"], "no such file"),
        (["evaluate", "nowhere"], "nowhere"),
        (["evaluate", "ostrel", "--metrics", "nDCF"], "nDCF"),
        (["evaluate", "ostrel", "--split", "tset"], "tset"),
        (["compile", "ostrel", "--out", "/no/such/folder/x.json"], "cannot be written"),
        (["compile", "ostrel", "--demos", "a"], "--demos"),
        (["compare", "a.json", "a.json", "ostrel"], "twice"),
    ],
)
def test_bad_arguments_are_exit_code_2(capsys, arguments, says):
    code, _, err = run(capsys, *arguments)
    assert code == 2
    assert says in err


def test_models_lists_what_is_there(capsys):
    code, out, _ = run(capsys, "models", "--json")
    assert code == 0
    assert json.loads(out)["embedded"] == "local/smollm2-135m"


@pytest.mark.parametrize(
    "arguments", [[], ["nonsense"], ["rerank"], ["rerank", "q", "--top-k", "0"]]
)
def test_wrong_usage_is_exit_code_2(capsys, arguments):
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
