"""How much the incoming order helps a judge, with its weight chosen on other queries.

    python benchmarks/prior.py [--data ../shared/data/noveleval] [--lm local/smollm2-135m]

Every query is ranked once by the judge alone. Its prior weight is then chosen on all other
queries (leave one out), so no query takes part in choosing its own weight.
"""

import argparse
import os
from collections import Counter
from pathlib import Path

import dspy

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.metrics import ndcg_at
from dspy_rerank.prior import blend, first_stage
from dspy_rerank.sorters.plans import order_by_score
from dspy_rerank.stats import bootstrap_mean, paired_interval

DATA = Path(os.environ.get("DSPY_RERANK_BENCH_DATA", "../shared/data")) / "noveleval"
WEIGHTS = [step / 20 for step in range(21)]


def values(query: datasets.Query, ranking: dr.Ranking) -> list[float]:
    """nDCG@10 of one query for each weight."""
    scores = {item.index: item.score for item in ranking}
    judged = [scores[position] for position in range(len(query.documents))]
    evidence = first_stage(query.documents)
    orders = [order_by_score(blend(judged, evidence, weight)) for weight in WEIGHTS]
    return [ndcg_at(query.relevance, order, 10, query.ideal) for order in orders]


def main() -> None:
    """Print the table of weights, and what a weight chosen on other queries gives."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--data", default=str(DATA))
    options.add_argument("--split")
    options.add_argument("--lm", default="local/smollm2-135m")
    chosen = options.parse_args()
    data = datasets.load(chosen.data, chosen.split)
    dspy.configure(lm=dr.models.get(chosen.lm))
    judge = dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))
    rankings = dr.evaluate(judge, data)["reranker"].rankings
    table = [values(query, ranking) for query, ranking in zip(data, rankings, strict=True)]
    print("weight  " + "  ".join(f"{weight:.2f}" for weight in WEIGHTS[::2]))
    means = [sum(column) / len(table) for column in zip(*table, strict=True)]
    print("nDCG@10 " + " ".join(f"{mean:.3f}" for mean in means[::2]))
    picked = [best_without(table, left_out) for left_out in range(len(table))]
    held_out = [row[choice] for row, choice in zip(table, picked, strict=True)]
    alone, incoming = [row[0] for row in table], [row[-1] for row in table]
    print(f"incoming order {bootstrap_mean(incoming)}")
    print(f"judge alone    {bootstrap_mean(alone)}")
    print(f"weight chosen on other queries {bootstrap_mean(held_out)}")
    print(f"  over the incoming order {paired_interval(held_out, incoming)}")
    print(f"  over the judge alone    {paired_interval(held_out, alone)}")
    print("  weights chosen", dict(Counter(WEIGHTS[choice] for choice in picked)))


def best_without(table: list[list[float]], left_out: int) -> int:
    """The best weight's place on all queries but one."""
    rest = [row for place, row in enumerate(table) if place != left_out]
    means = [sum(column) for column in zip(*rest, strict=True)]
    return means.index(max(means))


if __name__ == "__main__":
    main()
