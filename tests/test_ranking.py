"""What a ranking says of itself."""

import json
import math
import re
from dataclasses import replace

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.testing import scripted_lm

SAID = {"sure": 0.9, "unsure": 0.4, "edge": 0.6}


def judge():
    def say(prompt):
        word = next(word for word in SAID if f"Passage: {word}" in prompt)
        return f"Confidence: {SAID[word]}\nRelevance: {2 if word == 'unsure' else 1}"

    return dr.PointwiseJudge(evidence="stated"), scripted_lm(say)


def ranked(documents=("sure", "unsure", "edge"), **options):
    asked, lm = judge()
    with dspy.context(lm=lm):
        return dr.ScoreSort(asked)("q", list(documents), **options).ranking


def test_low_confidence_is_flagged_below_the_threshold_only():
    ranking = ranked(confidence_threshold=0.6)
    flagged = {item.text: item.low_confidence for item in ranking}
    assert flagged == {"sure": False, "unsure": True, "edge": False}
    assert ranking.low_confidence == [1]


def test_a_flag_neither_drops_nor_moves_anything():
    plain, flagged = ranked(), ranked(confidence_threshold=1.0)
    assert flagged.indices == plain.indices == [1, 0, 2]
    assert flagged.scores == plain.scores
    assert len(flagged) == 3


def test_without_a_threshold_nothing_is_flagged():
    assert not any(item.low_confidence for item in ranked())
    assert ranked().confidence_threshold is None


def test_an_unknown_confidence_is_not_a_low_one():
    lm = scripted_lm("2")
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge())("q", ["x", "y"], confidence_threshold=1.0)
    assert [(i.confidence, i.low_confidence) for i in ranking.ranking] == [(None, False)] * 2


def test_the_flag_shows_in_every_form():
    ranking = ranked(confidence_threshold=0.6)
    rows = json.loads(json.dumps(ranking.to_dict()))
    assert [row["low_confidence"] for row in rows["ranking"]] == [True, False, False]
    assert rows["confidence_threshold"] == 0.6
    table = str(ranking).splitlines()
    assert "2.000?" in table[1]
    assert "1 with confidence below 0.6 (?)" in table[-1]
    assert "<td>2.000?</td>" in ranking._repr_html_()


def test_the_flag_shows_in_a_data_frame():
    pytest.importorskip("pandas", reason="pandas is not installed")
    rows = ranked(confidence_threshold=0.6).to_pandas()
    assert list(rows["low_confidence"]) == [True, False, False]


def test_a_notebook_shows_each_confidence_and_where_it_comes_from():
    shown = ranked()._repr_html_()
    assert "<th>confidence</th>" in shown
    cells = re.findall(r'<td title="confidence_source: (\w+)">([^<]*)</td>', shown)
    assert cells == [("stated", "0.40"), ("stated", "0.90"), ("stated", "0.60")]


def test_a_notebook_shows_that_a_confidence_is_unknown():
    lm = scripted_lm("2")
    with dspy.context(lm=lm):
        shown = dr.ScoreSort(dr.PointwiseJudge())("q", ["x"]).ranking._repr_html_()
    assert '<td title="confidence_source: none">-</td>' in shown


def test_a_notebook_shows_texts_and_does_not_run_them():
    judge = dr.FunctionJudge(lambda query, passages: 1.0, "pointwise")
    text = "<script>alert(1)</script>"
    shown = dr.ScoreSort(judge)("q", [dr.Document(text, id="<b>")]).ranking._repr_html_()
    assert "[&lt;b&gt;] &lt;script&gt;" in shown
    assert "<script" not in shown


@pytest.mark.parametrize(
    ("cost", "shown"),
    [(0.0, "$0,"), (3.21e-05, "$0.000032,"), (0.0123456, "$0.0123,"), (12, "$12.0")],
)
def test_the_bill_keeps_the_figures_that_count(cost, shown):
    assert shown in replace(ranked(), usage=dr.Usage(calls=1, cost=cost)).summary()


