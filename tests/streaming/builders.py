"""Queries, rerankers and models for tests of runs."""

import dspy_rerank as dr
from dspy_rerank.models import set_price
from dspy_rerank.streaming import Item, Journal, Plan, read_results, run
from dspy_rerank.testing import scripted_lm


def items(count, documents=3):
    """Distinct queries with distinct documents."""
    for number in range(count):
        texts = [f"passage {place} of {number}" for place in range(documents)]
        yield Item(str(number), f"query {number}", texts)


def by_length(**options):
    """A reranker that asks a function, so that no model is in the way."""

    async def judge(query, passages):
        return float(len(passages[0]))

    return dr.ScoreSort(dr.FunctionJudge(judge, "pointwise"), **options)


def priced_lm(answer="2"):
    """A model whose tokens cost a dollar each."""
    lm = scripted_lm(answer)
    set_price(lm, input_cost_per_token=1.0, output_cost_per_token=1.0)
    return lm


def results(path, queries, reranker, lm=None, by="x", report=None, **plan):
    """The summary and the rows of a run."""
    with Journal(path, by) as journal:
        summary = run(queries, reranker, journal, Plan(**plan), lm=lm, report=report)
    return summary, list(read_results(path))
