"""Compiling a judge with each DSPy optimizer, on a model whose skill depends on its prompt."""

import threading

import dspy
import pytest
from dspy.teleprompt import (
    COPRO,
    SIMBA,
    BootstrapFewShot,
    BootstrapFewShotWithRandomSearch,
    InferRules,
    LabeledFewShot,
    MIPROv2,
)
from dspy.teleprompt.teleprompt import Teleprompter

import dspy_rerank as dr
from dspy_rerank.errors import CompileError, InputError, ModelError
from dspy_rerank.optimizers import JudgeCompiler, JudgeMetric
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, proposer, skilled

TRAIN, VAL, TEST = labelled(8), labelled(6, seed=1), labelled(8, seed=2)


def compiled(optimizer, options=None, *, lm=None, student=None, **more):
    lm = lm or scripted_lm(skilled)
    student = student or dr.ScoreSort(dr.PointwiseJudge())
    compiler = JudgeCompiler(optimizer, options, lm=lm, per_query=4, **more)
    return compiler.compile(student, trainset=TRAIN, valset=VAL)


def two_models(prompt):
    """One model in both roles, as where no other writes the prompts."""
    return skilled(prompt) if "Grade" in prompt.split("\n")[0] else proposer(prompt)


def writer():
    return scripted_lm(proposer, model="scripted/writer")


