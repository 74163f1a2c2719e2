"""Compiling with proof: several seeds, plain DSPy, and what the report says of both."""

import json
from dataclasses import replace

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import CompileError, InputError
from dspy_rerank.optimizers import Recipe, compile_and_prove, write_report
from dspy_rerank.optimizers.plots import axes, plot
from dspy_rerank.optimizers.proof import plain_values
from dspy_rerank.optimizers.reuse import sharing_answers
from dspy_rerank.optimizers.seeds import chosen, compile_seeds
from dspy_rerank.optimizers.spread import spread
from dspy_rerank.optimizers.verdicts import unsure
from dspy_rerank.program import to_dict
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import labelled, skilled

SEARCH = Recipe("search", search={"trials": 4, "demos": [2], "instructions": None})
SHOTS = Recipe(
    "shots",
    judge={
        "optimizer": "BootstrapFewShotWithRandomSearch", "per_query": 4,
        "options": {"max_bootstrapped_demos": 2, "num_candidate_programs": 2},
    },
)  # fmt: skip
WEIGHTS = Recipe("weights", weights={"sure": 1.0})


def student():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))


def proven(script=skilled, recipe=SEARCH, **given):
    lm = scripted_lm(script)
    sets = {"trainset": labelled(8), "valset": labelled(8, 1), "testset": labelled(8, 2)}
    return compile_and_prove(student(), **sets, recipe=recipe, lm=lm, **given), lm


def reported(found, folder):
    page = write_report(
        folder, student(), found.program, found.found, labelled(8, 2), runs=found.runs,
        plain=found.plain,
    )  # fmt: skip
    return json.loads((folder / "report.json").read_text()), page.read_text()


class Told:
    """A recipe whose programs have the validation values that it is told, or raise."""

    judge, weights, search = {}, {}, {"trials": 1}

    def __init__(self, *values):
        self.values = values
        self.given = []

    def compile(self, student, *, seed, **given):
        self.given.append(given)
        value = self.values[seed]
        if isinstance(value, BaseException):
            raise value
        made = student.deepcopy()
        made.card = {
            "validation": {"compiled": value}, "chosen": {"kept": value > 0.5}, "spent": {},
        }  # fmt: skip
        return made


def told(*values, **options):
    recipe = Told(*values)
    runs = compile_seeds(
        recipe, student(), range(len(values)), trainset=[], valset=[], metric="nDCG@10",
        options=options,
    )  # fmt: skip
    return runs, recipe


def test_the_program_is_that_of_the_seed_with_the_best_validation_value():
    runs, _ = told(0.4, 0.9, 0.9, 0.7)
    assert chosen(runs).seed == 1
    assert [run.kept for run in runs] == [False, True, True, True]


def test_a_seed_that_fails_is_told_and_the_others_go_on():
    runs, _ = told(CompileError("GEPA failed"), 0.3)
    assert chosen(runs).seed == 1
    assert runs[0].failed == "CompileError: GEPA failed"
    with pytest.raises(CompileError, match="first"):
        told(CompileError("first"), CompileError("second"))
    with pytest.raises(InputError, match="wrong"):
        told(InputError("wrong"), 0.5)
    with pytest.raises(InputError, match="no seed was compiled: not run"):
        told(0.5, 0.5, max_calls=0)
    runs, _ = told(0.5, InputError("wrong"))  # what was paid for is not lost with it
    assert (chosen(runs).seed, runs[1].failed) == (0, "InputError: wrong")


def test_an_interrupt_keeps_the_seeds_before_it():
    runs, recipe = told(0.5, KeyboardInterrupt(), 0.9)
    assert [run.seed for run in runs if run.program] == [0]
    assert runs[1].failed == "interrupted"
    assert len(recipe.given) == 2
    with pytest.raises(KeyboardInterrupt):
        told(KeyboardInterrupt(), 0.5)


def test_limits_are_shared_and_studies_are_told_apart():
    limits = {"max_calls": 90, "max_cost": 3.0, "timeout": 300.0, "storage": "s"}
    _, recipe = told(0.1, 0.2, 0.3, **limits)
    assert [given["max_calls"] for given in recipe.given] == [30, 45, 90]
    assert [given["max_cost"] for given in recipe.given] == [1.0] * 3
    assert [round(given["timeout"]) for given in recipe.given] == [100, 150, 300]
    assert [given.get("study_name") for given in recipe.given] == [None, "rerank-1", "rerank-2"]
    _, alone = told(0.1, **limits)
    assert alone.given == [limits | {"metric": "nDCG@10", "trainset": [], "valset": []}]


def test_where_nothing_is_left_a_seed_is_not_run():
    runs, recipe = told(0.1, 0.2, 0.3, max_calls=2)
    assert "no call or time was left" in runs[0].failed
    assert len(recipe.given) == 2


