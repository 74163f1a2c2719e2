"""How a judge looks at what it is about to ask."""

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.context import SHORT
from dspy_rerank.judges import base, fitting
from dspy_rerank.models import aliases
from dspy_rerank.testing import FaultServer, scripted_lm

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


@pytest.fixture
def served(tmp_path):
    """A server that answers 1, 2 and 3 in turn, and its alias with a temperature of its own."""
    before, said = dspy.cache, iter("123" * 3)
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    path = tmp_path / "config.yaml"
    with FaultServer(lambda _: next(said)) as server:
        path.write_text(
            "model_list:\n- model_name: judge\n  litellm_params: {model: openai/m, api_key: k, "
            f"api_base: '{server.base_url}', temperature: 0.7, drop_params: true}}\n"
        )
        yield server, dr.models.load(path)["judge"]
    aliases.forget()
    dspy.cache = before


def temperatures(server):
    return [asked.body["temperature"] for asked in server.asked]


@pytest.mark.filterwarnings("error:rollout_id has no effect")
@pytest.mark.parametrize("copied", [{}, {"temperature": 0.5}, {"max_tokens": 9}], ids=str)
def test_an_aliass_own_temperature_is_none_of_the_judges(served, copied):
    server, lm = served
    judge = dr.PointwiseJudge(evidence="generate")
    with dspy.context(lm=lm.copy(**copied) if copied else lm):
        for _ in range(2):
            assert dr.ScoreSort(judge)("q", ["a"], on_error="raise").ranking.scores == [1.0]
    assert temperatures(server) == [0.0]


@pytest.mark.filterwarnings("error:rollout_id has no effect")
def test_best_of_n_gets_answers_of_its_own_from_an_alias(served):
    server, lm = served
    sorter = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    best = dspy.BestOfN(sorter, 3, lambda given, found: found.ranking.scores[0] / 3, 1.0)
    with dspy.context(lm=lm):
        assert best(query="q", documents=["best of three"]).ranking.scores == [3.0]
    assert temperatures(server)[1:] == [1.0, 1.0]  # DSPy's first is the answer that is known
