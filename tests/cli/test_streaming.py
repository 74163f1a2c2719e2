"""``rerank --out``, ``compare`` of runs and ``estimate``, as they are used."""

import io
import json
import sys

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.cli import main
from dspy_rerank.cli._progress import clock, told
from dspy_rerank.models import set_price
from dspy_rerank.streaming import Summary
from dspy_rerank.testing import scripted_lm
from dspy_rerank.types import Usage


@pytest.fixture(autouse=True)
def model():
    """Orders any window backwards; a dollar a token."""

    def answer(prompt):
        shown = prompt.count("\nPassage [")
        return " > ".join(f"[{place}]" for place in range(shown, 0, -1)) or "2"

    lm = scripted_lm(answer)
    set_price(lm, input_cost_per_token=1.0, output_cost_per_token=1.0)
    dspy.configure(lm=lm)
    return lm


def run(capsys, *arguments):
    code = main(list(map(str, arguments)))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def queries(path, count=4, documents=3):
    rows = [
        {"query": f"q{i}", "documents": [{"id": f"d{n}", "text": f"{n} of {i}"}
                                         for n in range(documents)],
         "relevance": list(range(documents))}
        for i in range(count)
    ]  # fmt: skip
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_rows_are_written_and_a_second_run_goes_on(tmp_path, capsys, model):
    out = tmp_path / "o.jsonl"
    code, said, err = run(capsys, "rerank", queries(tmp_path / "q.jsonl"), "--out", out)
    assert (code, said) == (0, "")
    assert "4 ranked; 4 calls" in err
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert all([i["id"] for i in row["ranking"]] == ["d2", "d1", "d0"] for row in rows)
    more = queries(tmp_path / "q.jsonl", 6)
    code, said, _ = run(capsys, "rerank", more, "--out", out, "--json")
    assert json.loads(said)["ranked"] == 2
    assert json.loads(said)["skipped"] == 4
    assert len(model.engine.prompts) == 6


def test_a_run_is_written_beside_its_results(tmp_path, capsys):
    out = tmp_path / "o.run"
    code, _, _ = run(capsys, "rerank", queries(tmp_path / "q.jsonl"), "--out", out, "--in-order")
    assert code == 0
    assert out.read_text().splitlines()[0].split()[:4] == ["1", "Q0", "d2", "1"]
    assert len(out.read_text().splitlines()) == 12
    assert len((tmp_path / "o.run.jsonl").read_text().splitlines()) == 4


def test_rows_go_to_standard_output_for_pipes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO('{"query": "q", "documents": ["a", "b"]}\n'))
    code, out, err = run(capsys, "rerank", "-", "--out", "-", "--no-judgments", "--quiet")
    assert (code, err) == (0, "")
    assert json.loads(out)["ranking"][0]["index"] == 1
    assert "judgments" not in json.loads(out)


def test_failed_queries_are_said_and_exit_code_1(tmp_path, capsys):
    path = tmp_path / "q.jsonl"
    path.write_text('{"query": " ", "documents": ["a"]}\n{"query": "q", "documents": ["a", "b"]}\n')
    out = tmp_path / "o.jsonl"
    code, _, err = run(capsys, "rerank", path, "--out", out)
    assert code == 1
    assert "1 ranked, 1 failed" in err
    assert "blank" in err
    code, _, err = run(capsys, "rerank", path, "--out", out)
    assert code == 1
    assert "--retry-failed" in err


