"""What judges make of a decision model's probabilities."""

import json
from typing import Annotated, Literal

import dspy
import pytest
from dspy.clients.base_lm import record_history
from dspy.experimental import Choice, Noul, Score
from dspy.utils.callback import with_callbacks

import dspy_rerank as dr
from dspy_rerank.errors import EvidenceError
from dspy_rerank.judges.decision_types import bent, levels, rubric
from dspy_rerank.testing import scripted_lm

DOCUMENTS = ["Bananas are yellow.", "Paris is the capital of France.", "France borders Spain."]


class Decisions:
    """A decision client that answers by a function of the inputs and the question."""

    supports_decision_requests = True
    cache = False
    model = "scripted/decisions"

    def __init__(self, answer):
        self.answer = answer
        self.asked, self.history, self.callbacks = [], [], []

    @with_callbacks
    def __call__(self, state, questions):
        self.asked.append((state, questions))
        answers = {n: self.answer(state["inputs"], q) for n, q in questions.items()}
        entry = {"outputs": [json.dumps(answers)], "cache_hit": False, "response": None}
        record_history(self, entry)
        return answers

    @with_callbacks
    async def acall(self, state, questions):
        return type(self).__call__.__wrapped__(self, state, questions)

    def __deepcopy__(self, memo):
        return self


def distribution(*probabilities, **named):
    given = named or dict(enumerate(probabilities))
    return {"probabilities": given, "confidence": 0.5}


def judge_one(judge, answer, passages=("one",)):
    with dspy.context(lm=Decisions(answer)):
        return judge(query="q", passages=list(passages)).judgment


class YesNo(dspy.Signature):
    """Does the passage answer the query?"""

    query: str = dspy.InputField()
    passage: str = dspy.InputField()
    relevant: bool = dspy.OutputField()


def test_a_grade_is_the_expectation_over_the_rubric():
    found = judge_one(dr.PointwiseJudge(), lambda i, q: distribution(0.1, 0.0, 0.5, 0.4))
    assert found.score == pytest.approx(0.5 * 2 + 0.4 * 3)
    assert (found.confidence, found.confidence_source) == (0.5, "model")
    assert (found.status, found.evidence) == ("ok", "stated")


def test_the_rubric_and_the_question_come_from_the_instructions():
    lm = Decisions(lambda i, q: distribution(1.0, 0.0, 0.0, 0.0))
    with dspy.context(lm=lm):
        dr.PointwiseJudge()(query="q", passages=["p"])
    ((state, questions),) = lm.asked
    (question,) = questions.values()
    assert question["instructions"] == "Grade how well the passage answers the query."
    assert question["criteria"] == ["off-topic", "tangential", "partial answer", "fully answers"]
    assert state["inputs"] == {"query": "q", "passage": "p"}


@pytest.mark.parametrize(
    ("instructions", "expected"),
    [
        ("0 = bad, 1 = good, 2 = best", ("bad", "good", "best")),
        ("0: bad\n1: so so\n2: best.", ("bad", "so so", "best")),
        ("0 = bad, 2 = best", ("0", "1", "2")),
        ("10 = bad, 11 = x, 12 = y", ("0", "1", "2")),
        (" ", ("0", "1", "2")),
    ],
)
def test_a_rubric_is_read_whole_or_not_at_all(instructions, expected):
    assert rubric(instructions, (0.0, 1.0, 2.0)) == expected


@pytest.mark.parametrize(
    ("scale", "expected"),
    [
        ((0, 3), (0, 1, 2, 3)),
        ((1, 5), (1, 2, 3, 4, 5)),
        ((0, 9), tuple(range(10))),
        ((0, 10), (0, 2, 4, 6, 8, 10)),
        ((0, 100), (0, 20, 40, 60, 80, 100)),
        ((0, 0.5), (0, 0.1, 0.2, 0.3, 0.4, 0.5)),
    ],
)
def test_a_scale_has_at_most_ten_levels(scale, expected):
    assert levels(scale) == pytest.approx(expected)


def test_a_wide_scale_is_spread_over_its_levels():
    judge = dr.PointwiseJudge(scale=(0, 10))
    found = judge_one(judge, lambda i, q: distribution(0, 0, 0, 0, 0.5, 0.5))
    assert found.score == pytest.approx(9.0)


def test_yes_or_no_is_the_probability_of_yes():
    found = judge_one(dr.PointwiseJudge(YesNo), lambda i, q: {"noul": 0.2})
    assert (found.score, found.confidence) == (pytest.approx(0.2), pytest.approx(0.8))


def test_a_pair_is_asked_in_both_orders_and_averaged():
    def favours_paris(inputs, question):
        first = inputs["passages"].index("Paris") < inputs["passages"].index("Bananas")
        good, bad = (0.9, 0.05) if first else (0.5, 0.4)
        side = {"A": good, "B": bad} if first else {"B": good, "A": bad}
        return distribution(**side, Tie=1 - good - bad)

    found = judge_one(dr.PairwiseJudge(), favours_paris, DOCUMENTS[:2])
    assert (found.best, found.asks, found.tie) == (1, 2, False)
    assert found.confidence == pytest.approx((0.9 + 0.025 + 0.5 + 0.05) / 2)


