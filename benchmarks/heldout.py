"""What a compiled weighing gains on all queries of ostrel, each held out of its own compiling.

    python benchmarks/heldout.py [optimizers/programs/weights.json] [--lm local/smollm2-135m]

Of the training and validation queries the program's card keeps what they had in the outer
cross-validation, where each was ranked by weights chosen and fitted without it; the test queries
are ranked by the program itself.
"""

import argparse
from pathlib import Path
from statistics import fmean

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.evaluation import baseline
from dspy_rerank.optimizers.splits import joined
from dspy_rerank.stats import paired_interval

METRIC = "nDCG@10"
PROGRAM = Path(__file__).parents[1] / "optimizers" / "programs" / "weights.json"


def main() -> None:
    """Print the gains over the uncompiled program and over the incoming order."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("program", nargs="?", default=str(PROGRAM))
    options.add_argument("--lm", default="local/smollm2-135m")
    chosen = options.parse_args()
    program, lm = dr.load(chosen.program), dr.models.get(chosen.lm)
    data = datasets.load("ostrel")
    learned, test = joined(data.part("train"), data.part("validation")), data.part("test")
    checked = program.card["cross_validation"]["values"]
    if program.card["train"]["fingerprint"] != learned.fingerprint:
        raise SystemExit(f"{chosen.program} was not compiled on ostrel's own splits")
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))
    before = dr.evaluate(student, learned, [METRIC], lm=lm)["reranker"].values[METRIC]
    after = dr.evaluate({"before": student, "after": program}, test, [METRIC], lm=lm)
    compiled = [*checked, *after["after"].values[METRIC]]
    uncompiled = [*before, *after["before"].values[METRIC]]
    incoming = [*baseline(learned, [METRIC]).values[METRIC], *after.rows[0].values[METRIC]]
    print(f"compiled {fmean(compiled):.4f}, uncompiled {fmean(uncompiled):.4f}, incoming order "
          f"{fmean(incoming):.4f}")  # fmt: skip
    print(f"over uncompiled        {paired_interval(compiled, uncompiled)}")
    print(f"over the incoming order {paired_interval(compiled, incoming)}")
    print(f"test queries only, over uncompiled {after.gain(METRIC, 'after', 'before')}")


if __name__ == "__main__":
    main()
