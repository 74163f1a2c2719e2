"""Whatever a model writes is a valid judgment or an unknown with a reason, and never an error."""

import json

import dspy
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dspy_rerank as dr
from dspy_rerank.reading.unwrap import unwrap
from dspy_rerank.testing import scripted_lm
from tests.fuzz.harness import ANSWERS, tried

PASSAGES = ["one", "two", "three", "four"]
SIZES = {"pointwise": 1, "yes or no": 1, "pairwise": 2, "setwise": 4, "listwise": 4}


class Relevant(dspy.Signature):
    """Does the passage answer the query?"""

    query: str = dspy.InputField()
    passage: str = dspy.InputField()
    relevant: bool = dspy.OutputField()


JUDGES = {
    "pointwise": lambda **o: dr.PointwiseJudge(**o),
    "yes or no": lambda **o: dr.PointwiseJudge(Relevant, scale=(0, 1), **o),
    "pairwise": lambda **o: dr.PairwiseJudge(swap=False, **o),
    "setwise": dr.SetwiseJudge,
    "listwise": dr.ListwiseJudge,
}
ADAPTERS = {"compact": None, "chat": dspy.ChatAdapter(), "json": dspy.JSONAdapter(),
            "xml": dspy.XMLAdapter()}  # fmt: skip


def judged(kind, answer, **options):
    options = {"evidence": "generate", **options}
    with dspy.context(lm=scripted_lm(answer)):
        judge = JUDGES[kind](**options)
        return judge(query="q", passages=PASSAGES[: SIZES[kind]]).judgment


def assert_valid(judgment, shown):
    places = tuple(range(shown))
    assert judgment.group == places
    if not judgment.known:
        assert judgment.reason
        assert (judgment.order, judgment.best, judgment.score) == (None, None, None)
        return
    assert judgment.order is None or tuple(sorted(judgment.order)) == places
    assert judgment.best is None or judgment.best in places
    assert judgment.score is None or 0 <= judgment.score <= 3
    assert judgment.confidence is None or 0 <= judgment.confidence <= 1
    assert tuple(sorted(judgment.ranked)) == places


@pytest.mark.parametrize("kind", JUDGES)
@tried(150)
@given(answer=ANSWERS)
@example(answer="{" * 3000)
@example(answer="[" * 3000 + "1")
@example(answer="[1] > " * 3000)
@example(answer="9" * 5000)
@example(answer="<think>" * 500)
def test_any_text_is_a_valid_judgment_or_unknown(kind, answer):
    assert_valid(judged(kind, answer), SIZES[kind])


@pytest.mark.parametrize("evidence", ["stated", "logprobs"])
@pytest.mark.parametrize("kind", JUDGES)
@tried(50)
@given(answer=ANSWERS)
def test_any_text_by_other_evidence(kind, evidence, answer):
    assert_valid(judged(kind, answer, evidence=evidence), SIZES[kind])


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", JUDGES)
@tried(30)
@given(answer=ANSWERS)
def test_any_text_by_other_adapters_and_with_reasoning(kind, adapter, answer):
    judgment = judged(kind, answer, adapter=ADAPTERS[adapter], reasoning=True)
    assert_valid(judgment, SIZES[kind])


NUMBERS = st.integers(0, 9)


@pytest.mark.parametrize("kind", JUDGES)
@tried(60)
@given(n=NUMBERS, m=NUMBERS, letter=st.sampled_from("ABCD"))
def test_digits_in_errors_prose_and_open_reasoning_are_no_answers(kind, n, m, letter):
    for said in (
        f"Error {n}{m}9: the server is overloaded, retry after {m} seconds",
        f"I would need {n} or {m} more details to decide that.",
        f"<think>Passage [{n}] looks better than passage [{m}], so {letter} perhaps",
        f"The query mentions {n} things that {m} people have asked about.",
        json.dumps({"error": {"code": 429, "message": f"{letter}, retry in {n}", "param": m}}),
        f"HTTP/1.1 50{n} Bad Gateway",
        f"There are {n} passages and {m} of them were published in 200{n}.",
    ):
        assert judged(kind, said).status == "unknown", said


@tried(300)
@given(answer=ANSWERS, field=st.sampled_from(["ranking", "winner", "relevance", "answer"]))
def test_unwrapping_ends_with_text_or_nothing(answer, field):
    found = unwrap(answer, field)
    assert found is None or found == found.strip()


@pytest.mark.parametrize("kind", JUDGES)
@tried(40)
@given(tokens=st.lists(st.tuples(ANSWERS, st.floats(allow_nan=True)), max_size=5), answer=ANSWERS)
def test_any_log_probabilities_are_taken_or_left(kind, tokens, answer):
    lm = scripted_lm(answer, logprobs=dict(tokens))
    with dspy.context(lm=lm):
        judge = JUDGES[kind](evidence="logprobs")
        judgment = judge(query="q", passages=PASSAGES[: SIZES[kind]]).judgment
    assert_valid(judgment, SIZES[kind])
