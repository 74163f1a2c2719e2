"""The file of results: what was written is there, what was torn is gone."""

import json

import pytest

from dspy_rerank.errors import DataError, InputError
from dspy_rerank.streaming import Journal, read_results


def row(name, status="ranked", **more):
    return {"id": name, "status": status, **more}


def ids(path):
    return [found["id"] for found in read_results(path)]


def test_a_row_is_a_line_of_json_once_append_returns(tmp_path):
    with Journal(tmp_path / "j.jsonl", "p1") as journal:
        journal.append(row("1"), "k1")
        (line,) = (tmp_path / "j.jsonl").read_text().splitlines()
    assert json.loads(line) == {"id": "1", "key": "k1", "by": "p1", "status": "ranked"}


@pytest.mark.parametrize("torn", ['{"id": "2", "st', "{", "\0\0\0", '{"id": "2", "q": "é'])
def test_a_torn_last_line_is_taken_off(tmp_path, torn):
    path = tmp_path / "j.jsonl"
    with Journal(path, "p") as journal:
        journal.append(row("1"), "k")
    with path.open("ab") as file:
        file.write(torn.encode()[:-1] if torn.endswith("é") else torn.encode())
    with Journal(path, "p") as journal:
        assert journal.known("2") is None
        journal.append(row("2"), "k")
    assert ids(path) == ["1", "2"]


def test_a_long_torn_line_is_taken_off_to_the_last_end(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path, "p") as journal:
        journal.append(row("1"), "k")
    size = path.stat().st_size
    with path.open("ab") as file:
        file.write(b'{"id": "' + b"x" * 300_000)
    Journal(path, "p").close()
    assert path.stat().st_size == size


def test_a_last_line_that_lacks_only_its_end_is_kept(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path, "p") as journal:
        journal.append(row("1"), "k")
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    with Journal(path, "p") as journal:
        journal.append(row("2"), "k")
    assert ids(path) == ["1", "2"]


def test_of_several_rows_of_an_id_the_last_counts(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path, "p") as journal:
        for name, status in (("1", "failed"), ("2", "ranked"), ("1", "ranked")):
            journal.append(row(name, status, usage={"cost": 2.0}), "k")
        assert journal.cost == 6.0
        assert [r["status"] for r in journal.rows()] == ["ranked", "ranked"]
        journal.compact()
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["2", "1"]
    with Journal(path, "p") as journal:
        assert journal.known("1").status == "ranked"


def test_rows_of_another_program_are_refused(tmp_path):
    with Journal(tmp_path / "j.jsonl", "p1") as journal:
        journal.append(row("1"), "k")
    with pytest.raises(InputError, match="another program"):
        Journal(tmp_path / "j.jsonl", "p2")


def test_one_process_at_a_time(tmp_path):
    with (
        Journal(tmp_path / "j.jsonl", "p"),
        pytest.raises(InputError, match="another process"),
    ):
        Journal(tmp_path / "j.jsonl", "p")
    Journal(tmp_path / "j.jsonl", "p").close()


@pytest.mark.parametrize("content", ['{"a": 1}\n', "[]\n", "plain\nlines\n"])
def test_a_file_of_something_else_is_left_alone(tmp_path, content):
    path = tmp_path / "j.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match="line 1"):
        Journal(path, "p")
    assert path.read_text() == content


def test_a_run_is_written_from_the_rows(tmp_path):
    ranked = [{"rank": 1, "index": 1, "id": "b", "score": None}]
    with Journal(tmp_path / "j.jsonl", "p") as journal:
        journal.append(row("q1", ranking=ranked, n=2), "k")
        journal.append(row("q2", "failed"), "k")
        journal.export(tmp_path / "a.run")
    assert (tmp_path / "a.run").read_text() == "q1 Q0 b 1 2 dspy_rerank\n"
    assert not list(tmp_path.glob("*.part"))
