"""Recipes: the ones that are shipped, and files that are not recipes."""

import random
import re
from dataclasses import replace
from pathlib import Path

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.errors import EvidenceError, InputError
from dspy_rerank.optimizers import Recipe, read_recipe
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, proposer, skilled

FOLDER = Path(__file__).parents[2] / "optimizers"


PROMPTS = [path for path in sorted(FOLDER.glob("*.toml")) if not read_recipe(path).weights]


@pytest.mark.parametrize("path", PROMPTS, ids=lambda path: path.stem)
def test_every_shipped_recipe_finds_the_gain(path):
    recipe = read_recipe(path)
    assert recipe.description
    lm, writer = scripted_lm(skilled), scripted_lm(proposer, model="scripted/writer")
    student = dr.ScoreSort(dr.PointwiseJudge())
    with dspy.context(lm=lm):
        compiled = recipe.compile(
            student, trainset=labelled(10), valset=labelled(8, seed=1), lm=lm,
            reflection_lm=writer, **({} if recipe.judge else {"instructions": [MAGIC]}),
        )  # fmt: skip
    found = dr.evaluate({"student": student, "compiled": compiled}, labelled(6, seed=2), lm=lm)
    assert found.gain("nDCG@10", "compiled", "student").significant
    if recipe.judge:
        assert compiled.card["judge"]["optimizer"] == recipe.judge["optimizer"]
        assert compiled.card["chosen"]["variant"].startswith("compiled: ")
        asked = (
            len(lm.engine.prompts) - found["compiled"].usage.calls - found["student"].usage.calls
        )
        assert compiled.card["spent"]["calls"] == asked + len(writer.engine.prompts)


def test_no_wordings_are_tried_where_a_recipe_says_so(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text("[search]\ntrials = 9\ndemos = []\ninstructions = false\n")
    compiled = read_recipe(path).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1),
        lm=scripted_lm(skilled),
    )  # fmt: skip
    assert {trial["variant"] for trial in compiled.card["trials"]} == {"own, no demos"}


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", r"expected a table \[judge\], \[search\] or \[weights\]"),
        ("[weights]\npenalty = 3", "unknown 'penalty' in"),
        ("[search", "is not a recipe"),
        ("[search]\ntrails = 3", "unknown 'trails' in"),
        ("search = 3", "expected a table in"),
        ('[judge]\noptimizer = "Magic"', "unknown optimizer 'Magic'"),
        ("[judge]\nwindow = 3", "unknown optimizer ''"),
        ("optimiser = 1", "unknown 'optimiser' at the top"),
        ('[search]\ncandidates = "x"', "expected tables with a sorter and a judge"),
        ('[[search.candidates]]\nsorter = "TopDown"', "None is none of PointwiseJudge"),
        (
            '[[search.candidates]]\nsorter = "Bubble"\njudge = "ListwiseJudge"',
            r"\[search\]: candidate 1: 'Bubble' is none of ScoreSort",
        ),
        (
            '[[search.candidates]]\nsorter = "TopDown"\nfinals = 2\njudge = "ListwiseJudge"\n'
            '[[search.candidates]]\nsorter = "TopDown"\nwindo = 3\njudge = "ListwiseJudge"',
            "candidate 2, TopDown: .*'windo'",
        ),
    ],
)
def test_a_file_that_is_not_a_recipe_says_so(tmp_path, content, says):
    path = tmp_path / "r.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=says):
        read_recipe(path)
    with pytest.raises(InputError, match="no such file"):
        read_recipe(tmp_path / "none.toml")


def sorted_by_luck(queries, seed):
    """Queries whose documents come in a fair order, and a model that sees grades badly."""
    rng = random.Random(seed)
    examples = []
    for q in range(queries):
        grades = sorted((rng.randrange(4) for _ in range(8)), key=lambda g: rng.gauss(-g, 1))
        texts = [f"{seed}-{q}-{i}\nworth {min(3, max(0, round(g + rng.gauss(0, 1.5))))}"
                 for i, g in enumerate(grades)]  # fmt: skip
        examples.append(dspy.Example(query=f"q {seed}-{q}", documents=texts, relevance=grades))
    return datasets.from_examples(examples)


def test_weights_are_compiled_alone_and_after_a_search():
    lm = scripted_lm(lambda prompt: prompt.rsplit("worth ", 1)[1][0])
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    sets = {"trainset": sorted_by_luck(25, 0), "valset": sorted_by_luck(15, 1)}
    alone = read_recipe(FOLDER / "weights.toml").compile(student, **sets, lm=lm)
    assert alone.card["chosen"]["kept"]
    assert alone.settings["prior"] > 0
    both = Recipe("both", search={"trials": 3, "demos": (), "instructions": None},
                  weights={"sure": 1.0}).compile(student, **sets, lm=lm)  # fmt: skip
    assert both.card["search"]["trials"]
    assert both.card["spent"]["calls"] == 15 * 8 + (25 + 15) * 8


@pytest.mark.parametrize("most", [440, 600])
def test_max_calls_holds_for_weights_behind_a_search(most):
    lm = scripted_lm(lambda prompt: prompt.rsplit("worth ", 1)[1][0])
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    sets = {"trainset": sorted_by_luck(25, 0), "valset": sorted_by_luck(15, 1)}
    both = Recipe("both", search={"trials": 8, "demos": (1, 2)}, weights={"sure": 1.0})
    found = both.compile(student, **sets, lm=lm, max_calls=most)
    assert len(lm.engine.prompts) == found.card["spent"]["calls"] <= most
    with pytest.raises(InputError, match=r"max_calls=320, of which weighing .* up to 320"):
        both.compile(student, **sets, lm=lm, max_calls=320)


