"""Ranking anything by comparisons."""

import math
import subprocess
import sys
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import dspy
import numpy as np
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError, JudgeError, NoModelError
from dspy_rerank.testing import scripted_lm


def longer(left, right, ctx):
    return len(left) - len(right)


WORDS = ["a", "dddd", "ccc", "bb"]


def prefers(gold):
    """A model that prefers, of the two shown, the one that comes first in ``gold``."""

    def say(prompt):
        shown = sorted(gold, key=prompt.rfind)
        first, second = (word for word in shown if f"]: {word}" in prompt)
        return "A" if gold.index(first) < gold.index(second) else "B"

    return scripted_lm(say)


def test_the_best_comes_first_and_every_candidate_once():
    result = dr.pairwise_rerank(WORDS, compare=longer)
    assert result.ranked == ["dddd", "ccc", "bb", "a"]
    assert result.indices == [1, 2, 3, 0]


def test_the_result_can_be_read_as_a_mapping():
    result = dr.pairwise_rerank(WORDS, compare=longer)
    assert result["ranked"] == result.ranked
    assert result["scores"][0]["wins"] == 0
    assert result["comparisons"][0]["winner"] == "right"
    with pytest.raises(KeyError):
        result["nothing"]


def test_comparisons_grow_as_n_log_n_and_no_pair_repeats():
    result = dr.pairwise_rerank(list(range(64)), compare=lambda a, b, ctx: a - b)
    pairs = [frozenset((c.left_index, c.right_index)) for c in result.comparisons]
    assert result.ranked == list(range(63, -1, -1))
    assert len(pairs) == len(set(pairs)) <= 64 * 6 - 63


def test_the_deterministic_path_asks_no_model():
    lm = scripted_lm("A")
    with dspy.context(lm=lm):
        result = dr.pairwise_rerank(WORDS, compare=longer, model_tier="no such model")
    assert lm.engine.prompts == []
    assert result.usage.prompt_tokens == 0


