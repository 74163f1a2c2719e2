"""Searches that are killed, resumed, and shared by two processes."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.optimizers import RerankerSearch
from dspy_rerank.optimizers.answers import KeptAnswers
from dspy_rerank.testing import scripted_lm
from dspy_rerank.types import Judgment
from tests.optimizers.builders import MAGIC, labelled, skilled

CHILD = Path(__file__).with_name("searching_process.py")


def start(storage, notes, **options):
    command = [sys.executable, str(CHILD), str(storage), str(notes), json.dumps(options)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def card_of(process):
    out, err = process.communicate(timeout=240)
    assert process.returncode == 0, err
    return json.loads(out)


def prompts(notes):
    return [json.loads(line) for line in notes.read_text().splitlines()]


@pytest.fixture
def storage(request, tmp_path, monkeypatch):
    """A journal file, or the kind of database that the test is marked with."""
    kind = getattr(request, "param", "journal")
    if kind == "journal":
        yield tmp_path / "search.journal"
    elif kind == "sqlite":
        yield f"sqlite:///{tmp_path}/search.db"
    else:
        pytest.importorskip("psycopg2", reason="pip install psycopg2-binary")
        monkeypatch.chdir(tmp_path)
        yield from postgres()


def postgres():
    """A server of our own, on a socket in a folder of its own; it refuses to run as root."""
    if not shutil.which("initdb") or not shutil.which("pg_ctl"):
        pytest.skip("needs PostgreSQL's initdb and pg_ctl")
    folder = Path(tempfile.mkdtemp())
    whose = {"user": "nobody"} if os.getuid() == 0 else {}
    if whose:
        shutil.chown(folder, "nobody")

    def server(*command):
        return subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=True, **whose)  # fmt: skip

    data = folder / "data"
    server("initdb", "-D", data, "-U", "me", "-A", "trust")
    options = f"-k {folder} -c listen_addresses=''"
    server("pg_ctl", "-D", data, "-w", "-o", options, "start")
    try:
        yield f"postgresql+psycopg2://me@/postgres?host={folder}"
    finally:
        server("pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder)


def search(storage, lm=None, **options):
    given = {"trials": 8, "demos": (2,), "instructions": [MAGIC], **options}
    compiler = RerankerSearch(storage=storage, lm=lm or scripted_lm(skilled), **given)
    return compiler.compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
    )


def test_a_killed_search_resumes_without_buying_an_answer_twice(storage, tmp_path):
    notes = tmp_path / "notes"
    killed = start(storage, notes, trials=10, die=40)
    killed.communicate(timeout=240)
    assert killed.returncode == -9
    before = len(prompts(notes))
    card = card_of(start(storage, notes, trials=10))
    asked = prompts(notes)
    assert len(card["trials"]) == 10
    assert card["trials"][0]["variant"] == "own, no demos"
    assert card["validation"]["compiled"] == 1.0
    # The answer during which the process died was not kept; all others were.
    assert len(asked) - len(set(asked)) <= 1
    assert before == 41
    assert card["spent"]["calls"] == len(asked) - before


@pytest.mark.parametrize("storage", ["journal", "sqlite", "postgresql"], indirect=True)
def test_two_processes_share_one_search_its_answers_and_its_budget(storage, tmp_path):
    notes = tmp_path / "notes"
    options = {"trials": 8, "max_calls": 100, "latency": 0.05, "meet": 2}
    pair = [start(storage, notes, **options) for _ in range(2)]
    cards = [card_of(process) for process in pair]
    assert len(prompts(notes)) <= 100
    assert len(set(prompts(notes))) == len(prompts(notes)), "an answer was bought twice"
    assert max(len(card["trials"]) for card in cards) <= 9
    assert sum(card["spent"]["calls"] for card in cards) == len(prompts(notes))
    assert all(card["spent"]["study_calls"] <= 100 for card in cards)


@pytest.mark.parametrize("storage", ["journal", "postgresql"], indirect=True)
def test_one_of_two_is_killed_and_the_other_finishes_within_the_budget(storage, tmp_path):
    notes = tmp_path / "notes"
    options = {"trials": 8, "max_calls": 100, "latency": 0.05, "meet": 2}
    dying = start(storage, notes, **options, die=8)
    living = start(storage, notes, **options, follow=True)
    dying.communicate(timeout=240)
    assert dying.returncode == -9
    card = card_of(living)
    asked = prompts(notes)
    # The answer during which the process died is paid, but in no book.
    assert len(asked) <= 101
    assert len(asked) - len(set(asked)) <= 1
    # The killed one may have taken the best trial with it.
    assert card["validation"]["compiled"] >= card["validation"]["uncompiled"]


def test_the_budget_holds_across_a_kill(storage, tmp_path):
    notes = tmp_path / "notes"
    start(storage, notes, trials=20, max_calls=80, die=60).communicate(timeout=240)
    card_of(start(storage, notes, trials=20, max_calls=80))
    assert len(prompts(notes)) <= 81


def test_a_finished_search_is_not_gone_on_with(tmp_path):
    lm = scripted_lm(skilled)
    first = search(tmp_path / "s", lm)
    asked = len(lm.engine.prompts)
    again = search(tmp_path / "s", lm)
    assert len(lm.engine.prompts) == asked
    assert again.card["chosen"] == first.card["chosen"]
    assert again.card["spent"]["calls"] == 0


def test_another_search_under_the_same_name_is_refused(tmp_path):
    search(tmp_path / "s")
    with pytest.raises(InputError, match="another study_name"):
        search(tmp_path / "s", metric="MRR")
    assert search(tmp_path / "s", metric="MRR", study_name="other").card["trials"]


@pytest.mark.parametrize("bad", ["/nowhere/at/all/x", "nosuchdb://x/y"])
def test_a_storage_that_cannot_be_opened_says_so(bad):
    with pytest.raises(InputError, match="expected a file in an existing folder, or a database"):
        search(bad)


def test_kept_answers_survive_a_line_that_was_cut(tmp_path):
    path = tmp_path / "a.jsonl"
    answers = KeptAnswers(path)
    answers.by = 3
    judgment = Judgment("listwise", (0, 1), "ok", order=(1, 0), probabilities=(0.2, 0.8))
    answers.setdefault("m")[(0, 1)] = judgment
    with path.open("a") as stream:
        stream.write('{"memo": "m", "key"')
    later = KeptAnswers(path)
    later.setdefault("m")[(2,)] = Judgment("pointwise", (0,), "ok", score=1.0)
    read = KeptAnswers(path)
    assert read["m"][(0, 1)] == judgment
    assert read["m"][(2,)].score == 1.0
    assert read.paid_by(3) == 1


def test_answers_of_another_process_are_seen(tmp_path):
    mine, other = KeptAnswers(tmp_path / "a"), KeptAnswers(tmp_path / "a")
    other.setdefault("m")[(0,)] = Judgment("pointwise", (0,), "ok", score=1.0)
    mine.refresh()
    assert mine["m"][(0,)].score == 1.0