def test_max_cost_stops_with_exit_code_3_and_can_go_on(tmp_path, capsys):
    path, out = queries(tmp_path / "q.jsonl", 6), tmp_path / "o.jsonl"
    arguments = ["rerank", path, "--out", out, "--at-once", 1, "--json", "--max-cost"]
    program = dr.save(dr.TopDown(dr.ListwiseJudge(max_tokens=20)), tmp_path / "p.json")
    arguments = [*arguments[:-1], "--program", program, arguments[-1]]
    code, said, _ = run(capsys, *arguments, 200)
    assert code == 3
    assert json.loads(said)["spent"] <= 200
    assert 0 < json.loads(said)["ranked"] < 6
    code, said, _ = run(capsys, *arguments, 100000)
    assert code == 0
    assert json.loads(said)["whole"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["q", "d.txt", "--depth", "3"], "--depth is for files"),
        (["q.jsonl", "d.txt", "--out", "o.jsonl"], "give no documents"),
        (["nowhere.jsonl", "--out", "o.jsonl"], "no such file"),
        (["q.jsonl", "--out", "/no/such/folder/o.jsonl"], "cannot be written"),
        (["q.jsonl", "--out", "q.jsonl"], "expected a row with id and status"),
    ],
)
def test_bad_arguments_are_one_line_and_exit_code_2(tmp_path, capsys, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    queries(tmp_path / "q.jsonl")
    (tmp_path / "d.txt").write_text("a\nb\n")
    code, out, err = run(capsys, "rerank", *arguments)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_progress_says_rate_calls_cost_and_what_is_left():
    summary = Summary(ranked=10, skipped=5, failed=1, usage=Usage(calls=40, cost=0.5))
    said = told(summary, 5.5, 38)
    assert said == "2.0/s · 40 calls · $0.5000 · 1 not ranked · 0:00:11 left"
    assert clock(3725) == "1:02:05"


def runs(tmp_path):
    """Two runs of labelled queries: the second finds the best document first."""
    data = queries(tmp_path / "l.jsonl", 8)
    first = "".join(f"{q} Q0 d{d} 1 {-d} x\n" for q in range(1, 9) for d in range(3))
    second = "".join(f"{q} Q0 d{d} 1 {d} x\n" for q in range(1, 9) for d in range(3))
    (tmp_path / "a.run").write_text(first)
    (tmp_path / "b.run").write_text(second)
    (tmp_path / "qrels.txt").write_text(
        "".join(f"{q} 0 d{d} {d}\n" for q in range(1, 9) for d in range(3))
    )
    return data


def test_compare_measures_two_runs_by_a_data_set_or_by_qrels(tmp_path, capsys, model):
    data = runs(tmp_path)
    for labels in (data, tmp_path / "qrels.txt"):
        code, out, _ = run(capsys, "compare", tmp_path / "a.run", tmp_path / "b.run", labels,
                           "--json")  # fmt: skip
        assert code == 0
        found = json.loads(out)["difference"]["nDCG@10"]
        assert (found["wins"], found["losses"], found["ties"]) == (8, 0, 0)
        assert found["p"] < 0.05
        assert found["sign_p"] < 0.05
        assert found["lo"] > 0
    assert not model.engine.prompts


def test_compare_prints_wins_and_the_queries_that_differ(tmp_path, capsys):
    code, out, _ = run(capsys, "compare", tmp_path / "a.run", tmp_path / "b.run", runs(tmp_path),
                       "--each", 2)  # fmt: skip
    assert code == 0
    assert "wins 8, losses 0, ties 0" in out
    assert "a real difference" in out
    assert len(out.split("query")[-1].splitlines()) == 3


def test_compare_takes_results_and_programs_together(tmp_path, capsys):
    data = runs(tmp_path)
    run(capsys, "rerank", data, "--out", tmp_path / "o.jsonl", "--quiet")
    program = dr.save(dr.TopDown(dr.ListwiseJudge()), tmp_path / "p.json")
    code, out, _ = run(capsys, "compare", tmp_path / "o.jsonl", program, data, "--json")
    assert code == 0
    found = json.loads(out)
    assert found["difference"]["nDCG@10"]["ties"] == 8
    assert found["rows"][0]["name"] == "incoming order"


def test_compare_says_what_cannot_be_compared(tmp_path, capsys):
    data = runs(tmp_path)
    program = dr.save(dr.TopDown(dr.ListwiseJudge()), tmp_path / "p.json")
    code, _, err = run(capsys, "compare", tmp_path / "a.run", program, tmp_path / "qrels.txt")
    assert (code, "judgments only" in err) == (2, True)
    code, _, err = run(capsys, "compare", tmp_path / "a.run", tmp_path / "none.run", data)
    assert (code, "no such file" in err) == (2, True)
    (tmp_path / "c.run").write_text("zz Q0 d1 1 1.0 x\n")
    code, _, err = run(capsys, "compare", tmp_path / "a.run", tmp_path / "c.run", data)
    assert (code, "none of the queries" in err) == (2, True)


CONFIG = """
model_list:
  - model_name: judge
    litellm_params:
      {model: openai/gpt-4o-mini, api_key: none, rpm: 60,
       input_cost_per_token: 0.001, output_cost_per_token: 0.002}
"""


def test_estimate_gives_calls_money_and_time_by_an_alias(tmp_path, capsys):
    (tmp_path / "c.yaml").write_text(CONFIG)
    data = queries(tmp_path / "q.jsonl", 120)
    arguments = ["estimate", data, "--config", tmp_path / "c.yaml", "--lm", "judge", "--json"]
    code, out, _ = run(capsys, *arguments)
    assert code == 0
    live, batched = json.loads(out)["runs"]
    assert live["calls"] == {"lo": 120, "hi": 120}
    assert live["seconds"]["lo"] == 120
    assert "60 requests a minute" in live["note"]
    assert live["cost"]["lo"] > 0
    assert batched["cost"]["hi"] == pytest.approx(live["cost"]["hi"] / 2, rel=0.01)
    assert "1 round of batches" in batched["note"]
    code, out, _ = run(capsys, *arguments[:-1], "--max-cost", 0.01)
    assert code == 3
    assert "of 120 queries" in out


def test_estimate_probes_and_then_the_run_keeps_to_it(tmp_path, capsys, model):
    data, out_file = queries(tmp_path / "q.jsonl", 5, 8), tmp_path / "o.jsonl"
    code, out, _ = run(capsys, "estimate", data, "--probe", "--json")
    assert code == 0
    assert len(model.engine.prompts) == 1
    (live,) = json.loads(out)["runs"]
    _, out, _ = run(capsys, "rerank", data, "--out", out_file, "--json")
    used = json.loads(out)["usage"]
    assert used["calls"] == live["calls"]["lo"] == live["calls"]["hi"]
    assert live["prompt_tokens"]["lo"] <= used["prompt_tokens"] <= live["prompt_tokens"]["hi"]
    assert live["cost"]["lo"] <= used["cost"] <= live["cost"]["hi"]
    code, out, _ = run(capsys, "estimate", data, "--out", out_file, "--json")
    assert json.loads(out)["forecast"]["queries"] == 0


def test_estimate_is_a_table_for_people(tmp_path, capsys, model):
    code, out, _ = run(capsys, "estimate", queries(tmp_path / "q.jsonl"), "--latency", 2)
    assert code == 0
    assert "4 queries of 3 candidates, 1 round, 12 passages read" in out
    assert "live" in out
    assert not model.engine.prompts


def test_unknown_judgments_are_in_the_summary_and_a_warning(tmp_path, capsys):
    dspy.configure(lm=scripted_lm("no idea"))
    path, out = queries(tmp_path / "q.jsonl"), tmp_path / "o.jsonl"
    code, _, err = run(capsys, "rerank", path, "--out", out)
    assert code == 0
    assert "4 ranked; 8 calls" in err
    assert "cost unknown (no price is known for scripted/model); 4 unknown;" in err
    assert "in 4 of 4 rankings not one judgment could be read" in err
    out.unlink()
    code, said, err = run(capsys, "rerank", path, "--out", out, "--json")
    assert (code, json.loads(said)["unread"], json.loads(said)["unknowns"]) == (0, 4, 4)
    assert "not one judgment could be read" in err


def test_progress_says_unknowns_and_small_sums():
    summary = Summary(ranked=10, unknowns=3, usage=Usage(calls=1, cost=3.2e-5))
    assert told(summary, 5, None) == "2.0/s · 1 call · $0.000032 · 3 unknown"


def test_documents_with_one_id_fail_before_a_run_is_asked_for(tmp_path, capsys, model):
    twice = {"id": "x", "query": "q", "documents": [{"id": "a", "text": t} for t in ("one", "two")]}
    path = queries(tmp_path / "q.jsonl")
    path.write_text(path.read_text() + json.dumps(twice) + "\n")
    code, _, err = run(capsys, "rerank", path, "--out", tmp_path / "o.run")
    assert (code, len(model.engine.prompts)) == (1, 4)
    assert "query 'x': documents 0 and 1 (from 0) both go by the id 'a'" in err
    assert "4 ranked, 1 failed" in err
    code, _, _ = run(capsys, "rerank", path, "--out", tmp_path / "o.jsonl")
    assert code == 0


def test_documents_with_one_id_fail_before_trec_is_asked_for(tmp_path, capsys, model):
    path = tmp_path / "d.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n{"id": "a", "text": "two"}\n')
    code, out, err = run(capsys, "rerank", "q", path, "--trec", "7")
    assert (code, out, model.engine.prompts) == (2, "", [])
    assert "query '7': documents 0 and 1" in err


def test_a_query_may_be_as_long_as_it_likes(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    code, out, err = run(capsys, "rerank", "検索" * 50, "--json")
    assert (code, err) == (0, "")
    assert json.loads(out)["query"] == "検索" * 50


class Terminal(io.StringIO):
    """Standard input of somebody who has piped nothing in."""

    def isatty(self):
        return True


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_query_may_be_a_name_in_this_folder_where_documents_are_piped_in(
    tmp_path, capsys, monkeypatch, kind
):
    monkeypatch.chdir(tmp_path)
    named = tmp_path / "notes"
    named.mkdir() if kind == "folder" else named.write_text("mine")
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    code, out, _ = run(capsys, "rerank", "notes", "--json")
    assert (code, json.loads(out)["query"]) == (0, "notes")
    monkeypatch.setattr(sys, "stdin", Terminal())
    code, _, err = run(capsys, "rerank", "notes")
    assert (code, "notes looks like a file of queries" in err) == (2, True)


@pytest.mark.parametrize("name", ["q.jsonl", "q.TSV", "q.parquet"])
def test_only_a_file_of_queries_that_is_there_is_one(tmp_path, capsys, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    assert run(capsys, "rerank", name, "--json")[0] == 0
    (tmp_path / name).write_text("")
    code, _, err = run(capsys, "rerank", name)
    assert (code, "looks like a file of queries" in err) == (2, True)


def test_a_collections_id_is_no_query(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    code, _, err = run(capsys, "rerank", "ir_datasets:beir/scifact/test")
    assert (code, "looks like a file of queries" in err) == (2, True)


def test_a_file_of_queries_without_out_says_so_and_does_not_wait(tmp_path, capsys, monkeypatch):
    path = queries(tmp_path / "q.jsonl")
    code, _, err = run(capsys, "rerank", path)
    assert (code, "looks like a file of queries; add --out FILE" in err) == (2, True)
    monkeypatch.setattr(sys, "stdin", io.StringIO("one\ntwo\n"))
    code, out, _ = run(capsys, "rerank", path, "-", "--json")
    assert (code, json.loads(out)["query"]) == (0, str(path))
