"""Recipes: the ones that are shipped, and files that are not recipes."""

from pathlib import Path

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import InputError
from dspy_rerank.optimizers import read_recipe
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, proposer, skilled

FOLDER = Path(__file__).parents[2] / "optimizers"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
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


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", r"expected a table \[judge\] or \[search\]"),
        ("[search", "is not a recipe"),
        ("[search]\ntrails = 3", "unknown 'trails' in"),
        ("search = 3", "expected a table in"),
        ('[judge]\noptimizer = "Magic"', "unknown optimizer 'Magic'"),
        ("[judge]\nwindow = 3", "unknown optimizer ''"),
        ("optimiser = 1", "unknown 'optimiser' at the top"),
    ],
)
def test_a_file_that_is_not_a_recipe_says_so(tmp_path, content, says):
    path = tmp_path / "r.toml"
    path.write_text(content)
    with pytest.raises(InputError, match=says):
        read_recipe(path)
    with pytest.raises(InputError, match="no such file"):
        read_recipe(tmp_path / "none.toml")