def test_equal_probabilities_are_a_tie_of_a_pair_and_unknown_of_a_group():
    even = {"A": 0.4, "B": 0.4}
    pair, group = (
        judge_one(judge, lambda i, q, last=last: distribution(**even, **{last: 0.2}), ("a", "b"))
        for judge, last in ((dr.PairwiseJudge(swap=False), "Tie"), (dr.SetwiseJudge(), "None"))
    )
    assert (pair.best, pair.tie) == (None, True)
    assert group.status == "unknown"


def test_a_group_has_a_best_passage_or_none():
    def answer(best):
        masses = {"A": 0.1, "B": 0.1, "C": 0.1, "None": 0.1, best: 0.7}
        return lambda i, q: distribution(**masses)

    found = judge_one(dr.SetwiseJudge(), answer("C"), DOCUMENTS)
    assert (found.best, found.confidence) == (2, pytest.approx(0.7))
    assert found.probabilities == pytest.approx((0.1, 0.1, 0.7))
    assert judge_one(dr.SetwiseJudge(), answer("None"), DOCUMENTS).status == "none"


def test_weights_change_which_passage_wins():
    masses = {"A": 0.5, "B": 0.4, "None": 0.1}
    plain = judge_one(dr.SetwiseJudge(), lambda i, q: distribution(**masses), ("a", "b"))
    judge = dr.SetwiseJudge(anchors={"weights": {"A": 0.5}})
    weighed = judge_one(judge, lambda i, q: distribution(**masses), ("a", "b"))
    assert (plain.best, weighed.best) == (0, 1)
    assert weighed.confidence == pytest.approx(0.4 / 0.75)


def test_a_threshold_and_cuts_bend_the_scale_without_changing_its_order():
    judge = dr.PointwiseJudge(YesNo, anchors={"threshold": 0.2})
    assert judge_one(judge, lambda i, q: {"noul": 0.2}).score == pytest.approx(0.5)
    cut = dr.PointwiseJudge(anchors={"cuts": [1.0, 1.1, 1.2]})
    assert judge_one(cut, lambda i, q: distribution(0, 1, 0, 0)).score == pytest.approx(0.5)
    bends = [bent(x / 10, [1.0, 1.1, 1.2], 3) for x in range(31)]
    assert bends == sorted(bends)
    assert (bends[0], bends[-1]) == (0.0, 3.0)


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_a_threshold_at_the_end_of_the_scale_is_one(threshold):
    judge = dr.PointwiseJudge(YesNo, anchors={"threshold": threshold})
    assert judge_one(judge, lambda i, q: {"noul": threshold}).score >= 0.5


@pytest.mark.parametrize("place", ["reasoning", "stated"])
def test_no_text_is_asked_for_before_the_answer(place):
    options = {"reasoning": True} if place == "reasoning" else {"evidence": "stated"}
    lm = Decisions(lambda i, q: distribution(0, 0, 0, 1))
    with dspy.context(lm=lm):
        found = dr.PointwiseJudge(**options)(query="q", passages=["p"]).judgment
    assert found.score == 3.0
    assert list(lm.asked[0][1]) == ["relevance"]


def test_one_passage_is_asked_about_at_a_time():
    lm = Decisions(lambda i, q: distribution(0, 0, 0, 1))
    with dspy.context(lm=lm):
        dr.ScoreSort(dr.PointwiseJudge())(query="q", documents=DOCUMENTS)
    assert sorted(state["inputs"]["passage"] for state, _ in lm.asked) == sorted(DOCUMENTS)
    assert all(len(questions) == 1 for _, questions in lm.asked)


def test_a_listwise_judge_names_the_alternatives():
    with (
        dspy.context(lm=Decisions(None)),
        pytest.raises(EvidenceError, match=r"ScoreSort\(PointwiseJudge.*MergeSort.*SetwiseJudge"),
    ):
        dr.TopDown(dr.ListwiseJudge())(query="q", documents=DOCUMENTS)


@pytest.mark.parametrize(
    ("judge", "words"),
    [
        (dr.PointwiseJudge(votes=3, temperature=1.0), "votes=3"),
        (dr.PointwiseJudge(evidence="likelihood"), "cannot score a text"),
    ],
)
def test_what_it_cannot_do_is_said_before_anything_is_asked(judge, words):
    lm = Decisions(None)
    with dspy.context(lm=lm), pytest.raises(EvidenceError, match=words):
        dr.ScoreSort(judge)(query="q", documents=DOCUMENTS)
    assert not lm.asked


def test_the_default_reranker_grades():
    lm = Decisions(lambda i, q: distribution(0, 0, 0, 1) if "Paris" in i["passage"]
                   else distribution(1, 0, 0, 0))  # fmt: skip
    assert dr.rerank("capital", DOCUMENTS, lm=lm)[0].text == DOCUMENTS[1]


