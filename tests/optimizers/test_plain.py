"""Plain DSPy on whole rankings, the baseline of a compiled program."""

from pathlib import Path

import dspy
import pytest
from dspy.teleprompt import BootstrapFewShotWithRandomSearch
from dspy.teleprompt.teleprompt import Teleprompter

import dspy_rerank as dr
from dspy_rerank.memo import remembering
from dspy_rerank.optimizers import compile_plain, read_recipe
from dspy_rerank.optimizers.affording import Sizes, fitting, rankings
from dspy_rerank.program import to_dict
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, proposer, skilled

FOLDER = Path(__file__).parents[2] / "optimizers"
SMALL = {"max_bootstrapped_demos": 2, "num_candidate_programs": 2}


def student():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))


def plain(script=skilled, max_calls=600, **given):
    """A run, and the calls that the model itself has counted."""
    lm = scripted_lm(script)
    given = {"optimizer": BootstrapFewShotWithRandomSearch, "options": SMALL, **given}
    sets = {"trainset": labelled(8), "valset": labelled(8, seed=1)}
    run = compile_plain(student(), **sets, max_calls=max_calls, lm=lm, **given)
    return run, len(lm.engine.prompts)


class Raising(Teleprompter):
    """An optimizer that breaks after it has ranked something."""

    def __init__(self, metric):
        self.metric = metric

    def compile(self, student, *, trainset, valset):
        self.metric(valset[0], student(**valset[0].inputs()))
        raise RuntimeError("out of ideas")


class Silent(Raising):
    """An optimizer that returns nothing."""

    def compile(self, student, *, trainset, valset):
        return None


class Endless(Raising):
    """An optimizer that improves the program and never stops to measure it."""

    def compile(self, student, *, trainset, valset):
        measure = dspy.Evaluate(devset=valset, metric=self.metric, num_threads=1)
        measure(student)
        better = student.deepcopy()
        better.judge.predict.demos = [dict(demo) for demo in DEMOS]
        measure(better)
        while True:
            measure(student)


def dies_after(answers):
    """A model that refuses everything once it has given so many answers."""
    said = iter(range(answers))

    def script(prompt):
        if next(said, None) is None:
            raise dspy.lm15.InvalidRequestError("too much")
        return "1"

    return script


DEMOS = [
    {"query": "q", "passage": "a worth 3", "relevance": "3"},
    {"query": "q", "passage": "b worth 0", "relevance": "0"},
]


def test_an_optimizer_improves_the_whole_reranker():
    run, asked = plain()
    assert run.failed == ""
    assert run.calls == run.usage.calls == asked <= run.allowed == 600
    lm = scripted_lm(skilled)
    found = dr.evaluate(
        {"student": student(), "plain": run.program}, labelled(8, seed=2), lm=lm
    )  # fmt: skip
    assert found.gain("nDCG@10", "plain", "student").significant


@pytest.mark.parametrize("max_calls", [1, 5, 40, 100, 250])
def test_no_call_is_made_beyond_the_limit(max_calls):
    run, asked = plain(max_calls=max_calls)
    assert run.calls == asked <= max_calls
    assert (run.program is None) == bool(run.failed)


@pytest.mark.parametrize("name", ["fewshot", "gepa", "mipro"])
def test_the_optimizer_of_a_recipe_runs_end_to_end_within_the_limit(name):
    lm, writer = scripted_lm(skilled), scripted_lm(proposer, model="scripted/writer")
    run = read_recipe(FOLDER / f"{name}.toml").compile_plain(
        student(), trainset=labelled(8), valset=labelled(8, seed=1), max_calls=900, lm=lm,
        reflection_lm=writer,
    )  # fmt: skip
    assert run.failed == ""
    assert run.calls == len(lm.engine.prompts) + len(writer.engine.prompts) <= 900
    before, after = student().judge, run.program.judge
    changed = after.signature.instructions != before.signature.instructions
    assert changed or after.predict.demos


def test_a_recipe_without_an_optimizer_takes_a_random_search():
    run = read_recipe(FOLDER / "weights.toml").compile_plain(
        student(), trainset=labelled(4), valset=labelled(4, seed=1), max_calls=100,
        lm=scripted_lm(skilled),
    )  # fmt: skip
    assert run.optimizer == "BootstrapFewShotWithRandomSearch"


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"optimizer": Raising}, "RuntimeError: out of ideas"),
        ({"optimizer": Silent}, "it returned NoneType instead of the program"),
        ({"max_calls": 8}, "its calls were spent before it had measured a program"),
        ({"max_calls": 0}, "there is no call that it may make"),
        ({"options": {"nonsense": 1}, "optimizer": dspy.SIMBA}, "nonsense"),
        ({"optimizer": "GEPA"}, "expected a DSPy optimizer"),
        ({"script": [dspy.lm15.InvalidRequestError("no")]}, "the pilot could not be ranked"),
        ({"script": dies_after(6)}, "calls had no answer"),
    ],
)
def test_a_run_without_a_program_says_why(given, says):
    raising = given.get("optimizer") in (Raising, Silent)
    run, asked = plain(**{**given, **({"options": {}} if raising else {})})
    assert run.program is None
    assert says in run.failed
    assert run.calls == asked


def test_when_the_calls_run_out_the_best_that_was_measured_is_taken():
    run, asked = plain(optimizer=Endless, options={})
    assert run.cut
    assert run.calls == asked == run.allowed
    assert run.program.judge.predict.demos == DEMOS


def test_demonstrations_come_from_answers_not_from_raw_queries():
    run, _ = plain(options={**SMALL, "max_labeled_demos": 16})
    demos = run.program.judge.predict.demos
    assert demos
    assert not any("documents" in demo for demo in demos)


def test_answers_remembered_around_it_do_not_starve_it_of_demonstrations():
    alone, _ = plain()
    with remembering():
        run, asked = plain()
    assert run.program.judge.predict.demos == alone.program.judge.predict.demos
    assert (run.calls, run.usage.cached_calls) == (asked, 0) == (alone.calls, 0)


def test_the_student_is_left_as_it_is_and_may_have_been_compiled():
    given = student()
    given._compiled = True
    before = to_dict(given)
    sets = {"trainset": labelled(4), "valset": labelled(4, seed=1)}
    run = compile_plain(given, **sets, max_calls=300, lm=scripted_lm(skilled))
    assert run.failed == ""
    assert to_dict(given) == before


def test_an_optimizer_that_writes_into_the_signature_changes_its_own_copy_only():
    def both(prompt):
        return proposer(prompt) if "[[ ## " in prompt else skilled(prompt)

    given = student()
    before = to_dict(given)
    run = compile_plain(
        given, trainset=labelled(6), valset=labelled(6, seed=1), max_calls=900,
        optimizer=dspy.InferRules, options={"num_candidates": 1, "num_rules": 1},
        lm=scripted_lm(both),
    )  # fmt: skip
    assert run.failed == ""
    assert MAGIC in run.program.judge.signature.instructions
    assert to_dict(given) == before


def test_the_share_of_queries_is_what_the_optimizer_comes_to_an_end_with():
    search = BootstrapFewShotWithRandomSearch(
        metric=len, max_bootstrapped_demos=3, num_candidate_programs=4
    )
    there = Sizes(20, 10)
    assert fitting(search, {}, there, 10**6) == there
    assert fitting(search, {}, there, 0) == Sizes(1, 1)
    sizes = fitting(search, {}, there, 60)
    assert sizes.train == 2 * sizes.val
    assert rankings(search, {}, sizes) <= 60 < rankings(search, {}, Sizes(14, 7))