@pytest.mark.parametrize(
    ("recipe", "seeds", "most"),
    [
        (SEARCH, 3, 300),
        (SHOTS, 1, 120),
        (SHOTS, 3, 400),
        (replace(SHOTS, search=SEARCH.search), 1, 250),
        (replace(SHOTS, search=SEARCH.search), 2, 600),
    ],
)
def test_a_limit_on_calls_holds_for_all_steps_and_seeds_together(recipe, seeds, most):
    lm = scripted_lm(skilled)
    sets = {"trainset": labelled(8), "valset": labelled(8, seed=1)}
    with dspy.context(lm=lm):
        runs = compile_seeds(
            recipe, student(), range(seeds), **sets, metric="nDCG@10",
            options={"max_calls": most, "timeout": None, "lm": lm},
        )  # fmt: skip
    assert len(lm.engine.prompts) <= sum(run.calls for run in runs) <= most
    assert all(run.program for run in runs)


@pytest.mark.parametrize("limit", ["max_cost", "timeout"])
def test_limits_that_nothing_would_keep_to_are_refused(limit):
    for recipe in (SHOTS, WEIGHTS):
        with pytest.raises(InputError, match=f"{limit}=1 limits a search, and recipe"):
            proven(recipe=recipe, **{limit: 1})
    both = replace(SHOTS, search=SEARCH.search)
    with pytest.raises(InputError, match="max_calls=9, of which comparing two prompts"):
        proven(recipe=both, max_calls=9)


@pytest.mark.parametrize("recipe", [SEARCH, WEIGHTS], ids=lambda recipe: recipe.name)
def test_what_one_seed_has_paid_for_the_others_know(recipe):
    found, lm = proven(recipe=recipe, seeds=3)
    prompts = lm.engine.prompts
    assert len(set(prompts)) == len(prompts)
    assert found.runs[2].calls < found.runs[0].calls


def test_single_questions_that_one_seed_has_asked_the_others_know():
    sets = {"trainset": labelled(8), "valset": labelled(8, 1), "lm": scripted_lm(skilled)}
    with sharing_answers():
        first, again = (SHOTS.compile(student(), **sets) for _ in range(2))
    assert first.card["spent"]["calls"] > again.card["spent"]["calls"] == 0
    assert to_dict(first)["state"] == to_dict(again)["state"]


def test_a_study_in_a_storage_goes_on_for_every_seed(tmp_path):
    given = {"storage": tmp_path / "s", "seeds": 2}
    first, _ = proven(**given)
    again, _ = proven(**given)
    assert sum(run.calls for run in first.runs) > 0
    assert [run.calls for run in again.runs] == [0, 0]


def test_the_same_seeds_give_the_same_program_and_the_same_baseline():
    one, other = (proven(seeds=2, plain=True)[0] for _ in range(2))
    assert json.dumps(to_dict(one.program)) == json.dumps(to_dict(other.program))
    assert to_dict(one.plain.program) == to_dict(other.plain.program)
    assert one.plain.calls == other.plain.calls


def test_one_seed_without_a_baseline_is_what_compiling_alone_gives(tmp_path):
    found, lm = proven(recipe=SHOTS)
    alone = scripted_lm(skilled)
    compiled = SHOTS.compile(student(), trainset=labelled(8), valset=labelled(8, 1), lm=alone)
    ranked = sum(row.usage.calls for row in found.found.rows)
    assert len(lm.engine.prompts) == len(alone.engine.prompts) + ranked
    found.program.card.pop("test")
    assert to_dict(found.program) == to_dict(compiled)
    content, _ = reported(proven(recipe=SHOTS)[0], tmp_path)
    assert not {"plain", "seeds"} & {*content}


def test_the_report_says_how_far_the_result_hangs_on_the_seed(tmp_path):
    found, _ = proven(seeds=3)
    content, page = reported(found, tmp_path)
    seeds = content["seeds"]
    assert [run["seed"] for run in seeds["runs"]] == [0, 1, 2]
    assert all(0 < run["test"] <= 1 and 0 < run["validation"] <= 1 for run in seeds["runs"])
    (saved,) = [run for run in seeds["runs"] if run["saved"]]
    assert saved["validation"] == seeds["validation"]["max"]
    assert seeds["test"]["min"] <= seeds["test"]["mean"] <= seeds["test"]["max"]
    (said,) = [s for s in content["words"] if s.startswith("3 seeds (0, 1, 2), of which ")]
    assert said.endswith("chosen by the validation queries alone")
    assert said in page
    assert "<h2>Seeds</h2>" in page
    assert "compiling, all seeds" in page
    assert found.program.card["seeds"][0]["seed"] == 0


@pytest.mark.parametrize("recipe", [SEARCH, SHOTS], ids=lambda recipe: recipe.name)
def test_the_bill_of_all_seeds_has_every_call(tmp_path, recipe):
    found, lm = proven(recipe=recipe, seeds=2)
    ranked = sum(row.usage.paid_calls for row in found.found.rows)
    content, _ = reported(found, tmp_path)
    assert content["seeds"]["spent"]["calls"] == content["seeds"]["calls"]
    assert content["seeds"]["calls"] + ranked == len(lm.engine.prompts)


