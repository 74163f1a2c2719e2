"""Compiling from labels with a scripted model whose skill depends on its prompt."""

import itertools
from math import log2

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.adapters import CONTINUING
from dspy_rerank.errors import CompileError, EvidenceError, InputError
from dspy_rerank.optimizers import RerankerSearch, Trial, demo_sets, judgment_examples
from dspy_rerank.optimizers.measuring import Measuring
from dspy_rerank.optimizers.shares import left
from dspy_rerank.optimizers.trials import settled
from dspy_rerank.testing import oracle_judge, scripted_lm
from tests.optimizers.builders import MAGIC, labelled, skilled


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


def test_other_weights_on_a_prompt_ask_nothing_though_answers_cannot_be_read():
    lm = scripted_lm("I cannot say.")
    compiled = search(lm=lm, instructions=None, demos=(), trials=9).compile(
        dr.ScoreSort(dr.PointwiseJudge(evidence="generate")),
        trainset=labelled(8), valset=labelled(4, seed=1),
    )  # fmt: skip
    trials = compiled.card["trials"]
    assert len({trial["prior"] for trial in trials}) > 1
    assert [trial["calls"] for trial in trials] == [2 * 4 * 6] + [0] * 8
    assert {trial["calls_per_query"] for trial in trials} == {12.0}
    assert len(lm.engine.prompts) == 48


@pytest.mark.parametrize("most", [24, 30, 60])
def test_max_calls_holds(most):
    lm = scripted_lm(skilled)
    search(lm=lm, max_calls=most).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
    )
    assert len(lm.engine.prompts) <= most


def test_too_few_calls_for_the_student_itself_are_refused_before_any_is_made():
    lm = scripted_lm(skilled)
    with pytest.raises(InputError, match=r"max_calls=23, but ranking 4 queries .* takes up to 24"):
        search(lm=lm, max_calls=23).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
        )
    assert not lm.engine.prompts


def failing_now_and_then():
    """A model that fails on every third call."""
    asked = itertools.count(1)
    return scripted_lm(
        lambda _: "2" if next(asked) % 3 else dspy.lm15.ServerError("x"), num_retries=0
    )


def test_calls_that_fail_are_spent_too():
    """With every third call failing, the student's 24 answers take 36 calls; 50 are no room."""
    lm = failing_now_and_then()
    compiled = search(lm=lm, max_calls=50, instructions=None).compile(
        dr.ScoreSort(dr.PointwiseJudge(evidence="generate")),
        trainset=labelled(8), valset=labelled(4, seed=1),
    )  # fmt: skip
    bill = compiled.card["spent"]
    assert len(lm.engine.prompts) == bill["calls"] <= 50
    assert bill["failed_calls"] == bill["calls"] // 3 > 0
    assert left({"max_calls": 50}, bill) == {"max_calls": 50 - bill["calls"]}


@pytest.mark.parametrize("most", [60, 66])
def test_a_setting_whose_calls_fail_is_broken_off_at_the_limit(most):
    """The student takes 36 calls; another setting may begin, has room for 24 and needs 36."""
    lm = failing_now_and_then()
    compiled = search(lm=lm, max_calls=most, instructions=None, trials=20).compile(
        dr.ScoreSort(dr.PointwiseJudge(evidence="generate")),
        trainset=labelled(8), valset=labelled(4, seed=1),
    )  # fmt: skip
    bill = compiled.card["spent"]
    assert len(lm.engine.prompts) == bill["calls"] == most
    assert {trial["variant"] for trial in compiled.card["trials"]} == {"own, no demos"}
    assert len(compiled.card["trials"]) > 1, "other weights are free and still tried"


def test_a_setting_that_is_interrupted_books_what_it_has_asked():
    lm = scripted_lm("2")

    class Interrupted(Measuring):
        """Someone presses Ctrl-C behind the first call."""

        def unless_outrun(self, variant, prior, known):
            lm("How relevant?")
            raise KeyboardInterrupt

    measuring = Interrupted({}, labelled(2), "nDCG@10")
    with pytest.raises(KeyboardInterrupt):
        measuring.within(9, "student", 0.0, [])
    assert measuring.bill.calls == len(lm.engine.prompts) == 1


