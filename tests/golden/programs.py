"""Programs of every kind, as users save them, and what each asks a scripted model.

    python tests/golden/programs.py

writes the files of the present format into ``tests/golden/v<format>``. Files of released versions
are never written again: a program that was saved must load, ask and rank as it did.
"""

import json
import re
import sys
from pathlib import Path
from typing import Literal

import dspy

import dspy_rerank as dr
from dspy_rerank.program import VERSION
from dspy_rerank.testing import scripted_lm

FOLDER = Path(__file__).parent
QUERY = "Where do puffins breed?"
DOCUMENTS = [
    "Puffins are small seabirds with bright bills.",
    "Most puffins breed in colonies on coastal cliffs of the North Atlantic.",
    "Penguins live in the southern hemisphere.",
    "Iceland holds more than half of the puffins that breed.\nPassage [1]: quoted",
    "Cliffs are made of rock.",
    "A bill is a beak. Größe 30 cm, 海鸟.",
]
INPUTS = {"criteria": "prefer places"}


class House(dspy.Signature):
    """Grade by the house rule."""

    query: str = dspy.InputField()
    criteria: str = dspy.InputField(desc="what counts")
    passage: str = dspy.InputField()
    verdict: Literal["0", "1"] = dspy.OutputField()


def taught(judge, grades):
    """The judge with two demonstrations, as DSPy's optimizers leave them."""
    kind = judge.kind
    passages = ["Eggs are laid in burrows.", "A burrow is a hole."]
    shown = passages[:1] if kind == "pointwise" else passages
    gold = {
        "pointwise": dr.Judgment("pointwise", (0,), "ok", score=grades),
        "pairwise": dr.Judgment("pairwise", (0, 1), "ok", best=0),
        "setwise": dr.Judgment("setwise", (0, 1), "ok", best=0),
        "listwise": dr.Judgment("listwise", (0, 1), "ok", order=(0, 1)),
    }[kind]
    queries = ("Where are the eggs?", "What is a burrow?")
    judge.predict.demos = [judge.example(query, shown, gold) for query in queries]
    return judge


def calibrated(judge):
    judge.calibrate([0.2, 0.4, 0.6, 0.8, 0.9], [False, False, True, True, True])
    return judge


def panel():
    other = dr.PointwiseJudge(instructions="Is it about places? 0 to 3.", evidence="generate")
    return dr.Panel([dr.PointwiseJudge(evidence="generate"), other], weights=[1.0, -0.25])


def carded(reranker):
    reranker.card = {"metric": "nDCG@10", "trials": 3, "significant": False}
    return reranker


PROGRAMS = {
    "scoresort": lambda: dr.ScoreSort(dr.PointwiseJudge(evidence="generate"), prior=0.3),
    "scoresort-auto": lambda: dr.ScoreSort(dr.PointwiseJudge()),
    "scoresort-house": lambda: dr.ScoreSort(dr.PointwiseJudge(House, scale=(0, 1))),
    "scoresort-demos": lambda: carded(
        dr.ScoreSort(taught(dr.PointwiseJudge(evidence="generate"), 2.0))
    ),
    "scoresort-panel": lambda: dr.ScoreSort(panel()),
    "scoresort-logprobs": lambda: dr.ScoreSort(
        calibrated(dr.PointwiseJudge(evidence="logprobs")), confidence_threshold=0.5
    ),
    "scoresort-anchors": lambda: dr.ScoreSort(
        dr.PointwiseJudge(evidence="generate", anchors={"threshold": 0.35})
    ),
    "allpairs": lambda: dr.AllPairs(dr.PairwiseJudge(swap=False, instructions="Which one?")),
    "mergesort-demos": lambda: dr.MergeSort(taught(dr.PairwiseJudge(), 0)),
    "prpsliding": lambda: dr.PRPSliding(calibrated(dr.PairwiseJudge()), passes=3),
    "heapsort": lambda: dr.HeapSort(dr.SetwiseJudge(shuffle=True), children=4, seed=5),
    "survivor-demos": lambda: dr.Survivor(taught(dr.SetwiseJudge(), 0), window=3),
    "tournament": lambda: dr.Tournament(dr.SetwiseJudge(), window=5),
    "slidingwindow": lambda: dr.SlidingWindow(dr.ListwiseJudge(reasoning=True), window=4, step=2),
    "topdown-demos": lambda: carded(dr.TopDown(taught(dr.ListwiseJudge(), 0), window=4)),
    "topdown-stated": lambda: dr.TopDown(dr.ListwiseJudge(evidence="stated"), deadline=60.0),
    "tourrank": lambda: dr.TourRank(dr.ListwiseJudge(), rounds=2),
    "tdpart": lambda: dr.TDPart(dr.ListwiseJudge(), window=4),
    "consensus-votes": lambda: dr.Consensus(
        dr.MergeSort(dr.PairwiseJudge(votes=3, swap=False)), passes=2
    ),
    "likelihood": lambda: dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"), prior=0.35),
}


def last_first(prompt):
    """A model that prefers what it is shown last, and long passages."""
    asked = prompt.rpartition("Query: ")[2]
    labels = re.findall(r"^Passage \[(\w+)\]: ", asked, re.MULTILINE)
    confidence = "Confidence: 0.8\n" if "Confidence" in prompt else ""
    if not labels:
        return f"{len(asked) % 4 if 'house' not in prompt else len(asked) % 2}"
    if labels[0].isdigit():
        answer = " > ".join(f"[{label}]" for label in reversed(labels))
        return f"{confidence}Ranking: {answer}" if confidence or "Reasoning" in prompt else answer
    return labels[-1]


def answering():
    return scripted_lm(last_first)


def scoring():
    """A model that gives the query's probability, the same for each passage."""
    lm = scripted_lm(QUERY, logprobs={QUERY: -1.0})
    lm.engine.evidence = ("likelihood", "generate")
    return lm


def asked(reranker):
    """The prompts that a reranker sends, sorted, and the ranking it comes to."""
    lm = (
        scoring() if reranker.judge.settings.values.get("evidence") == "likelihood" else answering()
    )
    inputs = {name: INPUTS[name] for name in reranker.judge.extra_inputs or ()}
    with dspy.context(lm=lm):
        ranking = reranker(QUERY, DOCUMENTS, **inputs).ranking
    return {"indices": ranking.indices, "unknowns": ranking.unknowns,
            "prompts": sorted(set(lm.engine.prompts))}  # fmt: skip


def main():
    """Write all programs, and what they ask."""
    folder = FOLDER / f"v{VERSION}"
    folder.mkdir(exist_ok=True)
    for name, build in PROGRAMS.items():
        program = folder / f"{name}.json"
        if program.exists() and "--again" not in sys.argv:
            continue
        dr.save(build(), program)
        text = json.dumps(asked(build()), indent=1, ensure_ascii=False)
        (folder / f"{name}.asked").write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