OPTIMIZERS = {
    "LabeledFewShot": (LabeledFewShot, lambda: {"k": 2}, {}),
    "BootstrapFewShot": (
        BootstrapFewShot, lambda: {"max_bootstrapped_demos": 2, "max_labeled_demos": 0}, {},
    ),
    "RandomSearch": (
        BootstrapFewShotWithRandomSearch,
        lambda: {"max_bootstrapped_demos": 2, "max_labeled_demos": 2, "num_candidate_programs": 2},
        {},
    ),
    "MIPROv2": (
        MIPROv2,
        lambda: {"prompt_model": writer(), "auto": None, "num_candidates": 3,
                 "max_bootstrapped_demos": 0, "max_labeled_demos": 0},
        {"num_trials": 4, "minibatch": False},
    ),
    "SIMBA": (
        SIMBA, lambda: {"prompt_model": writer(), "bsize": 16, "num_candidates": 3, "max_steps": 3},
        {},
    ),
    "COPRO": (COPRO, lambda: {"prompt_model": writer(), "breadth": 2, "depth": 1}, {}),
    "GEPA": (dspy.GEPA, lambda: {"reflection_lm": writer(), "max_metric_calls": 120}, {}),
    "InferRules": (
        InferRules,
        lambda: {"teacher_settings": {"lm": scripted_lm(two_models)}, "num_candidates": 2,
                 "max_bootstrapped_demos": 1, "max_labeled_demos": 0},
        {},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizers_work_is_visible_in_the_prompt_and_improves_the_ranking(name):
    kind, options, arguments = OPTIMIZERS[name]
    lm = scripted_lm(skilled)
    student = dr.ScoreSort(dr.PointwiseJudge())
    program = compiled(kind, options(), lm=lm, student=student, arguments=arguments)
    assert program.card["chosen"]["kept"]
    found = dr.evaluate({"student": student, "compiled": program}, TEST, lm=lm)
    assert found["compiled"].mean("nDCG@10").mean == pytest.approx(1.0)
    assert found.gain("nDCG@10", "compiled", "student").significant
    prompt = lm.engine.prompts[-1]
    assert MAGIC in prompt or prompt.count("Passage: ") >= 3
    assert program.judge.signature.instructions.split("\n")[-1] in prompt
    for demo in program.judge.predict.demos:
        assert demo["passage"] in prompt


def test_the_student_and_the_shared_signature_stay_as_they_were():
    student = dr.ScoreSort(dr.PointwiseJudge())
    before, shared = student.dump_state(), dr.PointwiseJudge.DEFAULT.instructions
    kind, options, _ = OPTIMIZERS["InferRules"]
    compiled(kind, options(), student=student)
    assert student.dump_state() == before
    assert dr.PointwiseJudge.DEFAULT.instructions == shared
    assert MAGIC not in dr.PointwiseJudge().signature.instructions


def test_each_candidate_of_infer_rules_keeps_its_own_rules():
    """DSPy's writes into the class, so the last candidate's rules would replace the best one's."""
    written = iter([MAGIC, "Nonsense one.", "Nonsense two."])

    def one_good(prompt):
        return "[[ ## reasoning ## ]]\nr\n[[ ## natural_language_rules ## ]]\n" + next(written)

    def untaught(prompt):
        return skilled(prompt) if "Grade" in prompt.split("\n")[0] else one_good(prompt)

    program = compiled(
        InferRules,
        {"num_candidates": 3, "max_bootstrapped_demos": 1, "max_labeled_demos": 0},
        lm=scripted_lm(untaught),
    )
    assert MAGIC in program.judge.signature.instructions


def test_a_compiled_reranker_is_not_frozen_and_saves_its_judge(tmp_path):
    program = compiled(BootstrapFewShot, {"max_labeled_demos": 2})
    assert "judge.predict" in dict(program.named_predictors())
    again = dr.load(dr.save(program, tmp_path / "p.json"))
    assert again.judge.predict.demos == program.judge.predict.demos
    program.card["spent"].pop("seconds")  # is not saved: the same seed gives the same bytes
    assert again.card == program.card


def test_demonstrations_are_clean_and_in_the_judges_own_form():
    def wordy(prompt):
        return f"The grade is {skilled(prompt)}"

    lm = scripted_lm(wordy, logprobs={"3": -0.1})
    options = {"max_bootstrapped_demos": 3, "max_labeled_demos": 4}
    program = compiled(BootstrapFewShot, options, lm=lm)
    demos = program.judge.predict.demos
    assert len(demos) == 4
    for demo in demos:
        assert set(demo) == {"query", "passage", "relevance"}
        assert demo["relevance"] == demo["passage"].split("worth ")[1]


def test_only_good_answers_become_demonstrations():
    """A float metric would let every answer pass, were its truth value that of the number."""
    options = {"max_bootstrapped_demos": 8, "max_labeled_demos": 0}
    program = compiled(BootstrapFewShot, options, lm=scripted_lm("1"))
    for demo in program.judge.predict.demos:
        assert demo["passage"].endswith("worth 1")


def test_demonstrations_stay_within_their_tokens():
    program = compiled(LabeledFewShot, {"k": 16}, max_demo_tokens=60)
    assert 2 <= len(program.judge.predict.demos) < 16


@pytest.mark.parametrize(
    ("student", "answer"),
    [
        (dr.MergeSort(dr.PairwiseJudge()), "winner"),
        (dr.Survivor(dr.SetwiseJudge()), "best"),
        (dr.TopDown(dr.ListwiseJudge()), "ranking"),
        (dr.ScoreSort(dr.PointwiseJudge(reasoning=True)), "relevance"),
        (dr.ScoreSort(dr.PointwiseJudge(adapter=dspy.ChatAdapter())), "relevance"),
    ],
)
def test_every_kind_of_judge_can_be_compiled(student, answer):
    def taught(prompt):
        """Right once it is shown a demonstration."""
        return "none of it" if MAGIC not in prompt else {
            "winner": "A", "best": "A", "ranking": "[1] > [2]", "relevance": "Relevance: 1",
        }[answer]  # fmt: skip

    class Magic(Teleprompter):
        def compile(self, student, *, trainset):
            made = student.deepcopy()
            made.predict.signature = made.predict.signature.with_instructions(MAGIC)
            return made

    program = compiled(Magic(), lm=scripted_lm(taught), student=student)
    assert program.judge.signature.instructions == MAGIC
    assert program.card["validation"]["uncompiled"] == 0
    assert program.card["validation"]["compiled"] > 0


def test_a_judge_that_does_not_improve_keeps_its_prompt_and_the_card_says_so():
    program = compiled(LabeledFewShot, {"k": 4}, lm=scripted_lm("1"))
    assert program.card["chosen"] == {
        "kept": False,
        "instructions": dr.PointwiseJudge().signature.instructions,
        "demos": 0,
    }
    low, high = program.card["validation"]["gain_over_uncompiled"][1:]
    assert low <= 0 <= high


def test_the_card_says_what_it_cost():
    lm, other = scripted_lm(skilled), writer()
    options = {"reflection_lm": other, "max_metric_calls": 60}
    card = compiled(dspy.GEPA, options, lm=lm).card
    asked = len(lm.engine.prompts)
    assert card["optimizer"] == "GEPA"
    assert card["spent"]["judge_calls"] == asked
    assert card["spent"]["calls"] == asked + len(other.engine.prompts)
    assert card["train"]["questions"] == 32
    assert not card["degraded"]


def test_gepa_reads_which_passage_should_have_outranked_which():
    reflecting = writer()
    compiled(
        dspy.GEPA,
        {"reflection_lm": reflecting, "max_metric_calls": 60},
        lm=scripted_lm("A"),
        student=dr.MergeSort(dr.PairwiseJudge()),
    )
    assert "Passage B should outrank passage A, by" in reflecting.engine.prompts[0]


@pytest.mark.parametrize("name", ["RandomSearch", "MIPROv2", "SIMBA", "COPRO", "GEPA"])
def test_same_seed_same_bytes(name, tmp_path):
    def once(name):
        kind, options, arguments = OPTIMIZERS[name]
        program = compiled(kind, options(), arguments=arguments, seed=3)
        return dr.save(program, tmp_path / f"{name}.json").read_bytes()

    assert once(name) == once(name)


def test_an_instance_with_a_metric_of_its_own_is_compiled_with_that():
    seen = []

    def exact(example, prediction, trace=None):
        seen.append(prediction.relevance)
        return example.relevance == prediction.relevance

    compiled(BootstrapFewShot(metric=exact, max_labeled_demos=0))
    assert seen


def test_a_function_may_build_the_optimizer():
    program = compiled(lambda metric: BootstrapFewShot(metric=metric, max_labeled_demos=2))
    assert program.card["optimizer"] == "BootstrapFewShot"


@pytest.mark.parametrize("name", ["RandomSearch", "GEPA"])
def test_optimizers_print_nothing_into_the_callers_output(name, capfd):
    kind, options, arguments = OPTIMIZERS[name]
    compiled(kind, options(), arguments=arguments)
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize("name", ["BootstrapFewShot", "MIPROv2", "SIMBA", "GEPA"])
def test_a_metric_that_raises_stops_the_compiling(name):
    def broken(gold, pred, trace=None, pred_name=None, pred_trace=None):
        raise KeyError("grade")

    kind, options, arguments = OPTIMIZERS[name]
    with pytest.raises(CompileError, match=r"metric raised KeyError: 'grade'"):
        compiled(kind, options(), metric=broken, arguments=arguments)


class Nothing(Teleprompter):
    def compile(self, student, *, trainset):
        return None


class Broken(Teleprompter):
    def compile(self, student, *, trainset):
        raise RuntimeError("out of ideas")


def test_an_optimizer_that_returns_nothing_or_fails_says_so():
    with pytest.raises(CompileError, match="Nothing returned NoneType"):
        compiled(Nothing())
    with pytest.raises(CompileError, match="Broken failed: RuntimeError: out of ideas"):
        compiled(Broken())
    with pytest.raises(CompileError, match=r"SIMBA failed.*Trainset too small"):
        compiled(SIMBA, {"bsize": 100})
    with pytest.raises(InputError, match="expected a DSPy optimizer"):
        compiled(7)
    with pytest.raises(InputError, match="gave int"):
        compiled(lambda metric: 7)


def failing(share, error=None):
    """A model that fails on one call in so many."""
    calls, lock = [0], threading.Lock()

    def answer(prompt):
        with lock:
            calls[0] += 1
            if calls[0] % share == 0:
                return error or dspy.lm15.ServerError("busy")
        return skilled(prompt)

    return scripted_lm(answer, num_retries=0)


def test_a_model_that_fails_on_a_third_of_its_calls_is_asked_again():
    lm = failing(3)
    program = compiled(BootstrapFewShot, {"max_labeled_demos": 2}, lm=lm)
    assert program.card["chosen"]["kept"]
    assert program.card["spent"]["calls"] == len(lm.engine.prompts)


def test_questions_that_are_lost_make_a_degraded_card():
    lm = failing(3, dspy.lm15.InvalidRequestError("no"))
    card = compiled(BootstrapFewShot, {"max_labeled_demos": 2}, lm=lm).card
    assert card["degraded"]
    assert card["spent"]["lost_questions"] > 5


@pytest.mark.parametrize("name", ["BootstrapFewShot", "MIPROv2", "SIMBA", "GEPA", "COPRO"])
def test_a_model_that_always_fails_is_an_error(name):
    kind, options, arguments = OPTIMIZERS[name]
    with pytest.raises(ModelError, match="busy"):
        compiled(kind, options(), lm=failing(1), arguments=arguments)
    with pytest.raises(dspy.LMError, match="bad key"):
        compiled(kind, options(), lm=failing(1, dspy.lm15.AuthError("bad key")),
                 arguments=arguments)  # fmt: skip


def test_what_cannot_be_compiled_says_so():
    lm = scripted_lm("1")
    lm.engine.evidence = ("likelihood", "generate")
    with pytest.raises(InputError, match="by likelihood"):
        compiled(
            LabeledFewShot, lm=lm, student=dr.ScoreSort(dr.PointwiseJudge(evidence="likelihood"))
        )
    alike = labelled(6, grades=(1, 1, 1))
    with pytest.raises(InputError, match="give no pairwise questions"):
        JudgeCompiler(LabeledFewShot, lm=scripted_lm("A")).compile(
            dr.MergeSort(dr.PairwiseJudge()), trainset=alike, valset=alike
        )


def test_the_metric_may_be_set_up_before_the_judge_is_known():
    metric = JudgeMetric(windows="kendall", success=0.5)
    options = {"reflection_lm": writer(), "max_metric_calls": 60}
    program = compiled(dspy.GEPA(metric=metric, **options))
    assert MAGIC in program.judge.signature.instructions
    assert metric.judge is None


def test_a_teacher_gives_the_demonstrations():
    teacher = dr.ScoreSort(dr.PointwiseJudge())
    taught = JudgeCompiler(LabeledFewShot, {"k": 2}, lm=scripted_lm(skilled), per_query=4)
    teacher = taught.compile(teacher, trainset=TRAIN, valset=VAL)
    options = {"max_labeled_demos": 0, "max_bootstrapped_demos": 3}
    compiler = JudgeCompiler(BootstrapFewShot, options, lm=scripted_lm(skilled), per_query=4)
    student = dr.ScoreSort(dr.PointwiseJudge())
    program = compiler.compile(student, trainset=TRAIN, valset=VAL, teacher=teacher)
    grades = {demo["relevance"] for demo in program.judge.predict.demos}
    assert grades - {"1"}
    assert program.card["validation"]["compiled"] == 1.0


@pytest.mark.parametrize("name", ["RandomSearch", "GEPA", "MIPROv2", "COPRO", "SIMBA"])
@pytest.mark.parametrize("most", [60, 90])
def test_max_calls_holds_over_all_models_and_keeps_the_best_prompt_tried(name, most):
    kind, options, arguments = OPTIMIZERS[name]
    lm, given = scripted_lm(skilled), options()
    program = compiled(kind, given, lm=lm, arguments=arguments, max_calls=most)
    writers = [value for value in given.values() if isinstance(value, dspy.LM)]
    asked = sum(len(each.engine.prompts) for each in [lm, *writers])
    assert asked <= most
    assert program.card["spent"]["calls"] == asked
    if most == 60:
        assert program.card["stopped"] == "max_calls=60"


def test_a_budget_that_leaves_nothing_for_the_optimizer_says_so():
    with pytest.raises(InputError, match="takes 48"):
        compiled(LabeledFewShot, {"k": 2}, max_calls=40)
