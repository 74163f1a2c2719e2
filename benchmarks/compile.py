"""Judge-level compiling against the same DSPy optimizer run end to end on the sorter.

    python benchmarks/compile.py [--seeds 10] [--optimizer fewshot|mipro|gepa]
    python benchmarks/compile.py --lm local/smollm2-135m [--queries 12]

Both start from the same reranker (a merge sort over a pairwise judge), the same labelled queries
and the same scripted model, which errs on 40% of its judgments; ten points less for every right
demonstration in its prompt, ten more for every wrong one, and 25 less when told the rule. The
model that writes instructions finds the rule in three proposals of ten, whatever it is told, so
nothing is gained here by better feedback. End to end the metric is nDCG@10 of whole rankings with
its threshold, and raw demonstrations (which would never be shown) are switched off. "Distinct" are
the calls that a cache would not have answered; rows "equal calls" use as many training and
validation queries as fit into the calls that ours took, where repeated prompts of theirs cost
nothing; rows "all queries" use all of them, as ours does.

With ``--lm`` a real model ranks ostrel by likelihood: weights compiled on so many training and as
many validation queries, against DSPy's random search over whole rankings in the same calls, both
measured on the test queries.
"""

import argparse
import hashlib
import json
import random
import re
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

import dspy
from dspy.teleprompt import BootstrapFewShotWithRandomSearch

sys.path.insert(0, str(Path(__file__).parents[1]))

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.metrics import RankingMetric
from dspy_rerank.optimizers import JudgeCompiler, WeightCompiler
from dspy_rerank.optimizers.running import CallCounter, quiet
from dspy_rerank.stats import paired_interval
from dspy_rerank.testing import scripted_lm

RULE = "Newer is better."
DOCUMENTS = 6
FIELD = re.compile(r"\[\[ ## (\w+) ## \]\]")
SHOWN = re.compile(r"Passage \[A\]: .*?worth (\d)\nPassage \[B\]: .*?worth (\d)(?:\n(A|B|Tie)\b)?")


class Outcome(NamedTuple):
    """One run: nDCG@10 for each test query, calls while compiling, and those of new prompts."""

    values: tuple[float, ...]
    calls: int
    distinct: int


def labelled(queries: int, seed: int) -> Any:
    """Queries whose documents say their grade to the script."""
    rng = random.Random(seed)
    examples = []
    for q in range(queries):
        grades = [rng.randrange(4) for _ in range(DOCUMENTS)]
        texts = [f"text {seed}-{q}-{i} worth {grade}" for i, grade in enumerate(grades)]
        examples.append(dspy.Example(query=f"query {seed}-{q}", documents=texts, relevance=grades))
    return datasets.from_examples(examples)


def chance(*parts: Any) -> float:
    """A number in [0, 1) that depends on the parts only."""
    text = "\x1f".join(map(str, parts))
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6]) / 2**48


def judge(seed: int) -> Callable[[str], str]:
    """The model that answers; how often it errs can be seen in its prompt."""

    def answer(prompt: str) -> str:
        *demos, (a, b, _) = SHOWN.findall(prompt)
        right = sum(said == best(x, y) for x, y, said in demos)
        error = 0.4 - 0.1 * right + 0.1 * (len(demos) - right) - 0.25 * (RULE in prompt)
        if chance(seed, prompt) < max(0.02, error):
            return "A" if best(a, b) == "B" else "B"
        return best(a, b)

    return answer


def best(a: str, b: str) -> str:
    """The right answer."""
    return "Tie" if a == b else "A" if a > b else "B"


def writer(seed: int) -> dspy.LM:
    """The model that writes instructions."""

    def answer(prompt: str) -> str:
        text = RULE if chance(seed, prompt) < 0.3 else f"Be careful. ({chance(prompt):.3f})"
        text = f"Answer A, B or Tie. {text}"
        if "JSON object in the following order" in prompt:
            return json.dumps({"new_instruction": text})
        asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
        names = dict.fromkeys(FIELD.findall(asked)) or ["instruction"]
        return "\n\n".join(f"[[ ## {name} ## ]]\n{text}" for name in names)

    return scripted_lm(answer, model="scripted/writer")


