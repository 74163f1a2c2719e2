"""Compiling from labels with a scripted model whose skill depends on its prompt."""

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.adapters import CONTINUING
from dspy_rerank.errors import InputError
from dspy_rerank.optimizers import RerankerSearch, demo_sets, judgment_examples
from dspy_rerank.testing import oracle_judge, scripted_lm

MAGIC = "Prefer what is current."


def labelled(queries=12, seed=0):
    """Queries whose documents say their grade; the order they come in says nothing."""
    import random

    rng = random.Random(seed)
    examples = []
    for q in range(queries):
        grades = [0, 1, 2, 3, 0, 1]
        rng.shuffle(grades)
        texts = [f"query {q} passage {i} worth {grade}" for i, grade in enumerate(grades)]
        examples.append(dspy.Example(query=f"query {q}", documents=texts, relevance=grades))
    return datasets.from_examples(examples)


def skilled(prompt):
    """Right when told the magic words or shown two demonstrations, else always the same."""
    last = prompt.rsplit("Passage: ", 1)[1]
    worth = last.split("worth ")[1][0]
    return worth if MAGIC in prompt or prompt.count("Passage: ") >= 3 else "1"


def search(**options):
    return RerankerSearch(**{"trials": 12, "demos": (2,), "instructions": [MAGIC], **options})


def test_the_gain_is_found_and_visible_in_the_prompt():
    lm = scripted_lm(skilled)
    student = dr.ScoreSort(dr.PointwiseJudge())
    compiled = search(lm=lm).compile(student, trainset=labelled(8), valset=labelled(8, seed=1))
    test = labelled(8, seed=2)
    found = dr.evaluate({"student": student, "compiled": compiled}, test, lm=lm)
    assert found["compiled"].mean("nDCG@10").mean == pytest.approx(1.0)
    assert found.gain("nDCG@10", "compiled", "student").significant
    prompt = lm.engine.prompts[-1]
    assert MAGIC in prompt or prompt.count("Passage: ") == 3


def test_the_student_stays_as_it_was():
    student = dr.ScoreSort(dr.PointwiseJudge())
    before = student.dump_state()
    search(lm=scripted_lm(skilled)).compile(student, trainset=labelled(8), valset=labelled(4, 1))
    assert student.dump_state() == before


def test_the_cheaper_prompt_wins_when_both_are_as_good():
    compiled = search(lm=scripted_lm(skilled), trials=30).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(8, seed=1)
    )
    assert compiled.judge.predict.demos == []
    assert MAGIC in compiled.judge.predict.signature.instructions


def test_same_seed_same_program():
    def compiled():
        program = search(lm=scripted_lm(skilled), seed=4).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
        )
        program.card["spent"].pop("seconds")
        return dr.program.to_dict(program)

    assert compiled() == compiled()


def test_no_question_is_bought_twice():
    lm = scripted_lm(skilled)
    compiled = search(lm=lm, trials=25).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
    )
    assert len(set(lm.engine.prompts)) == len(lm.engine.prompts)
    assert compiled.card["spent"]["calls"] == len(lm.engine.prompts)
    assert len(compiled.card["trials"]) == 25


@pytest.mark.parametrize("most", [24, 30, 60])
def test_max_calls_holds(most):
    lm = scripted_lm(skilled)
    search(lm=lm, max_calls=most).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
    )
    assert len(lm.engine.prompts) <= most


def test_a_model_that_cannot_be_improved_is_not_called_better():
    lm = scripted_lm("1")
    student = dr.ScoreSort(dr.PointwiseJudge())
    compiled = search(lm=lm).compile(student, trainset=labelled(8), valset=labelled(8, seed=1))
    gain = compiled.card["validation"]["gain_over_uncompiled"]
    assert gain[1] <= 0 <= gain[2]
    assert compiled.judge.predict.demos == []


@pytest.mark.parametrize(
    ("build", "field"),
    [
        (lambda: dr.ScoreSort(dr.PointwiseJudge()), "relevance"),
        (lambda: dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood")), "query"),
        (lambda: dr.MergeSort(dr.PairwiseJudge()), "winner"),
        (lambda: dr.Survivor(dr.SetwiseJudge()), "best"),
        (lambda: dr.TopDown(dr.ListwiseJudge()), "ranking"),
    ],
)
def test_examples_have_the_judges_own_fields_and_right_answers(build, field):
    judge = build().judge
    found = judgment_examples(judge, labelled(4), per_query=6, window=4)
    assert found
    for item in found:
        assert set(judge.predict.signature.fields) == set(item.example.keys())
        if field == "winner":
            a, b = (line.split("worth ")[1] for line in item.example.passages.splitlines())
            assert item.example.winner == ("A" if a > b else "B")
        if field == "relevance":
            assert item.example.passage.endswith(f"worth {item.example.relevance}")
        if field == "query":
            assert item.example.passage.endswith("worth 3")


def test_pairs_come_in_both_orders():
    winners = [i.example.winner for i in judgment_examples(dr.PairwiseJudge(), labelled(8))]
    assert 0.3 < winners.count("A") / len(winners) < 0.7


def test_demo_sets_cover_grades_and_stay_within_their_tokens():
    pool = judgment_examples(dr.PointwiseJudge(), labelled(8))
    sets = demo_sets(pool, sizes=(2, 4), draws=2, max_tokens=200, seed=0)
    assert sets[0] == ("no demos", ())
    for _, demos in sets[1:]:
        assert len({demo.relevance for demo in demos}) == len(demos)
    assert len(demo_sets(pool, sizes=(4,), draws=2, max_tokens=10, seed=0)) == 1


def test_too_little_to_learn_from_says_so():
    with pytest.raises(InputError, match="valset"):
        search(lm=scripted_lm("1")).compile(dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(2))
    blank = [{"query": "q", "documents": ["a"], "relevance": [None]}] * 4
    with pytest.raises(InputError, match="labels"):
        search(lm=scripted_lm("1")).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=datasets.from_examples(blank), valset=blank
        )


def test_a_function_judge_has_nothing_to_compile():
    with pytest.raises(InputError, match="no prompt"):
        search(lm=scripted_lm("1")).compile(
            dr.MergeSort(oracle_judge({}, "pairwise")), trainset=labelled(4)
        )


def test_a_likelihood_judge_is_reworded_in_its_heading_and_keeps_no_instructions(tmp_path):
    from dspy_rerank.optimizers import Variant

    judge = dr.PointwiseJudge(evidence="likelihood")
    Variant("x", "A user typed").apply(judge)
    loaded = dr.load(dr.save(dr.ScoreSort(judge), tmp_path / "p.json")).judge
    for each in (judge, loaded):
        assert each.signature.instructions == ""
        assert each.signature.output_fields["query"].json_schema_extra["desc"] == "A user typed"
    messages = CONTINUING.format(judge.signature, [], {"passage": "p"})
    assert messages == [{"role": "user", "content": "Passage: p\nA user typed:"}]