@pytest.mark.parametrize("sorter", ["student", "candidate"])
def test_weights_behind_a_search_need_scores_before_anything_is_asked(sorter):
    lm = scripted_lm(skilled)
    given: list[dict[str, object]] = [{"sorter": "MergeSort", "judge": "PairwiseJudge"}]
    points, pairs = dr.ScoreSort(dr.PointwiseJudge()), dr.MergeSort(dr.PairwiseJudge())
    recipe = Recipe("both", search={"candidates": given if sorter == "candidate" else []},
                    weights={"sure": 1.0})  # fmt: skip
    with pytest.raises(InputError, match="has no scores to weigh"):
        recipe.compile(pairs if sorter == "student" else points, trainset=labelled(4),
                       valset=labelled(4, seed=1), lm=lm)  # fmt: skip
    assert not lm.engine.prompts


def test_a_panel_by_likelihood_needs_a_model_that_scores():
    with pytest.raises(EvidenceError, match="cannot score a given text"):
        read_recipe(FOLDER / "panel.toml").compile(
            dr.ScoreSort(dr.PointwiseJudge(evidence="generate")), trainset=labelled(4),
            valset=labelled(2, 1), lm=scripted_lm("1"),
        )  # fmt: skip


def test_a_recipe_chooses_among_the_rerankers_that_it_names(tmp_path):
    path = tmp_path / "r.toml"
    path.write_text(
        '[search]\ntrials = 12\ndemos = []\n[[search.candidates]]\nsorter = "MergeSort"\n'
        'passes = 2\njudge = { kind = "PairwiseJudge", swap = false }\n'
        '[[search.candidates]]\nname = "best"\nsorter = "Survivor"\nwindow = 3\n'
        'judge = "SetwiseJudge"\n'
    )

    def pairs_only(prompt):
        """A model that can compare two passages and do nothing else."""
        found = re.findall(r"Passage \[[AB]\]: .*worth (\d)", prompt)
        return "1" if len(found) != 2 else "A" if found[0] > found[1] else "B"

    lm = scripted_lm(pairs_only)
    student = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    compiled = read_recipe(path).compile(
        student, trainset=labelled(8), valset=labelled(8, seed=1), lm=lm, instructions=None
    )
    assert compiled.card["chosen"]["variant"].startswith("MergeSort(PairwiseJudge, swap=False, pas")
    assert isinstance(compiled, dr.Consensus)
    tried = {trial["variant"].split(":")[0] for trial in compiled.card["trials"]}
    assert "student" in tried
    found = dr.evaluate({"compiled": compiled}, labelled(6, seed=2), lm=lm)
    assert found["compiled"].mean("nDCG@10").mean > 0.95


SHOTS = {
    "optimizer": "BootstrapFewShotWithRandomSearch", "per_query": 4,
    "options": {"max_bootstrapped_demos": 2, "max_labeled_demos": 0, "num_candidate_programs": 2},
}  # fmt: skip


@pytest.mark.parametrize("by", ["validation", "all"])
def test_a_search_behind_a_judge_compiler_has_room_for_all_that_it_ranks(by):
    """12 training and 4 validation queries of 6 documents, and one that nobody has judged."""
    lm, student = scripted_lm(skilled), dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    val = labelled(4, seed=1)
    nobodys = replace(val[0], id="?", text="?", relevance=(None,) * 6, judged=False)
    valset = replace(val, queries=(*val, nobodys))
    sets = {"trainset": labelled(12), "valset": valset}
    recipe = Recipe("x", judge=SHOTS, search={"trials": 2, "demos": (), "choose_by": by})
    kept = 2 * 6 * {"validation": 4, "all": 16}[by]
    with pytest.raises(InputError, match=rf"comparing two .* up to {kept}; .* or fewer queries"):
        recipe.compile(student, **sets, lm=lm, max_calls=kept)
    assert not lm.engine.prompts
    found = recipe.compile(student, **sets, lm=lm, max_calls=kept + 60)
    assert {trial["variant"].split(":")[0] for trial in found.card["trials"]} <= {
        "student", "compiled"
    }  # fmt: skip
    assert len(lm.engine.prompts) == found.card["spent"]["calls"] <= kept + 60


def test_a_recipes_own_limit_without_room_to_compare_is_refused_before_the_judge_compiler():
    lm, student = scripted_lm(skilled), dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    recipe = Recipe("x", judge=SHOTS, search={"trials": 2, "demos": (), "max_calls": 47})
    with pytest.raises(InputError, match=r"max_calls=47, but comparing two prompts .* up to 48;"):
        recipe.compile(student, trainset=labelled(12), valset=labelled(4, seed=1), lm=lm)
    assert not lm.engine.prompts


def test_weights_have_room_for_the_dearest_candidate_of_a_search():
    lm = scripted_lm(lambda prompt: prompt.rsplit("worth ", 1)[1][0])
    judge = {"kind": "PointwiseJudge", "evidence": "generate", "votes": 3}
    recipe = Recipe("x", weights={"sure": 1.0}, search={
        "trials": 3, "demos": (), "instructions": None,
        "candidates": [{"sorter": "ScoreSort", "judge": judge}],
    })  # fmt: skip
    sets = {"trainset": sorted_by_luck(6, 0), "valset": sorted_by_luck(4, 1)}
    with pytest.raises(InputError, match=r"weighing .* up to 240; give more calls or fewer quer"):
        recipe.compile(
            dr.ScoreSort(dr.PointwiseJudge(evidence="generate")), **sets, lm=lm, max_calls=240
        )
    assert not lm.engine.prompts