def fewshot(metric: Any, seed: int) -> Any:
    """Demonstrations by random search."""
    return BootstrapFewShotWithRandomSearch(
        metric=metric, max_bootstrapped_demos=3, max_labeled_demos=0, num_candidate_programs=4,
        num_threads=2,
    )  # fmt: skip


def mipro(metric: Any, seed: int) -> Any:
    """Instructions and demonstrations together."""
    return dspy.MIPROv2(
        metric=metric, prompt_model=writer(seed), auto=None, num_candidates=4, seed=seed,
        max_bootstrapped_demos=3, max_labeled_demos=0, num_threads=2,
    )  # fmt: skip


def gepa(metric: Any, seed: int, calls: int = 340) -> Any:
    """Instructions by reflection; ``calls`` of the metric.

    The first 60 go into the student on the validation questions, and a proposal that passes its
    three questions takes 60 more: with 160 calls one seed in six never saw a good proposal.
    """
    return dspy.GEPA(
        metric=metric, reflection_lm=writer(seed), max_metric_calls=calls, seed=seed, num_threads=2
    )


OPTIMIZERS = {"fewshot": fewshot, "mipro": mipro, "gepa": gepa}
ARGUMENTS: dict[str, dict[str, Any]] = {"mipro": {"num_trials": 8, "minibatch": False}}


def student() -> dr.Reranker:
    """What both start from."""
    return dr.MergeSort(dr.PairwiseJudge(evidence="generate"))


def tested(program: dr.Reranker, seed: int) -> tuple[float, ...]:
    """nDCG@10 on queries that nobody has seen."""
    row = dr.evaluate(program, labelled(24, 1000 + seed), lm=scripted_lm(judge(seed + 500)))
    return row["reranker"].values["nDCG@10"]


def outcome(program: Any, seed: int, lm: Any, calls: int) -> Outcome:
    """A compiled program on the test queries, and what compiling it took."""
    prompts = lm.engine.prompts
    return Outcome(tested(program, seed), calls, calls - len(prompts) + len(set(prompts)))


def ours(name: str, seed: int) -> Outcome:
    """The optimizer on single questions."""
    lm = scripted_lm(judge(seed))
    compiler = JudgeCompiler(
        lambda metric: OPTIMIZERS[name](metric, seed), arguments=ARGUMENTS.get(name), lm=lm,
        per_query=6, seed=seed,
    )  # fmt: skip
    program = compiler.compile(
        student(), trainset=labelled(10, seed), valset=labelled(10, 100 + seed)
    )
    return outcome(program, seed, lm, program.card["spent"]["calls"])


def end_to_end(name: str, seed: int, queries: int) -> Outcome:
    """The optimizer on whole rankings, of so many training and validation queries."""
    counter, lm = CallCounter(), scripted_lm(judge(seed))
    with dspy.context(lm=lm), quiet():
        optimizer = OPTIMIZERS[name](RankingMetric("nDCG@10"), seed)
    if name == "gepa":  # a call of the metric is a whole ranking here
        optimizer.max_metric_calls = 8 * queries
    train, val = (labelled(10, s)[:queries].to_examples() for s in (seed, 100 + seed))
    given = {"trainset": train, "valset": val, **ARGUMENTS.get(name, {})}
    with dspy.context(lm=lm, callbacks=[counter]), quiet():
        program = optimizer.compile(student(), **given)
    return outcome(program, seed, lm, counter.calls)


def within(name: str, seed: int, calls: int) -> Outcome:
    """End to end with as many queries as fit into a number of calls; with one at least."""
    found = end_to_end(name, seed, 1)
    for queries in range(2, 11):
        larger = end_to_end(name, seed, queries)
        if larger.distinct > calls:
            break
        found = larger
    return found