def test_a_candidate_that_asks_more_often_is_not_answered_from_one_that_asks_less():
    lm = scripted_lm(lambda prompt: skilled(prompt) if "could not be read" in prompt else "Hm.")
    sets = {"trainset": labelled(8), "valset": labelled(8, seed=1)}
    judge = dr.PointwiseJudge(evidence="generate", instructions=MAGIC)
    compiled = search(
        lm=lm, instructions=None, demos=(), candidates={"twice": dr.ScoreSort(judge, retries=1)}
    ).compile(dr.ScoreSort(judge, retries=0), **sets)
    assert compiled.settings["retries"] == 1
    assert compiled.card["validation"]["compiled"] == pytest.approx(1.0)


def test_every_prompt_is_charged_for_asking_again_though_half_of_it_was_known():
    lm = scripted_lm("I cannot say.")
    compiled = search(lm=lm, instructions=["Other words."], demos=(), cost="calls").compile(
        dr.ScoreSort(dr.PointwiseJudge(evidence="generate")),
        trainset=labelled(8), valset=labelled(8, seed=1),
    )  # fmt: skip
    assert {trial["calls_per_query"] for trial in compiled.card["trials"]} == {12.0}
    assert len({trial["variant"] for trial in compiled.card["trials"]}) > 1


def test_a_limit_that_failing_calls_eat_before_the_student_is_measured_is_an_error():
    lm = failing_now_and_then()
    with pytest.raises(CompileError, match=r"max_calls=30 were spent .*: \d+ calls had"):
        search(lm=lm, max_calls=30).compile(
            dr.ScoreSort(dr.PointwiseJudge(evidence="generate")),
            trainset=labelled(8), valset=labelled(4, seed=1),
        )  # fmt: skip
    assert len(lm.engine.prompts) == 30


def test_a_candidate_that_the_model_cannot_serve_is_left_out_and_named(caplog):
    candidates = {
        "grades": dr.ScoreSort(dr.PointwiseJudge(evidence="generate")),
        "likelihood": dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood")),
    }
    compiled = search(lm=scripted_lm(skilled), candidates=candidates).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
    )
    assert [*compiled.card["left_out"]] == ["likelihood"]
    assert "likelihood is left out of the search: " in caplog.text
    assert any(trial["variant"].startswith("grades") for trial in compiled.card["trials"])


def test_a_student_that_the_model_cannot_serve_is_refused():
    with pytest.raises(EvidenceError):
        search(lm=scripted_lm(skilled), candidates=[dr.ScoreSort(dr.PointwiseJudge())]).compile(
            dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood")),
            trainset=labelled(8), valset=labelled(4, seed=1),
        )  # fmt: skip


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


def test_pairs_may_be_kept_apart_by_a_margin():
    judge = dr.PairwiseJudge()
    gaps = [
        max(item.grades) - min(item.grades)
        for item in judgment_examples(judge, labelled(8), margin=2, per_query=20)
    ]
    assert gaps
    assert min(gaps) >= 2


def test_a_question_says_how_much_of_the_metric_hangs_on_it():
    (query,) = dr.datasets.from_examples(
        [{"query": "q", "documents": ["a", "b", "c"], "relevance": [0, 1, 0]}]
    )
    (first, second) = judgment_examples(dr.PairwiseJudge(), [query])
    assert {first.worth, second.worth} == {
        round(1 - 1 / log2(3), 6), round(1 / log2(3) - 0.5, 6),
    }  # fmt: skip
    whole = judgment_examples(dr.ListwiseJudge(), [query], per_query=1, window=3)[0]
    assert whole.worth == 0.5
    alone = judgment_examples(dr.PointwiseJudge(evidence="generate"), [query])
    assert {item.texts[0]: item.worth for item in alone} == {
        "a": round(1 - 1 / log2(3), 6), "b": 0.5, "c": round(1 / log2(3) - 0.5, 6),
    }  # fmt: skip


def test_every_second_group_has_a_relevant_passage_where_there_is_any():
    rare = labelled(4, grades=(1, *[0] * 30))
    for judge in (dr.SetwiseJudge(), dr.ListwiseJudge()):
        found = judgment_examples(judge, rare, per_query=12, window=4)
        relevant = sum(item.grade > 0 for item in found)
        assert 0.5 <= relevant / len(found) < 0.9
    none = labelled(2, grades=(0, 0, 0))
    assert {item.grade for item in judgment_examples(dr.SetwiseJudge(), none)} == {0.0}


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