def test_the_report_compares_with_plain_dspy_and_tells_both_bills(tmp_path):
    found, _ = proven(recipe=SHOTS, plain=True)
    content, page = reported(found, tmp_path)
    rows = [row["name"] for row in content["test"]["rows"]]
    assert rows == ["incoming order", "uncompiled", "compiled", "plain DSPy"]
    plain, ours = content["plain"], found.runs[0].calls
    assert plain["spent"]["calls"] <= plain["compiled_calls"] == ours
    assert content["card"]["spent"]["calls"] == ours
    bill = f"it made {plain['spent']['calls']} LM calls, compiling made {ours}"
    assert any(s.endswith(bill) and "plain DSPy" in s for s in content["words"])
    assert bill in page
    assert "plain DSPy, for the comparison" in page
    assert plain["compiled_gain"]["n"] == 8


def test_a_baseline_that_fails_is_a_row_that_says_so(tmp_path, monkeypatch):
    def broken(*arguments, **given):
        raise RuntimeError("out of ideas")

    monkeypatch.setattr(dspy.BootstrapFewShotWithRandomSearch, "compile", broken)
    found, _ = proven(plain=True)
    content, page = reported(found, tmp_path)
    said = "plain DSPy (BootstrapFewShotWithRandomSearch) failed: RuntimeError: out of ideas; it "
    assert any(s.startswith(said) for s in content["words"])
    assert "<td>plain DSPy failed: RuntimeError: out of ideas</td>" in page
    assert found.program.card["chosen"]["kept"]
    assert [row.name for row in found.found.rows][-1] == "compiled"


def test_an_interrupted_baseline_does_not_lose_the_program(monkeypatch):
    def interrupted(*arguments, **given):
        raise KeyboardInterrupt

    monkeypatch.setattr(dspy.BootstrapFewShotWithRandomSearch, "compile", interrupted)
    found, _ = proven(plain=True)
    assert found.program.card["chosen"]["kept"]
    assert found.plain.failed == "it was interrupted"


@pytest.mark.parametrize("recipe", [SEARCH, SHOTS], ids=lambda recipe: recipe.name)
def test_of_a_model_that_cannot_be_improved_no_program_is_called_better(tmp_path, recipe):
    found, _ = proven("1", recipe, plain=True, seeds=2)
    content, page = reported(found, tmp_path)
    assert sum(s.startswith("no difference from ") for s in content["words"]) == 3
    assert "better than" not in page
    assert {row["mean"]["mean"] for row in content["test"]["rows"]} == {
        content["test"]["rows"][0]["mean"]["mean"]
    }


def test_seeds_below_one_are_refused():
    with pytest.raises(InputError, match="seeds=0; expected at least 1"):
        proven(seeds=0)


@pytest.mark.parametrize(
    ("kept", "gain", "said"),
    [(True, [0.02, -0.01, 0.05], 1), (True, [0.02, 0.01, 0.05], 0), (False, [0.02, -0.1, 0.5], 0)],
)
def test_a_kept_change_whose_interval_holds_zero_is_told_plainly(kept, gain, said):
    card = {"chosen": {"kept": kept}, "cross_validation": {"gain_over_uncompiled": gain}}
    words = unsure(card)
    assert len(words) == said
    assert all("[-0.0100, +0.0500], includes 0" in sentence for sentence in words)


def test_no_axis_goes_beyond_what_a_metric_can_be():
    points = [(0.0, 0.5), (10.0, 1.0)]
    assert axes(points, "calls", "nDCG@10", 1.0).high == 1.0
    assert axes(points, "calls", "dollars").high > 1.0
    drawn = plot(points, points, x="calls", y="nDCG@10", top=1.0)
    assert ">1.000</text>" in drawn


def test_seeds_tell_the_calls_that_a_cache_answered_in_every_sum():
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    lm = scripted_lm(skilled, cache=True)
    sets = {"trainset": labelled(8), "valset": labelled(8, 1), "testset": labelled(8, 2)}
    given = {"recipe": SHOTS, "lm": lm, "seeds": 2, "plain": True}
    first = compile_and_prove(student(), **sets, **given)
    asked = len(lm.engine.prompts)
    again = compile_and_prove(student(), **sets, **given)
    assert len(lm.engine.prompts) == asked
    told, then = spread(again.runs, again.found), spread(first.runs, first.found)
    assert told["spent"]["calls"] == 0 < then["spent"]["calls"]
    assert told["spent"]["cached_calls"] == told["cached_calls"] == told["calls"]
    assert sum(then["spent"][name] for name in ("calls", "cached_calls")) == then["calls"]
    plain = plain_values(again.plain, again.found)["spent"]
    assert (plain["calls"], plain["cached_calls"]) == (0, again.plain.calls)