def test_a_decision_that_is_no_distribution_is_a_counted_unknown():
    with dspy.context(lm=Decisions(lambda i, q: distribution(0.0, 0.0, 0.0, 0.0))):
        ranking = dr.ScoreSort(dr.PointwiseJudge())(query="q", documents=DOCUMENTS).ranking
    assert ranking.unknowns == 3
    assert list(ranking.indices) == [0, 1, 2]


def test_the_extra_inputs_and_demonstrations_reach_the_model():
    judge = dr.PointwiseJudge("query, criteria, passage -> grade: float")
    judge.predict.demos = [{"query": "x", "criteria": "y", "passage": "z", "grade": "3"}]
    lm = Decisions(lambda i, q: distribution(0, 0, 1, 0))
    with dspy.context(lm=lm):
        dr.ScoreSort(judge)(query="q", documents=DOCUMENTS[:1], criteria="recent")
    state = lm.asked[0][0]
    assert state["inputs"]["criteria"] == "recent"
    assert state["demos"] == [{"query": "x", "criteria": "y", "passage": "z", "grade": "3"}]


class Own(dspy.Signature):
    """Which one?"""

    query: str = dspy.InputField()
    passages: str = dspy.InputField()
    best: Literal["first", "second"] = dspy.OutputField(desc="the better one")


def test_options_of_ones_own_are_read_like_answers():
    judge = dr.PairwiseJudge(Own, swap=False)
    found = judge_one(judge, lambda i, q: distribution(first=0.3, second=0.7), ("a", "b"))
    assert (found.best, found.confidence) == (1, pytest.approx(0.7))


def test_options_that_are_no_answers_are_refused():
    signature = Own.with_updated_fields("best", type_=Literal["red", "blue"])
    with pytest.raises(EvidenceError, match="'red' is an option"):
        judge_one(dr.PairwiseJudge(signature), None, ("a", "b"))


@pytest.mark.parametrize(
    ("kind", "said", "score"),
    [
        (Score["bad", "good"], {"probabilities": {"0": 0.25, "1": 0.75}, "confidence": 0.5}, 2.25),
        (Noul, {"noul": 0.75}, 0.75),
        (Choice[("0", "no"), ("3", "yes")],
         {"probabilities": {"0": 0.25, "3": 0.75}, "confidence": 0.9}, 2.25),
    ],
)  # fmt: skip
def test_a_chat_model_states_the_probabilities_of_a_decision_type(kind, said, score):
    signature = YesNo.with_updated_fields("relevant", type_=kind, desc="Is it relevant?")
    lm = scripted_lm(json.dumps({"relevant": said}))
    with dspy.context(lm=lm):
        found = dr.PointwiseJudge(signature)(query="q", passages=["p"]).judgment
    assert found.score == pytest.approx(score)
    assert (found.confidence, found.confidence_source) == (pytest.approx(0.75), "stated")


def test_a_chat_model_that_writes_something_else_is_unknown():
    signature = YesNo.with_updated_fields("relevant", type_=Noul, desc="Is it relevant?")
    with dspy.context(lm=scripted_lm("No idea.")):
        found = dr.PointwiseJudge(signature)(query="q", passages=["p"]).judgment
    assert (found.status, found.score) == ("unknown", None)
    assert found.reason


@pytest.mark.parametrize(
    "kind",
    [
        Score["bad", "good"],
        Noul,
        Noul[(True, "answers it"), (False, "does not")],
        Annotated[bool, Noul[(True, "answers it"),]],
        Choice[("0", "no"), ("3", "yes")],
        Annotated[Literal[0, 3], Choice[(0, "no"), (3, "yes")]],
    ],
)
def test_a_decision_type_is_saved_with_its_criteria_and_its_fit(kind, tmp_path):
    class Mine(dspy.Signature):
        """Judge."""

        query: str = dspy.InputField()
        passage: str = dspy.InputField()
        relevant: kind = dspy.OutputField(desc="Is it relevant?")

    lm = Decisions(lambda i, q: {"noul": 0.3} if q["type"] == "noul"
                   else distribution(**dict.fromkeys(map(str, q["criteria"]), 0.5))
                   if isinstance(q["criteria"], dict) else distribution(0.5, 0.5))  # fmt: skip
    sorter = dr.ScoreSort(dr.PointwiseJudge(Mine))
    loaded = dr.load(dr.save(sorter, tmp_path / "program.json"))
    with dspy.context(lm=lm):
        scores = [r(query="q", documents=["p"]).ranking[0].score for r in (sorter, loaded)]
    assert scores[0] == scores[1]
    assert lm.asked[0] == lm.asked[1]


def test_a_fit_by_dspys_own_reanchor_is_saved_too(tmp_path):
    signature = YesNo.with_updated_fields("relevant", type_=Noul, desc="Is it relevant?")
    sorter = dr.ScoreSort(dr.PointwiseJudge(signature))
    sorter.judge.predict.fields = {"relevant": {"threshold": 0.2}}
    loaded = dr.load(dr.save(sorter, tmp_path / "program.json"))
    with dspy.context(lm=Decisions(lambda i, q: {"noul": 0.2})):
        ranking = loaded(query="q", documents=["p"]).ranking
    assert ranking[0].score == pytest.approx(0.5)