def measured(name: str, seeds: range) -> dict[str, list[Outcome]]:
    """All rows for one optimizer."""
    rows: dict[str, list[Outcome]] = {
        "uncompiled": [Outcome(tested(student(), seed), 0, 0) for seed in seeds],
        "ours, single questions": [ours(name, seed) for seed in seeds],
    }
    own = rows["ours, single questions"]
    rows["end to end, equal calls"] = [
        within(name, seed, one.calls) for seed, one in zip(seeds, own, strict=True)
    ]
    rows["end to end, all queries"] = [end_to_end(name, seed, 10) for seed in seeds]
    return rows


def cells(name: str, rows: dict[str, list[Outcome]]) -> list[str]:
    """Lines of the table; the difference is paired by query over all seeds."""
    mine = [value for one in rows["ours, single questions"] for value in one.values]
    lines = []
    for row, outcomes in rows.items():
        values = [value for one in outcomes for value in one.values]
        gain = paired_interval(mine, values)
        lead = "" if values is mine or row.startswith("ours") else (
            f"{gain.mean:+.3f} [{gain.lo:+.3f}, {gain.hi:+.3f}]"
        )  # fmt: skip
        calls = fmean(one.calls for one in outcomes)
        distinct = fmean(one.distinct for one in outcomes)
        worst = min(fmean(one.values) for one in outcomes)
        lines.append(
            f"| {name} | {row} | {fmean(values):.3f} | {worst:.3f} | {calls:.0f} "
            f"| {distinct:.0f} | {lead} |"
        )
    return lines


def real(name: str, queries: int) -> list[str]:
    """Lines of the table for a model that ranks by likelihood."""
    data, lm = datasets.load("ostrel"), dr.models.get(name)
    train, val = (data.part(part)[:queries] for part in ("train", "validation"))
    before = dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))
    weighed = WeightCompiler(lm=lm).compile(before, trainset=train, valset=val)
    calls = weighed.card["spent"]["questions"]
    few = queries // 3  # the search ranks each up to six times, ours each of both sets once
    with quiet():
        search = BootstrapFewShotWithRandomSearch(
            metric=RankingMetric("nDCG@10"), max_bootstrapped_demos=2, max_labeled_demos=0,
            num_candidate_programs=1, num_threads=1,
        )  # fmt: skip
    counter = CallCounter()
    sets: dict[str, Any] = {
        "trainset": train[:few].to_examples(),
        "valset": val[:few].to_examples(),
    }
    with dspy.context(lm=lm, callbacks=[counter]), quiet():
        searched: Any = search.compile(before.deepcopy(), **sets)
    rows = {"uncompiled": before, "ours, weights": weighed, "end to end": searched}
    spent = {"uncompiled": 0, "ours, weights": calls, "end to end": counter.calls}
    found = dr.evaluate(rows, data.part("test"), lm=lm)
    leads = {n: found.gain("nDCG@10", "ours, weights", n) for n in ("uncompiled", "end to end")}
    return [
        f"| {name} | {row} | {found[row].mean('nDCG@10').mean:.3f} | {spent[row]} "
        f"| {leads.get(row, '')} |"
        for row in rows
    ]


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--optimizer", choices=OPTIMIZERS)
    parser.add_argument("--lm", help="a model that can score a text, instead of the script")
    parser.add_argument("--queries", type=int, default=12)
    arguments = parser.parse_args()
    if arguments.lm:
        print("| model | compiled | nDCG@10 | calls | ours is ahead by |\n|---|---|---|---|---|")
        print("\n".join(real(arguments.lm, arguments.queries)))
        return
    names = [arguments.optimizer] if arguments.optimizer else list(OPTIMIZERS)
    header = "optimizer", "compiled", "nDCG@10", "worst seed", "calls", "distinct", "lead"
    print(f"| {' | '.join(header)} |")
    print("|---|---|---|---|---|---|---|")
    for name in names:
        for line in cells(name, measured(name, range(arguments.seeds))):
            print(line, flush=True)


if __name__ == "__main__":
    main()
