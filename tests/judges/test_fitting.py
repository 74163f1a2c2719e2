"""How a judge looks at what it is about to ask."""

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.context import SHORT
from dspy_rerank.judges import base, fitting
from dspy_rerank.testing import scripted_lm

LONG = [f"passage {number} " + "word " * SHORT for number in range(3)]


def test_a_question_is_rendered_once(monkeypatch):
    """To see whether it fits and to ask it."""
    rendered = []
    real = base.SignatureJudge._inputs
    monkeypatch.setattr(base.SignatureJudge, "_inputs", lambda *a: rendered.append(a) or real(*a))
    with dspy.context(lm=scripted_lm("[2] > [1] > [3]")):
        ranking = dr.TopDown(dr.ListwiseJudge())("query", ["a", "b", "c"]).ranking
    assert (ranking.indices, len(rendered)) == ([1, 0, 2], 1)


@pytest.mark.parametrize("documents", [["a", "b", "c"], LONG], ids=["short", "long"])
def test_no_thread_is_started_where_no_table_has_to_be_read(monkeypatch, documents):
    def refuse(*_):
        raise AssertionError("a thread was started")

    monkeypatch.setattr(fitting, "in_thread", refuse)
    with dspy.context(lm=scripted_lm("[2] > [1] > [3]")):
        ranking = dr.TopDown(dr.ListwiseJudge())("query", documents, on_error="raise").ranking
    assert ranking.indices == [1, 0, 2]
