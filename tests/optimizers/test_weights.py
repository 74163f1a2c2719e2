"""Weights of judges and of the first stage, fitted to labels."""

import random

import dspy
import numpy as np
import pytest

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.errors import InputError, ModelError
from dspy_rerank.optimizers import WeightCompiler, write_report
from dspy_rerank.optimizers.crossval import best_of, folds, told
from dspy_rerank.optimizers.weighing import Pairs, fitted
from dspy_rerank.testing import scripted_lm


def noisy(queries, seed, *, rank=0.0, sizes=8):
    """Texts that say two noisy readings of their grade; better ones come earlier by ``rank``."""
    rng = random.Random(seed)
    examples = []
    for q in range(queries):
        grades = [rng.randrange(4) for _ in range(sizes)]
        grades.sort(key=lambda g: rng.gauss(-rank * g, 1))
        texts = [
            f"{seed}-{q}-{i} a={g + rng.gauss(0, 2):.3f} b={g + rng.gauss(0, 2):.3f}"
            for i, g in enumerate(grades)
        ]
        examples.append(dspy.Example(query=f"query {seed}-{q}", documents=texts, relevance=grades))
    return datasets.from_examples(examples)


def reading(name):
    def read(query, passages):
        return float(passages[0].split(f"{name}=")[1].split()[0])

    read.__name__ = name
    return dr.FunctionJudge(read, "pointwise")


def panel(weights=(1, 0)):
    return dr.ScoreSort(dr.Panel([reading("a"), reading("b")], weights=weights))


LM = scripted_lm("unused")


def test_a_second_judge_is_taken_in_and_helps_on_queries_never_seen():
    student = panel()
    compiled = WeightCompiler(lm=LM).compile(student, trainset=noisy(40, 0), valset=noisy(20, 1))
    first, second = compiled.judge.settings["weights"]
    assert 0.3 < second / first < 1.6
    assert compiled.card["chosen"]["kept"]
    rows = {"student": student, "compiled": compiled}
    found = dr.evaluate(rows, noisy(80, 2), lm=LM)
    assert found.gain("nDCG@10", "compiled", "student").significant


def test_the_first_stage_is_weighed_on_the_judges_own_scale():
    student = dr.ScoreSort(reading("a"))
    data = noisy(60, 0, rank=1.0)
    compiled = WeightCompiler(lm=LM).compile(student, trainset=data)
    assert 0 < compiled.settings["prior"] < 1
    assert compiled.settings["prior_spread"] == pytest.approx(2.3, abs=0.4)
    rows = {"student": student, "compiled": compiled}
    found = dr.evaluate(rows, noisy(80, 2, rank=1.0), lm=LM)
    assert found.gain("nDCG@10", "compiled", "student").significant


def test_the_compiled_program_ranks_as_the_fit_did():
    data = noisy(30, 0, rank=1.0)
    compiled = WeightCompiler(lm=LM, sure=0).compile(panel(), trainset=data)
    best = max(p["value"] for p in compiled.card["penalties"])
    measured = dr.evaluate(compiled, data, lm=LM)["reranker"].mean("nDCG@10").mean
    assert measured == pytest.approx(best, abs=0.03)


def test_judges_of_no_use_leave_the_student_as_it_is():
    kept = 0
    for seed in range(10):
        rng = random.Random(seed)
        noise = dr.FunctionJudge(lambda q, p, rng=rng: rng.random(), "pointwise")
        student = dr.ScoreSort(dr.Panel([reading("a"), noise], weights=[1, 0]))
        compiled = WeightCompiler(lm=LM).compile(student, trainset=noisy(15, seed))
        kept += compiled.card["chosen"]["kept"]
        if not compiled.card["chosen"]["kept"]:
            assert compiled.judge.settings["weights"] == [1, 0]
            assert (
                "student" in compiled.card["chosen"]["why"]
                or "left out" in (compiled.card["chosen"]["why"])
            )
    assert kept <= 3


def test_every_judge_is_asked_about_every_candidate_once_and_the_budget_holds():
    lm = scripted_lm(lambda prompt: str(len(prompt) % 4))
    student = dr.ScoreSort(dr.Panel([
        dr.PointwiseJudge(evidence="generate"),
        dr.PointwiseJudge(evidence="generate", instructions="Is it so?"),
    ], weights=[1, 0]))  # fmt: skip
    data = noisy(6, 0)
    compiled = WeightCompiler(lm=lm, max_calls=96).compile(student, trainset=data)
    assert len(lm.engine.prompts) == compiled.card["spent"]["calls"] == 96
    with pytest.raises(InputError, match="take 96 calls, max_calls is 95"):
        WeightCompiler(lm=lm, max_calls=95).compile(student, trainset=data)
    assert len(lm.engine.prompts) == 96


