"""A group asked about in parts, and the limits that providers' refusals name."""

import dspy
import pytest

from dspy_rerank.adapters import COMPACT
from dspy_rerank.context import learn, set_window, window_of
from dspy_rerank.judges.parts import REASON, in_parts
from dspy_rerank.reserving import Call
from dspy_rerank.testing import scripted_lm
from dspy_rerank.types import Judgment

GROUP = (7, 3, 9, 1, 8, 2, 5)


def told(kind, group, order, **other):
    best = {"order": tuple(order)} if kind == "listwise" else {"best": order[0]}
    return Judgment(kind, group, **{"status": "ok", "asks": 1, **best, **other})


def run(kind, answer, group=GROUP):
    """The judgment of the whole, and the groups that were asked about, by step."""
    parts, steps = in_parts(group, kind), []
    groups = next(parts)
    try:
        while True:
            steps.append(groups)
            groups = parts.send([answer(part) for part in groups])
    except StopIteration as end:
        return end.value, steps


def by_size(kind, **other):
    return lambda group: told(kind, group, sorted(group, reverse=True), **other)


def test_an_order_has_the_best_first_and_all_once():
    judgment, steps = run("listwise", by_size("listwise"))
    assert steps == [[(7, 3, 9, 1), (8, 2, 5)], [(7, 9, 8, 5)]]
    assert judgment.order == (9, 8, 7, 5, 3, 2, 1)
    assert (judgment.status, judgment.reason, judgment.asks) == ("repaired", REASON, 3)


def test_a_choice_is_between_both_winners():
    judgment, steps = run("setwise", by_size("setwise"))
    assert steps[1] == [(9, 8)]
    assert judgment.best == 9


@pytest.mark.parametrize("kind", ["setwise", "listwise"])
def test_a_part_that_is_unknown_makes_the_whole_unknown(kind):
    def answer(group):
        return (
            Judgment(kind, group, "unknown", reason="empty") if 8 in group else by_size(kind)(group)
        )

    judgment, steps = run(kind, answer)
    assert (judgment.status, judgment.order, judgment.best, len(steps)) == (
        "unknown",
        None,
        None,
        1,
    )
    assert "empty" in judgment.reason


@pytest.mark.parametrize("kind", ["setwise", "listwise"])
def test_nothing_relevant_in_one_part_leaves_the_other(kind):
    def answer(group):
        return Judgment(kind, group, "none") if 7 in group else by_size(kind)(group)

    judgment, steps = run(kind, answer)
    assert len(steps) == 1
    assert judgment.ranked[0] == 8
    assert kind == "setwise" or judgment.order == (8, 5, 2, 7, 3, 9, 1)


def test_nothing_relevant_in_all_parts_is_nothing_relevant():
    judgment, _ = run("listwise", lambda group: Judgment("listwise", group, "none"))
    assert (judgment.status, judgment.ranked) == ("none", GROUP)


def test_of_three_one_half_is_a_single_passage():
    judgment, steps = run("listwise", by_size("listwise"), (1, 2, 3))
    assert steps == [[(1, 2)], [(2, 3)]]
    assert judgment.order == (3, 2, 1)


def test_what_was_cut_in_any_part_is_cut():
    judgment, _ = run("setwise", lambda group: by_size("setwise", cut=group[:1])(group))
    assert judgment.cut == (7, 8, 9)


REFUSALS = {
    "This model's maximum context length is 1000 tokens. However, you requested 4000 tokens": 250,
    "This model's maximum context length is 1000 tokens. Please reduce the length": 1000,
    "the request exceeds the available context size (1000 tokens), try increasing it": 1000,
    "request (2000 tokens) exceeds the available context size (1000 tokens)": 500,
    "prompt is too long: 2000 tokens > 1000 maximum": 500,
    "The input token count (4,000) exceeds the maximum number of tokens allowed (1,000)": 250,
    "Prompt contains 2000 tokens, too large for model with 1000 maximum context length": 500,
    "`inputs` tokens + `max_new_tokens` must be <= 1000. Given: 2000 `inputs` tokens": 500,
    "Input is too long for requested model.": None,
    "gpt-4-0613 says: context_length_exceeded": None,
}


def call(lm):
    predict = dspy.Predict("query, passage -> relevance")
    inputs = {"query": "q", "passage": "word " * 1000}
    return Call(lm, predict, COMPACT, predict.signature, inputs, {})


@pytest.mark.parametrize(("message", "share"), REFUSALS.items())
def test_a_refusal_tells_the_limit(message, share):
    """As tokens of our estimate: less where the provider counts more than was estimated."""
    lm = scripted_lm("")
    asked = call(lm)
    estimated = asked.prompt_tokens()
    assert 1000 < estimated < 1100
    limit = learn(lm, dspy.ContextWindowExceededError(message=message), asked)
    expected = estimated // 2 if share is None else share * min(1.0, estimated / 1000)
    assert limit == pytest.approx(expected, rel=0.1)
    assert window_of(lm) == limit


def test_a_limit_that_was_kept_to_and_refused_shrinks():
    lm = scripted_lm("")
    set_window(lm, 1200)
    message = "maximum context length is 1200 tokens"
    limit = learn(lm, dspy.ContextWindowExceededError(message=message), call(lm))
    assert 700 < limit < 900
