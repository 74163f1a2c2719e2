"""Reranking inside DSPy programs."""

import asyncio

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.errors import DocumentTypeError, ModelError
from dspy_rerank.integrations.retriever import PassageReranker, RerankedRetriever
from dspy_rerank.testing import oracle_judge, scripted_lm
from tests.integrations.builders import BEST, BY_GRADE, CORPUS, GRADES, QUERY, grade_of


@pytest.fixture
def retrieve(search):
    def found(query):
        indices, scores = search(query)
        passages = [CORPUS[i] for i in indices]
        return dspy.Prediction(passages=passages, indices=indices, scores=scores, corpus="files")

    return found


def test_a_prediction_comes_back_in_the_same_shape(retrieve, reranker, judge_lm):
    found = retrieve(QUERY)
    best = PassageReranker(reranker, lm=judge_lm, k=3)(QUERY, found)
    assert best.passages == BY_GRADE
    assert [CORPUS[i] for i in best.indices] == BY_GRADE
    assert best.scores == [3.0, 2.0, 1.0]
    assert best.corpus == "files"
    assert best.ranking.usage.calls == len(CORPUS)
    assert found.passages == retrieve(QUERY).passages


def test_a_list_comes_back_as_a_list(reranker, judge_lm):
    assert PassageReranker(reranker, lm=judge_lm)(QUERY, CORPUS, k=1) == [BEST]
    assert PassageReranker(reranker, lm=judge_lm)(QUERY, []) == []


def test_a_prediction_without_scores_gains_none(reranker, judge_lm):
    found = dspy.Prediction(passages=CORPUS, indices=list(range(5)))
    best = PassageReranker(reranker, lm=judge_lm, k=1)(QUERY, found)
    assert set(best.keys()) == {"passages", "indices", "ranking"}
    assert (best.passages, best.indices) == ([BEST], [1])


def test_passages_of_retrieval_servers_are_read(reranker, judge_lm):
    rows = [{"long_text": text, "pid": i} for i, text in enumerate(CORPUS)]
    best = PassageReranker(reranker, lm=judge_lm, k=1)(QUERY, rows)
    assert best == [rows[1]]
    best = PassageReranker(reranker, lm=judge_lm, k=1)(QUERY, [{"text": t} for t in CORPUS])
    assert best == [{"text": BEST}]


@pytest.mark.parametrize("found", ["one text", None, dspy.Prediction(answer="x")])
def test_what_holds_no_passages_is_refused(reranker, found):
    with pytest.raises(DocumentTypeError, match="passages"):
        PassageReranker(reranker)(QUERY, found)


def test_dspys_own_retriever_is_wrapped(reranker, judge_lm):
    np = pytest.importorskip("numpy")
    words = sorted({word for text in [*CORPUS, QUERY] for word in text.lower().split()})

    def embed(texts):
        return np.array([[text.lower().split().count(w) for w in words] for text in texts], float)

    retriever = RerankedRetriever(
        dspy.retrievers.Embeddings(CORPUS, embed, k=5), reranker, lm=judge_lm, k=2
    )
    assert retriever(QUERY).passages == BY_GRADE[:2]
    assert asyncio.run(retriever.acall(QUERY)).passages == BY_GRADE[:2]


def test_asynchronous_retrievers_are_awaited(retrieve, reranker, judge_lm):
    async def later(query):
        await asyncio.sleep(0)
        return retrieve(query)

    class Module(dspy.Module):
        def forward(self, query):
            return retrieve(query)

        async def aforward(self, query):
            return await later(query)

    for source in (retrieve, later, Module()):
        retriever = RerankedRetriever(source, reranker, lm=judge_lm, k=1)
        assert retriever(QUERY).passages == [BEST]
        assert asyncio.run(retriever.acall(QUERY)).passages == [BEST]


