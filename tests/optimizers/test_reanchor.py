"""Thresholds, cuts and weights of decisions, fitted to labels."""

import dspy
import pytest
from dspy.clients.base_lm import record_history
from dspy.experimental import Choice
from dspy.utils.callback import with_callbacks

import dspy_rerank as dr
from dspy_rerank.errors import CompileError, EvidenceError, InputError
from dspy_rerank.optimizers import ReAnchor, Recipe
from dspy_rerank.testing import scripted_lm

WORDS = ("nothing", "some", "much", "all")


class Biased:
    """Knows every passage's grade by its last word, and leans: to low grades, yes, the first."""

    supports_decision_requests = True
    cache = True
    model = "scripted/decisions"

    def __init__(self, broken=()):
        self.broken = broken
        self.asked, self.history, self.callbacks = [], [], []

    @with_callbacks
    def __call__(self, state, questions):
        return self._answers(state, questions)

    @with_callbacks
    async def acall(self, state, questions):
        return self._answers(state, questions)

    def _answers(self, state, questions):
        self.asked.append(state)
        record_history(self, {"outputs": ["{}"], "cache_hit": False, "response": None})
        if len(self.asked) in self.broken:
            raise dspy.LMServerError("busy")
        return {name: self._answer(state["inputs"], q) for name, q in questions.items()}

    def _answer(self, inputs, question):
        if question["type"] == "choice":
            shown = inputs["passages"].split("Passage [")[1:]
            known = {p[0]: 0.5 + grade(p) for p in shown}
            known = {label: known.get(label, 0.1) for label in question["criteria"]}
            known["A"] *= 4
            total = sum(known.values())
            return {"probabilities": {k: v / total for k, v in known.items()}, "confidence": 0.5}
        known = grade(inputs["passage"])
        if question["type"] == "noul":
            return {"noul": 0.55 + 0.1 * known}
        mean = known * 0.4
        low = int(mean)
        masses = dict.fromkeys(range(4), 0.0)
        masses[low], masses[min(low + 1, 3)] = 1 - (mean - low), mean - low
        return {"probabilities": masses, "confidence": 0.5}

    def __deepcopy__(self, memo):
        return self


def grade(text):
    return WORDS.index(text.split()[-1])


def labelled(queries=8):
    grades = [0, 1, 2, 3]
    return dr.datasets.from_examples(
        dspy.Example(
            query=f"query {i}",
            documents=[f"page {i} {g} {WORDS[g]}" for g in grades],
            relevance=grades,
        )
        for i in range(queries)
    )


class YesNo(dspy.Signature):
    """Does the passage answer the query?"""

    query: str = dspy.InputField()
    passage: str = dspy.InputField()
    relevant: bool = dspy.OutputField()


STUDENTS = {
    "cuts": lambda: dr.ScoreSort(dr.PointwiseJudge()),
    "threshold": lambda: dr.ScoreSort(dr.PointwiseJudge(YesNo)),
    "weights": lambda: dr.HeapSort(dr.SetwiseJudge(), children=3),
}


def compiled(kind, lm=None, **options):
    optimizer = ReAnchor(lm=lm or Biased(), window=4, **options)
    data = labelled()
    return optimizer.compile(STUDENTS[kind](), trainset=data[:5], valset=data[5:])


@pytest.mark.parametrize("kind", STUDENTS)
def test_a_leaning_model_is_read_as_its_labels_say(kind):
    found = compiled(kind)
    told = found.card["validation"]
    assert told["compiled"] > told["uncompiled"]
    assert list(found.judge.settings["anchors"]) == [kind]
    assert found.card["chosen"]["anchors"] == found.judge.settings["anchors"]


def test_pairs_lose_the_favour_for_a_place():
    student = dr.MergeSort(dr.PairwiseJudge(swap=False))
    data = labelled()
    documents = ["page x 0 nothing", "page x 3 all"]
    lm = Biased()
    found = ReAnchor(lm=lm).compile(student, trainset=data[:5], valset=data[5:])
    with dspy.context(lm=lm):
        assert student(query="q", documents=documents[::-1]).ranking[0].text == documents[1]
        winners = [
            sorter(query="q", documents=["page x 1 some", documents[1]]).ranking[0].text
            for sorter in (student, found)
        ]
    assert found.judge.anchors["weights"]["A"] < 1
    assert winners == ["page x 1 some", "page x 3 all"]


def test_grades_mean_after_the_fit_what_the_labels_mean():
    found = compiled("cuts")
    documents = [f"page {WORDS[g]}" for g in range(4)]
    with dspy.context(lm=Biased()):
        before = STUDENTS["cuts"]()(query="q", documents=documents).ranking
        after = found(query="q", documents=documents).ranking
    assert list(before.indices) == list(after.indices) == [3, 2, 1, 0]
    assert [round(item.score) for item in after] == [3, 2, 1, 0]
    assert [round(item.score) for item in before] == [1, 1, 0, 0]


def test_each_question_is_put_once():
    lm = Biased()
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    found = compiled("cuts", lm)
    questions = {str(state["inputs"]) for state in lm.asked}
    assert len(lm.asked) == len(questions) == 8 * 4
    assert found.card["spent"]["calls"] == 8 * 4