def test_the_deterministic_path_needs_no_model_and_no_litellm():
    code = (
        "import sys, dspy_rerank as dr\n"
        "found = dr.pairwise_rerank(['a', 'bbb', 'cc'], compare=lambda l, r, c: len(l) - len(r))\n"
        "assert found.ranked == ['bbb', 'cc', 'a'], found\n"
        "assert found.usage.prompt_tokens == 0 and found.usage.cost == 0.0\n"
        "assert not {'litellm', 'optuna'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_a_model_tier_is_the_name_of_a_model(monkeypatch):
    lm, asked = scripted_lm("A"), []
    monkeypatch.setattr(dr.models, "get", lambda name: asked.append(name) or lm)
    dr.pairwise_rerank(["x", "y"], model_tier="cheap")
    assert asked == ["cheap"]
    assert lm.engine.prompts


def test_a_model_in_the_options_goes_before_the_tier():
    lm = scripted_lm("A")
    dr.pairwise_rerank(["x", "y"], model_tier="no such model", llm_options={"lm": lm})
    assert lm.engine.prompts


def test_candidates_may_come_from_an_iterator():
    assert dr.pairwise_rerank(iter(WORDS), compare=longer).indices == [1, 2, 3, 0]


def test_scores_stay_with_the_original_candidates():
    scores = dr.pairwise_rerank(["x", "yy"], compare=longer).scores
    assert [(s.index, s.candidate, s.wins, s.losses, s.ties) for s in scores] == [
        (0, "x", 0, 1, 0),
        (1, "yy", 1, 0, 0),
    ]
    assert [s.score for s in scores] == [0.0, 1.0]
    assert all(s.comparisons == s.wins + s.losses + s.ties for s in scores)


LEFT = (
    "left", "A", "a", "first", " Left ", "A.", "[A]", "Candidate A", 1, 0.25, True, math.inf,
    Fraction(1, 2), np.float32(0.5), np.bool_(True), {"winner": "left"}, {"winner": 3},
    {"winner": True}, {"Winner": "A"}, {"preferred": "first"}, {"choice": "left"},
)  # fmt: skip
RIGHT = (
    "right", "B", "b", "second", "SECOND", -1, -0.25, False, -math.inf, Decimal("-0.1"),
    np.int64(-2), np.bool_(False), {"winner": "right"}, {"winner": -1}, {"better": "B"},
    {"result": "second"},
)  # fmt: skip
TIE = (
    "tie", "equal", "Tie", "equals", "draw", "same", "neither", 0, 0.0, -0.0, np.float64(0),
    {"winner": "equal"}, {"winner": 0}, {"preference": "tie"},
)  # fmt: skip
UNKNOWN = (None, "", "  ", {"winner": None}, {"winner": ""})


@pytest.mark.parametrize(
    ("said", "winner"),
    [*((x, "left") for x in LEFT), *((x, "right") for x in RIGHT), *((x, "tie") for x in TIE)],
)
def test_every_way_to_say_who_wins(said, winner):
    (comparison,) = dr.pairwise_rerank(["x", "y"], compare=lambda *_: said).comparisons
    assert comparison.winner == winner


@pytest.mark.parametrize("said", UNKNOWN)
def test_a_function_that_says_nothing_is_nobodys_win(said):
    result = dr.pairwise_rerank(["x", "y"], compare=lambda *_: said)
    assert result.comparisons[0].winner == "unknown"
    assert "returned" in result.comparisons[0].reasoning
    assert result.ranked == ["x", "y"]


@pytest.mark.parametrize(
    ("given", "sure"),
    [(0.9, 0.9), (1, 1.0), ("0.8", 0.8), (np.float32(0.5), 0.5), (1.5, 1.0), (-1, 0.0)],
)
def test_a_confidence_is_a_number_from_zero_to_one(given, sure):
    said = {"winner": "A", "confidence": given}
    (comparison,) = dr.pairwise_rerank(["x", "y"], compare=lambda *_: said).comparisons
    assert (comparison.confidence, comparison.confidence_source) == (sure, "stated")


@pytest.mark.parametrize("given", [None, math.nan, "high", True, [0.5]])
def test_a_confidence_that_is_none_is_never_zero(given):
    said = {"winner": "A", "confidence": given}
    (comparison,) = dr.pairwise_rerank(["x", "y"], compare=lambda *_: said).comparisons
    assert (comparison.confidence, comparison.confidence_source) == (None, "none")


@pytest.mark.parametrize("name", ["reasoning", "reason", "rationale", "Explanation"])
def test_reasoning_may_go_by_other_names(name):
    said = {"winner": "A", name: "newer", "confidence": 0.5}
    (comparison,) = dr.pairwise_rerank(["x", "y"], compare=lambda *_: said).comparisons
    assert comparison.reasoning == "newer"


def test_confidence_and_reasoning_are_kept():
    said = {"winner": "B", "confidence": 0.9, "reasoning": "newer"}
    result = dr.pairwise_rerank(["x", "y"], compare=lambda *_: said)
    (comparison,) = result.comparisons
    assert (comparison.confidence, comparison.reasoning) == (0.9, "newer")
    assert comparison.confidence_source == "stated"
    assert [s.avg_confidence for s in result.scores] == [0.9, 0.9]


def test_no_confidence_is_none_and_never_zero():
    result = dr.pairwise_rerank(["x", "yy"], compare=longer)
    assert result.comparisons[0].confidence is None
    assert result.scores[0].avg_confidence is None


def test_ties_keep_the_incoming_order():
    result = dr.pairwise_rerank(["c", "a", "b"], compare=lambda *_: "tie")
    assert result.ranked == ["c", "a", "b"]
    assert [s.score for s in result.scores] == [0.5, 0.5, 0.5]


@dataclass
class Flat:
    rent: int


def test_any_objects_come_back_as_they_are():
    flats = [Flat(900), Flat(700), Flat(700)]
    result = dr.pairwise_rerank(flats, compare=lambda a, b, ctx: b.rent - a.rent)
    assert [id(flat) for flat in result.ranked] == [id(flats[i]) for i in (1, 2, 0)]


def test_the_context_names_task_criteria_and_positions():
    seen = []

    def compare(left, right, ctx):
        seen.append(ctx)
        return 0

    dr.pairwise_rerank(["x", "y"], task="t", criteria="c", compare=compare)
    assert seen == [{"task": "t", "criteria": "c", "left_index": 0, "right_index": 1}]


def test_compare_may_be_asynchronous():
    async def compare(left, right, ctx):
        return "right"

    assert dr.pairwise_rerank(["x", "y"], compare=compare).ranked == ["y", "x"]


def test_an_error_in_an_asynchronous_compare_is_raised_with_its_candidates():
    async def compare(left, right, ctx):
        raise ZeroDivisionError("oops")

    with pytest.raises(JudgeError, match="candidates 0 and 1"):
        dr.pairwise_rerank(["x", "y"], compare=compare)


def test_compare_may_rank_something_itself():
    def compare(left, right, ctx):
        return dr.pairwise_rerank([left, right], compare=longer).ranked[0] == left

    assert dr.pairwise_rerank(["x", "yy"], compare=compare).ranked == ["yy", "x"]


def test_an_error_in_compare_is_raised_with_its_candidates():
    def compare(left, right, ctx):
        raise ZeroDivisionError("oops")

    with pytest.raises(JudgeError, match="ZeroDivisionError for candidates 0 and 1: oops"):
        dr.pairwise_rerank(["x", "y"], compare=compare)


def test_an_answer_that_is_none_lists_what_is_understood():
    with pytest.raises(JudgeError, match="left, right, tie"):
        dr.pairwise_rerank(["x", "y"], compare=lambda *_: "maybe")


@pytest.mark.parametrize("candidates", [[], ["only"]])
def test_nothing_to_compare_asks_nobody(candidates):
    result = dr.pairwise_rerank(candidates)
    assert result.ranked == candidates
    assert result.comparisons == []
    assert [s.score for s in result.scores] == [None] * len(candidates)


@pytest.mark.parametrize("candidates", ["text", {"a": 1}, 7])
def test_one_thing_instead_of_a_list_is_refused(candidates):
    with pytest.raises(InputError, match="list"):
        dr.pairwise_rerank(candidates, compare=longer)


def test_a_model_ranks_in_both_orders():
    lm = prefers(["third", "first", "second"])
    with dspy.context(lm=lm):
        result = dr.pairwise_rerank(["first", "second", "third"], task="rank words")
    assert result.ranked == ["third", "first", "second"]
    assert len(lm.engine.prompts) == 2 * len(result.comparisons)
    assert all("rank words" in prompt for prompt in lm.engine.prompts)


def test_criteria_reach_the_model():
    lm = scripted_lm("A")
    options = {"lm": lm, "swap": False}
    dr.pairwise_rerank(["x", "y"], criteria=["short", "new"], llm_options=options)
    (prompt,) = lm.engine.prompts
    assert "- short\n- new" in prompt


def test_options_of_the_engine_hold():
    lm = scripted_lm("A")
    result = dr.pairwise_rerank(list("abcd"), llm_options={"lm": lm, "max_calls": 2})
    assert len(lm.engine.prompts) == 2
    assert result.degraded
    assert "max_calls=2" in result.reasons[0]


def test_reasoning_is_reported_when_asked_for():
    lm = scripted_lm("Reasoning: it is newer\nWinner: A")
    options = {"lm": lm, "swap": False, "reasoning": True}
    (comparison,) = dr.pairwise_rerank(["x", "y"], llm_options=options).comparisons
    assert "it is newer" in comparison.reasoning


def test_an_unreadable_answer_is_nobodys_win():
    lm = scripted_lm("hm")
    result = dr.pairwise_rerank(["x", "y"], llm_options={"lm": lm, "retries": 0})
    assert result.comparisons[0].winner == "unknown"
    assert [s.comparisons for s in result.scores] == [0, 0]


def test_an_unknown_option_is_named():
    with pytest.raises(InputError, match="colour"):
        dr.pairwise_rerank(["x", "y"], llm_options={"lm": scripted_lm("A"), "colour": 1})


def test_without_any_model_both_ways_out_are_named(monkeypatch):
    monkeypatch.setattr(dr.models, "available", lambda *_: False)
    with pytest.raises(NoModelError, match=r"dspy\.configure"):
        dr.pairwise_rerank(["x", "y"])


def test_objects_are_shown_as_text_or_json():
    lm = scripted_lm("A")
    items = [{"text": "just this", "price": 3}, {"price": 5}, Flat(7)]
    dr.pairwise_rerank(items, llm_options={"lm": lm, "swap": False})
    shown = "\n".join(lm.engine.prompts)
    assert "]: just this\n" in shown
    assert '{"price": 5}' in shown
    assert "Flat(rent=7)" in shown