def orders(prompt):
    """A judge that grades by number, and one that always prefers what is shown first."""
    return skilled(prompt) if "Passage [" not in prompt else "A"


def test_the_best_of_several_rerankers_is_chosen():
    pairs, lm = dr.MergeSort(dr.PairwiseJudge()), scripted_lm(orders)
    compiled = search(lm=lm, candidates=[pairs], trials=25, demos=()).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(8, seed=1)
    )
    assert isinstance(compiled, dr.ScoreSort)
    assert compiled.card["chosen"]["variant"] == "student: wording 1, no demos"
    assert any("Passage [" in prompt for prompt in lm.engine.prompts)


def test_the_pareto_front_holds_what_nothing_beats_in_quality_and_cost():
    compiled = search(lm=scripted_lm(skilled), cost="tokens", trials=25).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(8, seed=1)
    )
    front, trials = compiled.card["pareto"], compiled.card["trials"]
    for trial in trials:
        better = [f for f in front if f["value"] >= trial["value"]]
        assert min(f["tokens_per_query"] for f in better) <= trial["tokens_per_query"]
    assert [f["value"] for f in front] == sorted({f["value"] for f in front})
    assert front[-1]["value"] == 1.0
    assert compiled.card["chosen"]["variant"] == "wording 1, no demos"


def test_calls_can_be_the_cost():
    """The same ranking for fewer calls wins, though its prompt is longer."""

    def right(prompt):
        shown = prompt.rsplit("Query: ", 1)[1].split("worth ")[1:]
        worths = [part[0] for part in shown]
        if "Passage [" not in prompt:
            return worths[0]
        order = sorted(range(len(worths)), key=lambda place: worths[place], reverse=True)
        return " > ".join(f"[{place + 1}]" for place in order)

    windows = dr.TopDown(dr.ListwiseJudge())
    compiled = search(
        lm=scripted_lm(right), candidates={"windows": windows}, cost="calls", demos=(), trials=20
    ).compile(dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(8, seed=1))
    assert isinstance(compiled, dr.TopDown)
    assert compiled.card["pareto"][0]["calls_per_query"] == 1


def test_an_interrupt_keeps_the_best_so_far():
    stopped = []

    def stop(state):
        stopped.append(state.done)
        if state.done == 5:
            raise KeyboardInterrupt

    compiled = search(lm=scripted_lm(skilled), trials=20, progress=stop).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(8, seed=1)
    )
    assert len(compiled.card["trials"]) == 5
    assert compiled.card["validation"]["compiled"] == max(
        trial["value"] for trial in compiled.card["trials"]
    )


def test_a_model_that_fails_makes_a_degraded_trial_or_an_error():
    from dspy_rerank.errors import ModelError

    def run(share):
        calls = [0]

        def answer(prompt):
            calls[0] += 1
            busy = share == 1 or ("query 1-2" in prompt and calls[0] > 30)
            return dspy.lm15.InvalidRequestError("no") if busy else skilled(prompt)

        return search(lm=scripted_lm(answer), trials=8).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
        )

    assert run(3).card["degraded"] > 0
    with pytest.raises(ModelError, match="all 4 queries"):
        run(1)


def test_an_unknown_cost_or_candidate_says_so():
    with pytest.raises(InputError, match="tokens, calls, rounds, money"):
        RerankerSearch(cost="gold")
    with pytest.raises(InputError, match="expected rerankers"):
        search(lm=scripted_lm("1"), candidates=["x"]).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(4), valset=labelled(2, 1)
        )


@pytest.fixture
def priced(monkeypatch):
    """Every call costs a tenth of a cent."""
    monkeypatch.setattr("dspy.clients.costs.estimate_cost", lambda *_, **__: (0.001, {}))