def test_the_student_is_left_as_it_is():
    student = STUDENTS["cuts"]()
    lm = Biased()
    student.set_lm(lm)
    data = labelled()
    found = ReAnchor().compile(student, trainset=data[:5], valset=data[5:])
    assert student.judge.settings["anchors"] is None
    assert student.judge.predict.lm is found.judge.predict.lm is lm


def test_what_does_not_help_is_not_kept():
    def right(gold, pred, trace=None):
        return 1.0

    found = compiled("cuts", metric=right)
    assert found.judge.settings["anchors"] is None
    assert found.card["chosen"]["kept"] is False


@pytest.mark.parametrize("kind", STUDENTS)
def test_the_fit_is_saved_with_the_program(kind, tmp_path):
    found = compiled(kind)
    loaded = dr.load(dr.save(found, tmp_path / "program.json"))
    assert loaded.judge.settings == found.judge.settings
    assert loaded.card["chosen"] == found.card["chosen"]
    documents = [f"page {WORDS[g]}" for g in (1, 3, 0, 2)]
    with dspy.context(lm=Biased()):
        rankings = [r(query="q", documents=documents).ranking for r in (found, loaded)]
    scores = [[(item.index, item.score) for item in ranking] for ranking in rankings]
    assert scores[0] == scores[1]


def test_the_fit_survives_in_a_program_of_the_users(tmp_path):
    class Search(dspy.Module):
        def __init__(self, reranker):
            super().__init__()
            self.reranker = reranker

    Search(compiled("cuts")).save(tmp_path / "state.json")
    loaded = Search(STUDENTS["cuts"]())
    loaded.load(tmp_path / "state.json")
    assert len(loaded.reranker.judge.anchors["cuts"]) == 3


def test_a_passing_failure_is_tried_again():
    assert "cuts" in compiled("cuts", Biased(broken={3, 9})).judge.settings["anchors"]


def test_max_calls_holds():
    lm = Biased()
    assert "cuts" in compiled("cuts", lm, max_calls=8 * 4).judge.settings["anchors"]
    with pytest.raises(InputError, match="max_calls=31, but fitting and comparing take 32"):
        compiled("cuts", lm, max_calls=31)
    assert len(lm.asked) == 8 * 4


def test_failures_that_take_the_calls_of_the_fit_are_told():
    lm = Biased(broken={3, 9})
    with pytest.raises(CompileError, match=r"max_calls=32 were spent .* a smaller per_query"):
        compiled("cuts", lm, max_calls=8 * 4)
    assert len(lm.asked) == 8 * 4


def test_a_chat_model_has_nothing_to_fit():
    with pytest.raises(InputError, match="writes its answers"):
        compiled("cuts", scripted_lm("2"))


def test_a_listwise_judge_is_refused():
    with pytest.raises(EvidenceError, match="PointwiseJudge"):
        ReAnchor(lm=Biased()).compile(dr.TopDown(dr.ListwiseJudge()), trainset=labelled())


def test_a_metric_that_raises_stops_the_fit():
    def broken(gold, pred, trace=None):
        raise ZeroDivisionError("oops")

    with pytest.raises(CompileError, match="oops"):
        compiled("cuts", metric=broken)


def test_groups_larger_than_the_lists_are_refused():
    optimizer = ReAnchor(lm=Biased(), window=9)
    with pytest.raises(InputError, match="at least 9 documents"):
        optimizer.compile(STUDENTS["weights"](), trainset=labelled())


SIDES = Choice[("A", "the first"), ("B", "the second")]


class Better(dspy.Signature):
    """Decide which passage is better."""

    query: str = dspy.InputField()
    passages: str = dspy.InputField()
    winner: SIDES = dspy.OutputField(desc="the better")


def test_dspys_own_reanchor_fits_a_judge_by_the_whole_ranking():
    student = dr.MergeSort(dr.PairwiseJudge(Better, swap=False))
    examples = [
        dspy.Example(query=f"q{i}", documents=[f"page {i} {WORDS[bad]}", f"page {i} all"])
        .with_inputs("query", "documents")
        for i, bad in enumerate((0, 1, 2, 1, 2, 1, 2, 0, 1, 2))
    ]  # fmt: skip

    def best_first(gold, pred, trace=None):
        return float(pred.ranking[0].text == gold.documents[1])

    with dspy.context(lm=Biased()):
        optimizer = dspy.experimental.ReAnchor(best_first, num_threads=2, require_cache=False)
        found = optimizer.compile(student, trainset=examples)
        ranking = found(query="q", documents=["page much", "page all"]).ranking
    assert optimizer.report["train_score"] > optimizer.report["train_score_before"]
    assert found.judge.anchors["weights"]["A"] < 1
    assert ranking[0].text == "page all"


def test_a_recipe_names_it_and_a_prompt_optimizer_says_what_to_use_on_a_decision_model():
    given = {"trainset": labelled(), "valset": labelled(4), "lm": Biased()}
    student = dr.ScoreSort(dr.PointwiseJudge())
    fitted = Recipe("anchors", judge={"optimizer": "ReAnchor"}).compile(student, **given)
    assert fitted.judge.settings["anchors"]
    with pytest.raises(InputError, match=r"optimizers[.]ReAnchor"):
        Recipe("shots", judge={"optimizer": "LabeledFewShot"}).compile(student, **given)