def test_a_failing_model_leaves_everything_as_it_came(retrieve, reranker, broken_lm):
    found = retrieve(QUERY)
    same = PassageReranker(reranker, lm=broken_lm)(QUERY, found)
    assert (same.passages, same.scores) == (found.passages, found.scores)
    assert same.ranking.degraded
    with pytest.raises(ModelError):
        PassageReranker(reranker, lm=broken_lm, raise_on_error=True)(QUERY, found)


def test_sorters_without_scores_give_none(retrieve):
    sorter = dr.MergeSort(oracle_judge(GRADES, "pairwise"))
    assert set(PassageReranker(sorter)(QUERY, retrieve(QUERY)).scores) == {None}


def test_a_saved_program_or_the_default_will_do(retrieve, program, judge_lm):
    with dspy.context(lm=judge_lm):
        assert PassageReranker(program)(QUERY, CORPUS)[0] == BEST
        assert isinstance(PassageReranker().reranker, dr.TopDown)
    assert isinstance(PassageReranker().reranker, dr.TopDown)


class Rag(dspy.Module):
    """A user's program: retrieve, rerank, answer."""

    def __init__(self, retrieve, reranker):
        super().__init__()
        self.retrieve = RerankedRetriever(retrieve, reranker, k=1)
        self.answer = dspy.Predict("context, question -> answer")

    def forward(self, question):
        context = self.retrieve(question).passages
        return self.answer(context=context, question=question)


def scripted_rag(prompt):
    """One model for both parts: it grades where a grade is asked for, else it answers."""
    if "[[ ## question ## ]]" in prompt:
        asked = prompt.rpartition("[[ ## context ## ]]")[2]
        said = "the trash" if BEST in asked else "no idea"
        return f"[[ ## answer ## ]]\n{said}\n\n[[ ## completed ## ]]"
    return grade_of(prompt)


def test_a_rag_program_is_optimized_end_to_end(retrieve, tmp_path):
    """The judge's calls are in the trace, become its demos, and reach its prompts."""
    lm = scripted_lm(scripted_rag)
    rag = Rag(retrieve, dr.ScoreSort(dr.PointwiseJudge(evidence="generate")))
    trainset = [
        dspy.Example(question=question, answer="the trash").with_inputs("question")
        for question in (QUERY, "where is a deleted file restored")
    ]
    seen = []

    def metric(example, prediction, trace=None):
        if trace is not None:
            seen.append([type(step[0].signature).__name__ for step in trace])
        return example.answer == prediction.answer

    names = [name for name, _ in rag.named_predictors()]
    assert names == ["retrieve.rerank.reranker.judge.predict", "answer"]
    optimizer = dspy.BootstrapFewShot(metric=metric, max_bootstrapped_demos=2, max_labeled_demos=0)
    with dspy.context(lm=lm):
        compiled = optimizer.compile(rag, trainset=trainset)
        judge = compiled.retrieve.rerank.reranker.judge
        assert [len(steps) for steps in seen] == [len(CORPUS) + 1] * 2
        assert len(judge.predict.demos) == len(compiled.answer.demos) == 2
        assert not rag.retrieve.rerank.reranker.judge.predict.demos
        lm.engine.prompts.clear()
        assert compiled(question=QUERY).answer == "the trash"
    judging = [p for p in lm.engine.prompts if "[[ ## question ## ]]" not in p]
    shown = judge.predict.demos[0]["passage"]
    assert len(judging) == len(CORPUS)
    assert all(shown in prompt for prompt in judging)
    compiled.save(tmp_path / "rag.json")
    again = Rag(retrieve, dr.ScoreSort(dr.PointwiseJudge(evidence="generate")))
    again.load(tmp_path / "rag.json")
    demos = again.retrieve.rerank.reranker.judge.predict.demos
    assert [demo["passage"] for demo in demos] == [demo["passage"] for demo in judge.predict.demos]


def test_a_compiled_reranker_is_left_as_it_is(retrieve, reranker):
    reranker._compiled = True
    rag = Rag(retrieve, reranker)
    assert [name for name, _ in rag.named_predictors()] == ["answer"]