def test_a_further_model_is_chosen_where_it_is_better_and_bound_to_the_program():
    weak, strong = scripted_lm("1"), scripted_lm(skilled_always, model="scripted/strong")
    compiled = search(lm=weak, lms=[strong], instructions=None, demos=(), trials=8).compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(8, seed=1)
    )
    assert compiled.card["chosen"]["variant"] == "scripted/strong: own, no demos"
    found = dr.evaluate(compiled, labelled(4, seed=2), lm=weak)
    assert found["reranker"].mean("nDCG@10").mean == pytest.approx(1.0)


def skilled_always(prompt):
    return prompt.rsplit("worth ", 1)[1][0]


def test_two_models_of_one_name_say_so():
    with pytest.raises(InputError, match="twice"):
        search(lm=scripted_lm("1"), lms=[scripted_lm("1"), scripted_lm("2")]).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(4), valset=labelled(2, 1)
        )


def test_rounds_can_be_the_cost():
    def right(prompt):
        shown = [part[0] for part in prompt.rsplit("Query: ", 1)[1].split("worth ")[1:]]
        return shown[0] if len(shown) == 1 else "A" if shown[0] > shown[1] else "B"

    shallow, deep = dr.ScoreSort(dr.PointwiseJudge()), dr.MergeSort(dr.PairwiseJudge())
    compiled = search(
        lm=scripted_lm(right), candidates={"deep": deep}, cost="rounds", demos=(), trials=10
    ).compile(shallow, trainset=labelled(8), valset=labelled(8, seed=1))
    assert compiled.card["pareto"][0]["rounds_per_query"] == 1
    assert any(trial["rounds_per_query"] > 1 for trial in compiled.card["trials"])


def test_money_can_be_the_cost(priced):
    compiled = search(lm=scripted_lm(skilled), cost="money").compile(
        dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(8, seed=1)
    )
    assert compiled.card["chosen"]["variant"] == "wording 1, no demos"
    assert all(trial["money_per_query"] == 0.006 for trial in compiled.card["trials"])


@pytest.mark.parametrize("options", [{"cost": "money"}, {"max_cost": 1.0}])
def test_money_without_a_price_says_so(options):
    with pytest.raises(InputError, match="price of the model is not known"):
        search(lm=scripted_lm(skilled), **options).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
        )


def test_max_cost_holds(priced):
    def spent(**limit):
        lm = scripted_lm(skilled)
        compiled = search(lm=lm, trials=25, **limit).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(8), valset=labelled(4, seed=1)
        )
        return compiled.card["spent"]["cost"]

    free = spent()
    assert 0 < spent(max_cost=free * 0.75) <= free * 0.75 < free


def test_training_queries_can_take_part_in_the_choice():
    student = dr.ScoreSort(dr.PointwiseJudge())
    compiled = search(lm=scripted_lm(skilled), demos=(), choose_by="all").compile(
        student, trainset=labelled(8), valset=labelled(4, seed=1)
    )
    assert compiled.card["validation"]["queries"] == 12
    with pytest.raises(InputError, match=r"'all' with demos=\(\)"):
        search(choose_by="all")


def trial(variant, values, tokens=10.0, **more):
    return Trial(variant, 0.0, sum(values) / len(values), tuple(values), tokens, 0, **more)


def test_a_choice_that_does_not_hold_on_queries_left_out_keeps_the_student():
    """Each of many settings is lucky on one query: the best of them by little, and by chance."""
    base = [0.5] * 8
    lucky = [trial(str(i), [0.9 if q == i else 0.46 for q in range(8)]) for i in range(8)]
    choice = settled([trial("student", base), *lucky], sure=0)
    assert choice.best.variant == "0"
    assert choice.trial.variant == "student"
    assert "does not hold" in choice.why
    assert choice.nested.gain.mean < 0 < choice.nested.flattery


def test_a_choice_that_holds_is_kept():
    better = trial("better", [0.6, 0.7, 0.65, 0.7, 0.6, 0.75])
    choice = settled([trial("student", [0.5, 0.6, 0.5, 0.6, 0.5, 0.6]), better])
    assert choice.trial is better
    assert choice.nested.gain.mean == pytest.approx(0.1167, abs=1e-3)


def test_what_is_cheaper_and_as_good_is_kept():
    cheap = trial("cheap", [0.5, 0.61, 0.5, 0.59], tokens=5)
    assert settled([trial("student", [0.5, 0.6, 0.5, 0.6]), cheap]).trial is cheap
