"""The report beside a compiled program."""

import json
import re
from html import escape

import pytest
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

import dspy_rerank as dr
from dspy_rerank.optimizers import JudgeCompiler, RerankerSearch, write_report
from dspy_rerank.optimizers.proof import _changed
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, skilled

NASTY = '</pre><script src="http://x"></script>'


def reported(folder, script=skilled, **options):
    lm = scripted_lm(script)
    student = dr.ScoreSort(dr.PointwiseJudge())
    search = RerankerSearch(trials=10, demos=(2,), instructions=[MAGIC], lm=lm, **options)
    compiled = search.compile(student, trainset=labelled(8), valset=labelled(8, seed=1))
    test = labelled(8, seed=2)
    found = dr.evaluate({"uncompiled": student, "compiled": compiled}, test, lm=lm)
    page = write_report(folder, student, compiled, found, test)
    return json.loads((folder / "report.json").read_text()), page.read_text()


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    return reported(tmp_path_factory.mktemp("report"))


def test_a_gain_is_said_in_words_with_its_interval(both):
    content, page = both
    better = next(s for s in content["words"] if s.startswith("better than the uncompiled: +"))
    assert better in page
    rows = {row["name"]: row for row in content["test"]["rows"]}
    assert list(rows) == ["incoming order", "uncompiled", "compiled"]
    assert rows["compiled"]["gain_over_uncompiled"]["lo"] > 0


def test_the_winners_curse_is_named(both):
    content, _ = both
    (note,) = [s for s in content["words"] if s.startswith("winner's curse")]
    tried = len(content["card"]["trials"])
    assert f"{tried} settings were compared on 8 queries" in note


def test_no_gain_is_said_in_words(tmp_path):
    content, page = reported(tmp_path, "1")
    assert any(s.startswith("no difference from the uncompiled") for s in content["words"])
    assert "better than" not in page


def test_the_prompt_is_shown_with_what_changed(both):
    content, page = both
    assert MAGIC in content["prompt"]["instructions"]
    assert f"+{MAGIC}" in content["prompt"]["diff"]
    assert f'<span class="add">+{MAGIC}</span>' in page


def test_settings_of_the_judge_are_shown_where_they_changed():
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="logprobs", max_tokens=8))
    compiled = dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood", max_tokens=8), prior=0.15)
    changed = {"prior": [0.0, 0.15], "judge.evidence": ["logprobs", "likelihood"]}
    assert _changed(student, compiled) == changed
    likelihood = dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))
    assert _changed(dr.ScoreSort(dr.PointwiseJudge()), likelihood) == {}


def test_queries_are_listed_with_their_documents_the_most_changed_first(both):
    content, page = both
    gains = [abs(query["gain"]) for query in content["queries"]]
    assert gains == sorted(gains, reverse=True)
    best = content["queries"][0]["documents"]["compiled"][0]
    assert best["grade"] == 3
    assert best["text"] in page
    assert "won, 0 lost" in page


def test_the_cost_of_compiling_and_of_serving_is_shown(both):
    content, page = both
    assert [row["calls"] for row in content["serving"]] == [6000, 6000]
    assert f"{content['card']['spent']['calls']:,}" in page
    assert "unknown" in page


def test_the_page_needs_nothing_beside_itself_and_texts_cannot_break_it(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.optimizers.builders.MAGIC", NASTY)
    lm = scripted_lm(skilled)
    student = dr.ScoreSort(dr.PointwiseJudge(instructions=NASTY))
    compiled = RerankerSearch(trials=3, demos=(2,), instructions=["x"], lm=lm).compile(
        student, trainset=labelled(8), valset=labelled(8, seed=1)
    )
    test = labelled(4, seed=2)
    found = dr.evaluate({"uncompiled": student, "compiled": compiled}, test, lm=lm)
    page = write_report(tmp_path, student, compiled, found, test).read_text()
    assert "<script" not in page
    assert not re.search(r"<(link|img|iframe)\b|\bsrc=\"|url\(|@import", page)
    assert page.count("<svg") == 2


def test_a_judge_by_likelihood_is_compared_with_the_one_that_would_have_been_asked():
    from dspy_rerank.optimizers.proof import _prompts

    student = dr.ScoreSort(dr.PointwiseJudge())
    compiled = dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))
    assert _prompts(student, compiled)["diff"] == []


def test_the_prompts_that_an_optimizer_tried_are_listed_with_their_scores(tmp_path):
    lm = scripted_lm(skilled)
    options = {"max_bootstrapped_demos": 2, "max_labeled_demos": 0, "num_candidate_programs": 1}
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    compiled = JudgeCompiler(BootstrapFewShotWithRandomSearch, options, lm=lm, per_query=4).compile(
        student, trainset=labelled(8), valset=labelled(8, seed=1)
    )
    test = labelled(4, seed=2)
    found = dr.evaluate({"uncompiled": student, "compiled": compiled}, test, lm=lm)
    page = write_report(tmp_path, student, compiled, found, test).read_text()
    tried = json.loads((tmp_path / "report.json").read_text())["card"]["tried"]
    assert tried[0]["demos"] == 0
    assert [each["questions"] for each in tried] == [32] * len(tried)
    assert max(each["value"] for each in tried) == compiled.card["validation"]["compiled"] == 1.0
    assert (
        f"tried {len(tried)} prompts on 32 validation questions; what it returned was kept" in page
    )
    assert page.count("<svg") == 1


def test_answers_that_cannot_be_read_are_said_in_words(tmp_path):
    content, page = reported(tmp_path, "I would rather not.")
    (said,) = [s for s in content["words"] if "of the compiled program, in" in s]
    assert said.startswith("48 questions of the compiled program, in 96 calls, had no answer")
    assert said in page


def test_candidates_that_were_not_tried_are_shown_with_the_reason(tmp_path):
    named = "<likelihood>"
    asks_more = dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))
    content, page = reported(tmp_path, candidates={named: asks_more})
    why = content["card"]["left_out"][named]
    assert f"<td>{escape(named)}</td><td>{escape(why)}</td>" in page


def test_nothing_is_said_where_every_candidate_was_tried(both):
    assert "Not tried" not in both[1]
