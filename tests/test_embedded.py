"""The core end to end on the embedded model: compile, save, load in a new process, rerank."""

import json
import subprocess
import sys

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank import datasets, models

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(not models.available(), reason="the embedded model is not installed"),
]

CHILD = """
import sys, json, dspy_rerank as dr
program = dr.load(sys.argv[1], lm="local/smollm2-135m")
ranking = program(sys.argv[2], json.loads(sys.argv[3])).ranking
print(json.dumps([ranking.indices, ranking.scores, ranking.evidence]))
"""


def test_compile_save_new_process_load_rerank(tmp_path):
    data = datasets.load("ostrel").cut(4)
    search = dr.optimizers.RerankerSearch(
        trials=6, demos=(1,), demo_draws=1, instructions=["A user typed"], max_calls=30,
        lm="local/smollm2-135m",
    )  # fmt: skip
    student = dr.ScoreSort(dr.PointwiseJudge(), prior=0.35, max_passage_tokens=40)
    compiled = search.compile(
        student, trainset=data.part("train")[:6], valset=data.part("validation")[:3]
    )
    assert compiled.card["spent"]["calls"] <= 30
    path = dr.save(compiled, tmp_path / "p.json")
    query, texts = "how do I restore one file", ["Bananas are yellow.", "To restore a file, run x."]
    with dspy.context(lm=models.get("local/smollm2-135m")):
        here = compiled(query, texts).ranking
    out = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), query, json.dumps(texts)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    indices, scores, evidence = json.loads(out.stdout.strip().splitlines()[-1])
    assert indices == here.indices
    assert scores == pytest.approx(here.scores, abs=1e-6)
    assert evidence == "likelihood"


def test_auto_evidence_is_likelihood_on_the_embedded_model():
    with dspy.context(lm=models.get("local/smollm2-135m")):
        ranking = dr.ScoreSort(dr.PointwiseJudge())(
            "what is the capital of france", ["Bananas are yellow.", "Paris is France's capital."]
        ).ranking
    assert ranking.indices == [1, 0]
    assert ranking.evidence == "likelihood"
    assert ranking.usage.prompt_tokens > 0


@pytest.mark.parametrize(
    "build",
    [
        lambda: dr.MergeSort(dr.PairwiseJudge(max_tokens=4)),
        lambda: dr.Survivor(dr.SetwiseJudge(max_tokens=4)),
        lambda: dr.TopDown(dr.ListwiseJudge(max_tokens=30)),
        lambda: dr.ScoreSort(dr.PointwiseJudge(evidence="logprobs", max_tokens=3)),
    ],
)
def test_every_kind_of_judge_runs_on_a_real_model_and_loses_nothing(build):
    texts = ["Bananas are yellow.", "Paris is France's capital.", "Lyon is a city."]
    with dspy.context(lm=models.get("local/smollm2-135m")):
        ranking = build()("what is the capital of france", texts).ranking
    assert sorted(ranking.indices) == [0, 1, 2]
    assert not ranking.degraded
