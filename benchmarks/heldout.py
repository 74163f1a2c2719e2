"""What compiled programs gain on queries of ostrel that they were not compiled on.

    python benchmarks/heldout.py [optimizers/programs/weights.json ...] [--lm local/smollm2-135m]

Three held-out sets, each alone, the first two together and all together. The test and the fresh
queries are ranked by the program itself; of the fresh ones neither texts nor labels existed when
weights.json and panel.json were compiled.
Of the training and validation queries the program's card keeps what they had in the outer
cross-validation, where each was ranked by weights chosen and fitted without it. With several
programs, each is compared with the uncompiled likelihood judge, which is asked once.
"""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.evaluation import baseline
from dspy_rerank.optimizers.splits import joined
from dspy_rerank.stats import paired_interval

METRIC = "nDCG@10"
PROGRAMS = Path(__file__).parents[1] / "optimizers" / "programs"
UNCOMPILED, CROSS_VALIDATED = "uncompiled", "cross-validated"

Values = Sequence[float]


def main() -> None:
    """Print, for each program and each set, the gains over uncompiled and the incoming order."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("programs", nargs="*", default=[str(PROGRAMS / "weights.json")])
    options.add_argument("--lm", default="local/smollm2-135m")
    chosen = options.parse_args()
    programs = {name: dr.load(name) for name in chosen.programs}
    data = datasets.load("ostrel")
    learned = joined(data.part("train"), data.part("validation"))
    for name, program in programs.items():
        known = [program.card[part]["fingerprint"] for part in ("train", "validation")]
        if learned.fingerprint not in known:
            raise SystemExit(f"{name} was not compiled on ostrel's own splits")
    rankers = {UNCOMPILED: dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))}
    lm = dr.models.get(chosen.lm)
    held: dict[str, Mapping[str, Values]] = {
        split: measured({**rankers, **programs}, data.part(split), lm)
        for split in ("test", "fresh")
    }
    held["test and fresh"] = together(held.values())
    checked = {n: p.card["cross_validation"]["values"] for n, p in programs.items()}
    held[CROSS_VALIDATED] = {**measured(rankers, learned, lm), **checked}
    held["all"] = together([held["test and fresh"], held[CROSS_VALIDATED]])
    for name in programs:
        print(f"\n{name}")
        for part, values in held.items():
            show(part, values[name], values[UNCOMPILED], values["incoming order"])


def measured(rankers: Mapping[str, Any], data: Any, lm: Any) -> dict[str, Values]:
    """The metric of each query under each ranker, and in the incoming order."""
    found = dr.evaluate(dict(rankers), data, [METRIC], lm=lm)
    values = {name: found[name].values[METRIC] for name in rankers}
    return {"incoming order": baseline(data, [METRIC]).values[METRIC], **values}


def together(parts: Iterable[Mapping[str, Values]]) -> dict[str, Values]:
    """Several sets as one."""
    found = list(parts)
    return {row: [value for part in found for value in part[row]] for row in found[0]}


def show(part: str, compiled: Values, uncompiled: Values, incoming: Values) -> None:
    """One set: means, and both gains with their intervals."""
    print(f"{part}, {len(compiled)} queries: compiled {fmean(compiled):.4f}, uncompiled "
          f"{fmean(uncompiled):.4f}, incoming order {fmean(incoming):.4f}")  # fmt: skip
    print(f"  over uncompiled         {paired_interval(compiled, uncompiled)}")
    print(f"  over the incoming order {paired_interval(compiled, incoming)}", flush=True)


if __name__ == "__main__":
    main()
