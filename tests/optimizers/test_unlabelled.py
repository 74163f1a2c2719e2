"""Queries that nobody has judged teach nothing, and no mean of a compiler counts them."""

import json
from dataclasses import replace

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import CompileError, InputError
from dspy_rerank.optimizers import Recipe, RerankerSearch, compile_and_prove, write_report
from dspy_rerank.optimizers.seeds import compile_seeds
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import labelled, skilled

SEARCH = Recipe("search", search={"trials": 3, "demos": [2], "instructions": None})


def student():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))


def without_labels(data):
    """The same queries, as they came before anybody judged them."""
    queries = (
        replace(q, id=f"u{q.id}", relevance=(None,) * len(q.documents), judged=False) for q in data
    )
    return replace(data, queries=tuple(queries))


def mixed(queries, seed):
    """Labelled queries and as many without labels."""
    data = labelled(queries, seed)
    return replace(data, queries=(*data, *without_labels(labelled(queries, seed + 100))))


def test_validation_and_test_means_are_those_of_the_labelled_queries(tmp_path):
    lm = scripted_lm(skilled)
    sets = {"trainset": mixed(8, 0), "valset": mixed(8, 1), "testset": mixed(8, 2)}
    with pytest.warns(UserWarning, match="8 of 16 queries without labels are left out"):
        found = compile_and_prove(student(), **sets, recipe=SEARCH, lm=lm)
    plain = compile_and_prove(
        student(), trainset=labelled(8), valset=labelled(8, 1), testset=labelled(8, 2),
        recipe=SEARCH, lm=scripted_lm(skilled),
    )  # fmt: skip
    assert found.program.card["validation"] == plain.program.card["validation"]
    assert found.program.card["test"] == plain.program.card["test"]
    assert found.found["compiled"].values == plain.found["compiled"].values
    page = write_report(tmp_path, student(), found.program, found.found, sets["testset"])
    assert page.is_file()
    told = json.loads((tmp_path / "report.json").read_text())
    assert (told["test"]["queries"], len(told["queries"])) == (8, 8)


def test_validation_queries_without_any_label_are_refused():
    lm = scripted_lm(skilled)
    compiler = RerankerSearch(trials=2, demos=(2,), lm=lm)
    blank = without_labels(labelled(4, 1))
    with pytest.raises(InputError, match="none of the 4 validation queries has labels"):
        compiler.compile(student(), trainset=labelled(4), valset=blank)
    assert lm.engine.prompts == []


def test_no_calls_are_kept_for_ranking_them_with_each_seed(monkeypatch):
    """Ranking the 8 labelled validation queries of 6 documents takes 48 calls of each seed's."""
    given = []

    def compiling(*_, **options):
        given.append(options["max_calls"])
        raise CompileError("enough")

    monkeypatch.setattr(Recipe, "compile", compiling)
    with pytest.raises(CompileError, match="enough"):
        compile_seeds(
            Recipe("x", judge={"optimizer": "GEPA"}), student(), range(2), trainset=labelled(8),
            valset=mixed(8, 1), metric="nDCG@10", options={"max_calls": 400},
        )  # fmt: skip
    assert given[0] == 400 // 2 - 48