@pytest.mark.parametrize(
    ("used", "said"),
    [
        (dr.Usage(calls=1, rounds=1, prompt_tokens=1), "1 call (0 cached), 1 round; 1 token, "),
        (dr.Usage(calls=2, rounds=0), "2 calls (0 cached), 0 rounds; 0 tokens, "),
        (dr.Usage(calls=1, failed_calls=1), "; 1 failed try"),
    ],
)
def test_one_is_not_several(used, said):
    assert said in f"{replace(ranked(), usage=used).summary()};"


def test_what_was_not_asked_is_told_apart_wherever_a_ranking_shows():
    ranking = ranked(max_calls=1)
    told = ranking.to_dict()
    assert (told["unknowns"], told["unasked"], told["cut_short"]) == (2, 2, 0)
    for shown in (str(ranking), repr(ranking), ranking._repr_html_()):
        assert "2 unknown (2 not asked)" in shown


def test_evidence_that_was_asked_for_and_not_given_is_told_once():
    with dspy.context(lm=scripted_lm("2")):
        asked = dr.ScoreSort(dr.PointwiseJudge(evidence="logprobs"))("q", ["a", "b"]).ranking
        auto = dr.ScoreSort(dr.PointwiseJudge())("q", ["a", "b"]).ranking
    (note,) = asked.notes
    assert note.startswith("evidence='logprobs', but 2 of 2 answers have none: ")
    assert asked.summary().count(note) == 1
    assert asked.to_dict()["notes"] == [note]
    assert (asked.degraded, asked.reasons, auto.notes) == (False, (), ())


def test_evidence_that_was_given_needs_no_note():
    lm = scripted_lm("2", logprobs={"2": math.log(0.9), "1": math.log(0.1)})
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge(evidence="logprobs"))("q", ["a", "b"]).ranking
    assert ranking.notes == ()


@pytest.mark.parametrize("failed", [0, 3])
def test_failed_tries_are_told(failed):
    shown = replace(ranked(), usage=dr.Usage(calls=1, failed_calls=failed)).summary()
    assert ("3 failed tries" in shown) is bool(failed)


def test_the_threshold_is_kept_in_a_saved_program(tmp_path):
    asked, lm = judge()
    path = dr.save(dr.ScoreSort(asked, confidence_threshold=0.6), tmp_path / "program.json")
    with dspy.context(lm=lm):
        assert dr.load(path)("q", ["unsure", "sure"]).ranking.low_confidence == [0]


def test_a_degraded_ranking_has_no_confidence_to_be_low():
    lm = scripted_lm([RuntimeError("down")])
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge(), error_retries=0)(
            "q", ["x", "y"], confidence_threshold=1.0
        ).ranking
    assert ranking.degraded
    assert ranking.low_confidence == []


@pytest.mark.parametrize("threshold", [-0.1, 1.1, math.nan, "0.5", True])
def test_a_threshold_that_cannot_be(threshold):
    with pytest.raises(InputError, match="confidence_threshold"):
        dr.ScoreSort(dr.PointwiseJudge(), confidence_threshold=threshold)


def listed(said):
    with dspy.context(lm=scripted_lm(said)):
        return dr.SlidingWindow(dr.ListwiseJudge())("q", ["a", "b", "c"]).ranking


@pytest.mark.parametrize(
    ("said", "repaired", "why"),
    [
        ("[3] > [1] > [2]", 0, ""),
        ("[3] > [1]", 1, "1 of 3 passages left out"),
        ("[3] > [1] > [3] > [2]", 1, "a passage named twice"),
        ("[7] > [3] > [1] > [2]", 1, "not shown: 7"),
        ("no idea", 0, "no list of passages in 'no idea'"),
    ],
)
def test_answers_that_were_repaired_are_counted_wherever_a_ranking_shows(said, repaired, why):
    ranking = listed(said)
    assert (ranking.repaired, ranking.judgments[0].reason) == (repaired, why)
    assert ranking.to_dict()["repaired"] == repaired
    for shown in (ranking.summary(), str(ranking), ranking._repr_html_(), repr(ranking)):
        assert ("1 repaired" in shown) is bool(repaired)
        assert "0 repaired" not in shown