def test_asking_again_stays_within_the_budget_and_leaves_queries_out():
    lm = scripted_lm(lambda prompt: "what?" if "0-1-3" in prompt else str(len(prompt) % 4))
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    compiled = WeightCompiler(lm=lm, max_calls=48).compile(student, trainset=noisy(6, 0))
    assert len(lm.engine.prompts) == 48
    assert compiled.card["degraded"] == 1


def test_same_seed_same_program(tmp_path):
    def compiled():
        student = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
        lm = scripted_lm(lambda prompt: prompt.rsplit("=", 1)[1][0].replace("-", "0"))
        program = WeightCompiler(lm=lm).compile(student, trainset=noisy(12, 0, rank=1.0))
        return dr.save(program, tmp_path / "p.json").read_bytes()

    assert compiled() == compiled()


def test_a_compiled_panel_is_saved_with_its_spread(tmp_path):
    lm = scripted_lm(lambda prompt: prompt.rsplit("=", 1)[1][0].replace("-", "0"))
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    program = WeightCompiler(lm=lm, sure=0).compile(student, trainset=noisy(12, 0, rank=2.0))
    loaded = dr.load(dr.save(program, tmp_path / "p.json"))
    assert loaded.settings["prior_spread"] == program.settings["prior_spread"]


def test_a_report_shows_the_weights(tmp_path):
    student = panel()
    compiled = WeightCompiler(lm=LM).compile(student, trainset=noisy(40, 0))
    test = noisy(20, 2)
    found = dr.evaluate({"uncompiled": student, "compiled": compiled}, test, lm=LM)
    page = write_report(tmp_path, student, compiled, found, test).read_text()
    assert "<h2>Weights</h2>" in page
    assert "FunctionJudge(b" in page
    assert "queries. Chosen again with a tenth of them left out" in page


@pytest.mark.parametrize(
    ("student", "says"),
    [
        (dr.MergeSort(dr.PairwiseJudge()), "expected ScoreSort"),
        (dr.TopDown(dr.ListwiseJudge()), "expected ScoreSort"),
    ],
)
def test_what_has_no_scores_cannot_be_weighed(student, says):
    with pytest.raises(InputError, match=says):
        WeightCompiler(lm=LM).compile(student, trainset=noisy(4, 0))


def test_too_few_queries_and_a_failing_model_say_so():
    with pytest.raises(InputError, match="2 or more"):
        WeightCompiler(lm=LM).compile(panel(), trainset=noisy(1, 0))
    with pytest.raises(InputError, match="above 0"):
        WeightCompiler(penalties=(0.0,))
    failing = scripted_lm([dspy.lm15.InvalidRequestError("no")])
    with pytest.raises(ModelError, match="failed on 4 of 4"):
        WeightCompiler(lm=failing).compile(
            dr.ScoreSort(dr.PointwiseJudge(evidence="generate")), trainset=noisy(4, 0)
        )


def test_a_fit_goes_from_the_start_to_the_labels_as_the_penalty_falls():
    rng = np.random.default_rng(0)
    gaps = rng.normal(size=(400, 2))
    gaps = np.where((gaps @ [1.0, 1.0] > 0)[:, None], gaps, -gaps)
    pairs, start = [Pairs(gaps, np.full(400, 1 / 400))], np.array([1.0, 0.0])
    shares = [w[1] / w[0] for w in (fitted(pairs, start, p) for p in (100.0, 0.1, 0.001))]
    assert shares == sorted(shares)
    assert shares[0] < 0.05
    assert shares[-1] == pytest.approx(1.0, abs=0.1)


def test_the_simplest_within_a_standard_error_is_taken():
    rng = np.random.default_rng(1)
    base = rng.normal(size=50)
    better, best = base + 0.5, base + 0.5 + rng.normal(0.01, 0.2, 50)
    assert best_of(np.array([base, better, best]), 1.0) == 1
    assert best_of(np.array([base, better, best]), 0.0) == (2 if best.mean() > better.mean() else 1)
    assert best_of(np.array([base, base + rng.normal(0, 1, 50)]), 2.0) == 0


def test_folds_hold_every_query_once():
    parts = folds(23, 10, seed=3)
    assert sorted(place for part in parts for place in part) == list(range(23))
    assert {len(part) for part in parts} == {2, 3}
    with pytest.raises(InputError, match="2 or more"):
        folds(1, 10, seed=0)


def test_a_gain_within_the_error_is_not_worth_it():
    before = np.zeros(20)
    noise = np.random.default_rng(0).normal(0, 1, 20)
    assert not told(noise - noise.mean() + 0.1, before, 0.5, 0).worth_it(1.0)
    assert told(noise - noise.mean() + 0.9, before, 0.5, 0).worth_it(1.0)
    assert not told(before, before, 0.0, 0).worth_it(0.0)
