"""Bars over batch work."""

import io
from contextlib import redirect_stderr

import pytest

import dspy_rerank as dr
from dspy_rerank.progress import progress_bar, reporting
from dspy_rerank.testing import oracle_judge

QUERIES = [(f"q{i}", ["a", "b"]) for i in range(3)]


@pytest.fixture
def reranker():
    return dr.MergeSort(oracle_judge({"a": 0.0, "b": 1.0}, "pairwise"))


@pytest.fixture
def screen(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setenv("TERM", "xterm")
    return Terminal()


def test_true_draws_a_bar_to_the_end(reranker, screen):
    with redirect_stderr(screen):
        found = reranker.rank_many(QUERIES, progress=True)
    assert [p.ranking.indices for p in found] == [[1, 0]] * 3
    assert "ranking" in screen.getvalue()
    assert "100%" in screen.getvalue()


def test_nothing_is_written_into_a_pipe(reranker, capsys):
    reranker.rank_many(QUERIES, progress=True)
    assert capsys.readouterr().err == ""


def test_without_progress_nothing_is_drawn(reranker, screen):
    with redirect_stderr(screen):
        reranker.rank_many(QUERIES)
        reranker.rank_many(QUERIES, progress=False)
    assert screen.getvalue() == ""


def test_a_function_is_called_itself(reranker):
    seen = []
    reranker.rank_many(QUERIES, progress=lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_the_bar_is_a_function_of_done_and_total(screen):
    with redirect_stderr(screen), progress_bar("judging") as update, reporting(update) as same:
        assert same is update
        update(1, 2)
    assert "judging" in screen.getvalue()
