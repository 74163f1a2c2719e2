"""TREC files are read as trec_eval reads them, and written so that it reads back the same order."""

import pytest
import pytrec_eval

from dspy_rerank import trec
from dspy_rerank.errors import DataError, InputError
from dspy_rerank.types import Document


def written(tmp_path, text, name="file.txt"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_qrels_with_tabs_crlf_bom_and_blank_lines(tmp_path):
    path = written(tmp_path, "\ufeffq1\t0\ta\t2\r\n\r\n  q1 Q0  b -1 \nq2 0 a 0")
    assert trec.read_qrels(path) == {"q1": {"a": 2, "b": -1}, "q2": {"a": 0}}


def test_qrels_in_beirs_three_columns(tmp_path):
    path = written(tmp_path, "query-id\tcorpus-id\tscore\nq1\ta\t1\n")
    assert trec.read_qrels(path) == {"q1": {"a": 1}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q 0 a 1\nq 0 a", r"line 2.*grade 0 above|line 2.*whole number.*'a'"),
        ("q 0 a 1\nq a", r"line 2: expected 'query-id iteration document-id grade', got 2"),
        ("q 0 a high", r"line 1: expected a whole number as grade, got 'high'"),
        ("q 0 a 1\n\nq 0 a 2", r"line 3: document 'a' of query 'q' has grade 2"),
    ],
)
def test_bad_qrels_name_the_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        trec.read_qrels(written(tmp_path, text))


def test_run_is_ordered_as_trec_eval_orders_it(tmp_path):
    lines = ["q Q0 a 1 1.0 t", "q Q0 c 2 1.0 t", "q Q0 b 3 1.000000001 t", "q\tQ0\td\t9\t7\tt"]
    run = trec.read_run(written(tmp_path, "\r\n".join(lines)))
    assert [name for name, _ in run["q"]] == ["d", "c", "b", "a"]
    for relevant in "abcd":
        evaluator = pytrec_eval.RelevanceEvaluator({"q": {relevant: 1}}, {"recip_rank"})
        value = evaluator.evaluate({"q": dict(run["q"])})["q"]["recip_rank"]
        assert value == 1 / (1 + [name for name, _ in run["q"]].index(relevant))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("q Q0 a 1 2.0", r"line 1: expected 'query-id Q0 document-id rank score tag', got 5"),
        ("q Q0 a 1 best t", r"line 1: expected a finite number as score, got 'best'"),
        ("q Q0 a 1 nan t", r"finite"),
        ("q Q0 a 1 2 t\nq Q0 a 2 1 t", r"line 2: document 'a' is ranked twice"),
    ],
)
def test_bad_runs_name_the_line(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        trec.read_run(written(tmp_path, text))


def test_a_missing_or_undecodable_file_is_named(tmp_path):
    with pytest.raises(DataError, match=r"none\.txt: cannot be read"):
        trec.read_run(tmp_path / "none.txt")
    with pytest.raises(DataError, match=r"file\.txt, after line 0: expected UTF-8"):
        trec.read_qrels(written(tmp_path, b"\xff\xfe\x00"))


@pytest.mark.parametrize(
    "ranking",
    [
        ["a", "b", "c"],
        [("a", 0.5), ("b", 0.5), ("c", 0.5)],
        [("a", 0.1), ("b", 0.2), ("c", 0.3)],
        [("a", 1.000000002), ("b", 1.000000001), ("c", 1.0)],
        [("a", float("inf")), ("b", 1.0), ("c", 0.0)],
    ],
)
def test_a_written_run_is_read_back_in_its_order(tmp_path, ranking):
    trec.write_run(tmp_path / "x.run", {"q": ranking})
    assert [name for name, _ in trec.read_run(tmp_path / "x.run")["q"]] == ["a", "b", "c"]


def test_falling_scores_are_written_as_they_are(tmp_path):
    run = {"q": [("b", 0.30000000000000004), ("a", 0.1)], "p": []}
    trec.write_run(tmp_path / "x.run", run, tag="mine")
    assert trec.read_run(tmp_path / "x.run") == {"q": run["q"]}
    assert (tmp_path / "x.run").read_text().splitlines()[0] == trec.run_line(
        "q", "b", 1, 0.30000000000000004, "mine"
    )


def test_qrels_are_read_back(tmp_path):
    qrels = {"q": {"a": 2, "b": 0}}
    trec.write_qrels(tmp_path / "qrels.txt", qrels)
    assert trec.read_qrels(tmp_path / "qrels.txt") == qrels


@pytest.mark.parametrize("name", ["", "a b", "a\n", "\t"])
def test_ids_that_the_format_cannot_carry_are_refused(name):
    with pytest.raises(DataError, match="white space"):
        trec.run_line("q", name, 1, 1.0)


def test_only_line_feeds_end_a_line(tmp_path):
    path = written(tmp_path, "one\u2028still one\x0c\n\ntwo\r\n")
    assert list(trec.numbered_lines(path)) == [(1, "one\u2028still one\x0c"), (3, "two")]


def test_documents_that_a_run_cannot_tell_apart_are_named():
    twice = [Document("x", id="a"), Document("y"), Document("z", id="a")]
    with pytest.raises(InputError, match=r"query 'q': documents 0 and 2 .* id 'a'"):
        trec.check_names("q", twice)
    with pytest.raises(InputError, match=r"documents 0 and 1 .* id '1'"):
        trec.check_names("q", [Document("x", id="1"), Document("y")])
    with pytest.raises(DataError, match="white space"):
        trec.check_names("q", [Document("x", id="a b")])
    trec.check_names("q", [Document("x", id="a"), Document("x")])
