"""Decision models by the real SDK: against a real server, and against one that misbehaves."""

import json
import logging
import pickle
import sys
import threading
import time
from contextlib import contextmanager

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.decisions import SystemOne, misfit
from dspy_rerank.errors import InputError, MissingExtraError
from dspy_rerank.models import aliases

pytest.importorskip(
    "typesafe_sdk", reason="the TypeSafe SDK is missing: pip install 'dspy-rerank[decision]'"
)

CANARY = "canary-key-5f3a"
DOCUMENTS = ["Bananas are yellow.", "Paris is the capital of France.", "France borders Spain."]
QUERY = "capital of France"


class YesNo(dspy.Signature):
    """Does the passage answer the query?"""

    query: str = dspy.InputField()
    passage: str = dspy.InputField()
    relevant: bool = dspy.OutputField()


RERANKERS = {
    "grade": lambda: dr.ScoreSort(dr.PointwiseJudge()),
    "yes or no": lambda: dr.ScoreSort(dr.PointwiseJudge(YesNo)),
    "pairwise": lambda: dr.MergeSort(dr.PairwiseJudge()),
    "setwise": lambda: dr.HeapSort(dr.SetwiseJudge(), children=2),
}


@pytest.fixture(autouse=True)
def no_aliases():
    yield
    aliases.forget()


@contextmanager
def doubling(base_url, model="served", api_key=None):
    """dev-double on loopback over an OpenAI-compatible server."""
    reason = "dev-double is missing: pip install dev-double"
    uvicorn = pytest.importorskip("uvicorn", reason=reason)
    config = pytest.importorskip("dev_double.apps.config", reason=reason)
    from dev_double.apps.server.app import create_app

    app = create_app(config.Settings(base_url=base_url, model=model, api_key=api_key))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def reader(chat):
    """A chat model that knows the capital of France, for dev-double's three kinds of question."""

    def answer(body):
        asked = body["messages"][1]["content"]
        state = asked.partition("<input>")[2].partition("</input>")[0]
        right = "Paris" in state
        if "Levels" in asked:
            odds = {"3": 0.7, "2": 0.2, "0": 0.1} if right else {"0": 0.7, "1": 0.2, "3": 0.1}
        elif "yes or no" in asked:
            odds = {"yes": 0.9, "no": 0.1} if right else {"no": 0.8, "yes": 0.2}
        else:
            label = next((c for c in "ABC" if f"[{c}]: Paris" in state), None)
            other = "None" if '"None"' in asked or "- None" in asked else "Tie"
            odds = {label or other: 0.8, other if label else "A": 0.2}
        return chat(next(iter(odds)), odds)

    return answer


def system_one(*said, **server):
    """Bodies of System One's answers to a question named ``relevance``."""
    return [
        {"model": "m", "usage": {"input_tokens": 100, "output_tokens": 1}, **server,
         "answers": {"relevance": {"type": "score", "score": 1.0, "confidence": 0.5,
                                   "legend": {"0": "a", "1": "b", "2": "c", "3": "d"},
                                   "probabilities": dict(zip("0123", each, strict=False))}}}
        for each in said
    ]  # fmt: skip


GOOD = (0.1, 0.2, 0.3, 0.4)


@pytest.mark.parametrize("kind", RERANKERS)
def test_every_judge_but_listwise_ranks_by_a_decision_model(serve, chat, kind):
    server = serve(reader(chat))
    with doubling(server.url) as url:
        lm = dr.models.decision("served", base_url=url)
        with dspy.context(lm=lm):
            ranking = RERANKERS[kind]()(query=QUERY, documents=DOCUMENTS).ranking
    assert ranking[0].text == DOCUMENTS[1]
    assert {j.confidence_source for j in ranking.judgments} == {"model"}
    assert all(0 < j.confidence <= 1 for j in ranking.judgments)
    assert ranking.usage.calls == len(server.asked)
    assert ranking.usage.prompt_tokens == 7 * len(server.asked)
    assert (ranking.unknowns, ranking.degraded) == (0, False)


def test_a_grade_lies_between_the_levels(serve, chat):
    with doubling(serve(reader(chat)).url) as url:
        lm = dr.models.decision("served", base_url=url)
        with dspy.context(lm=lm):
            best = dr.ScoreSort(dr.PointwiseJudge())(query=QUERY, documents=DOCUMENTS).ranking[0]
    assert best.score == pytest.approx(0.7 * 3 + 0.2 * 2)
    assert best.confidence == pytest.approx(0.7)


def test_each_passage_is_asked_about_alone(serve, chat):
    server = serve(reader(chat))
    with doubling(server.url) as url:
        dr.rerank(QUERY, DOCUMENTS, lm=dr.models.decision("served", base_url=url))
    shown = [sum(d in call["body"]["messages"][1]["content"] for d in DOCUMENTS)
             for call in server.asked]  # fmt: skip
    assert shown == [1, 1, 1]


def test_a_saved_program_runs_on_a_chat_model_or_a_decision_model_by_one_line(
    serve, chat, tmp_path
):
    server = serve(reader(chat))
    graded = serve(lambda body: chat("3" if "Paris" in str(body["messages"]) else "0"))
    path = dr.save(dr.ScoreSort(dr.PointwiseJudge()), tmp_path / "program.json")
    found = {}
    with doubling(server.url) as url:
        for model, base in (("openai/served", graded.url), ("typesafe/served", url)):
            config = tmp_path / "litellm.yaml"
            config.write_text(
                "model_list:\n  - model_name: judge\n    litellm_params:\n"
                f"      model: {model}\n      api_base: {base}\n"
            )
            aliases.forget()
            dr.models.load(config)
            ranking = dr.load(path, lm="judge")(query=QUERY, documents=DOCUMENTS).ranking
            found[model] = (ranking[0].text, ranking.usage.calls, ranking.evidence)
    assert found["openai/served"][:2] == found["typesafe/served"][:2] == (DOCUMENTS[1], 3)
    assert found["typesafe/served"][2] == "stated"


def test_a_program_bound_to_an_alias_saves_the_alias_alone(serve, tmp_path, monkeypatch, caplog):
    monkeypatch.setenv("DECISION_KEY", CANARY)
    server = serve(*system_one(GOOD))
    config = tmp_path / "litellm.yaml"
    config.write_text(
        "model_list:\n  - model_name: judge\n    litellm_params:\n      model: typesafe/m\n"
        f"      api_base: {server.url}\n      api_key: os.environ/DECISION_KEY\n"
        "      input_cost_per_token: 0.001\n      output_cost_per_token: 0.0\n"
    )
    caplog.set_level(logging.DEBUG)
    lm = dr.models.load(config)["judge"]
    reranker = dr.ScoreSort(dr.PointwiseJudge())
    reranker.set_lm(lm)
    ranking = reranker(query=QUERY, documents=DOCUMENTS).ranking
    path = dr.save(reranker, tmp_path / "program.json")
    reranker.save(tmp_path / "state.json")
    assert server.asked[0]["headers"]["Authorization"] == f"Bearer {CANARY}"
    assert ranking.usage.cost == pytest.approx(0.3)
    assert json.loads(path.read_text())["lm"] == "judge"
    assert dr.load(path).judge.predict.lm is lm
    shown = [path.read_text(), (tmp_path / "state.json").read_text(), repr(lm), str(vars(lm)),
             json.dumps(ranking.to_dict(), default=str), caplog.text, str(lm.history),
             str(lm.dump_state()), repr(pickle.dumps(lm.api_key))]  # fmt: skip
    assert not [text for text in shown if CANARY in text]


def test_a_wrong_key_always_raises_and_is_not_repeated_to_anyone(serve, caplog):
    server = serve((401, {}, {"error": f"the key {CANARY} is wrong"}))
    lm = dr.models.decision("m", base_url=server.url, api_key=CANARY)
    with dspy.context(lm=lm), pytest.raises(dspy.LMAuthError) as raised:
        dr.ScoreSort(dr.PointwiseJudge())(query=QUERY, documents=DOCUMENTS[:1])
    assert CANARY not in str(raised.value) + repr(raised.value) + caplog.text
    assert len(server.asked) == 1


def test_a_server_of_the_users_never_gets_typesafes_own_key(serve, monkeypatch):
    monkeypatch.setenv("TYPESAFE_API_KEY", CANARY)
    server = serve(*system_one(GOOD))
    dr.rerank(QUERY, DOCUMENTS[:1], lm=dr.models.decision("m", base_url=server.url))
    assert server.asked[0]["headers"]["Authorization"] == "Bearer none"


@pytest.mark.parametrize("client", ["ours", "dspy's"])
def test_retries_are_the_rankings_own(serve, client):
    server = serve((500, {}, {"error": "busy"}), *system_one(GOOD))
    lm = dr.models.decision("m", base_url=server.url)
    if client == "dspy's":
        lm = dspy.experimental.TypeSafe("m", base_url=server.url, api_key="k")
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(dr.PointwiseJudge())
        ranking = sorter(query=QUERY, documents=DOCUMENTS[:1]).ranking
    assert (len(server.asked), ranking.usage.failed_calls, ranking.usage.calls) == (2, 1, 1)
    assert len(lm.history) == 1


def test_a_server_that_stays_down_degrades_to_the_incoming_order(serve):
    server = serve((503, {}, {"error": "down"}))
    with dspy.context(lm=dr.models.decision("m", base_url=server.url)):
        sorter = dr.ScoreSort(dr.PointwiseJudge(), error_retries=1, concurrency=1)
        ranking = sorter(query=QUERY, documents=DOCUMENTS).ranking
    assert ranking.degraded
    assert "503" in ranking.reasons[0]
    assert list(ranking.indices) == [0, 1, 2]


def test_a_refusal_waits_as_long_as_it_says(serve):
    server = serve((429, {"Retry-After": "0"}, {"error": "slow down"}), *system_one(GOOD))
    with dspy.context(lm=dr.models.decision("m", base_url=server.url)):
        ranking = dr.ScoreSort(dr.PointwiseJudge())(query=QUERY, documents=DOCUMENTS[:1]).ranking
    assert (ranking.usage.failed_calls, ranking.degraded) == (1, False)


@pytest.mark.parametrize(
    "bad",
    [
        (0.0, 0.0, 0.0, 0.0),
        (0.5, 0.5),
        (0.5, 0.5, 0.5, 2.0),
    ],
)
def test_an_answer_that_does_not_fit_is_asked_again_and_never_cached(serve, bad):
    server = serve(*system_one(bad, GOOD, GOOD))
    with dspy.context(lm=dr.models.decision("m", base_url=server.url)):
        sorter = dr.ScoreSort(dr.PointwiseJudge())
        first = sorter(query=QUERY, documents=DOCUMENTS[:1]).ranking
        again = sorter(query=QUERY, documents=DOCUMENTS[:1]).ranking
    assert first[0].score == pytest.approx(2.0)
    assert (first.usage.calls, first.usage.prompt_tokens) == (2, 200)
    assert "reminder" in server.asked[1]["body"]["state"]["inputs"]
    assert again.usage.cached_calls == 0
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    "body", ["not JSON", {"model": "m"}, {"model": "m", "usage": {}, "answers": {}}]
)
def test_an_answer_that_cannot_be_read_is_a_counted_unknown(serve, body):
    with dspy.context(lm=dr.models.decision("m", base_url=serve(body).url)):
        ranking = dr.ScoreSort(dr.PointwiseJudge())(query=QUERY, documents=DOCUMENTS).ranking
    assert (ranking.unknowns, ranking.degraded) == (3, False)
    assert all(judgment.reason for judgment in ranking.judgments)


def test_a_repeated_question_is_free_and_says_so(serve):
    server = serve(*system_one(GOOD))
    lm = dr.models.decision("m", base_url=server.url, prices=(0.001, 0.0))
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(dr.PointwiseJudge())
        first, again = (sorter(query=QUERY, documents=DOCUMENTS).ranking.usage for _ in range(2))
    assert (first.cached_calls, first.cost) == (0, pytest.approx(0.3))
    assert (again.cached_calls, again.cost, len(server.asked)) == (3, 0.0, 3)


def test_calls_and_money_are_limited_as_for_any_judge(serve):
    server = serve(*system_one(GOOD))
    lm = dr.models.decision("m", base_url=server.url, prices=(0.001, 0.0))
    with dspy.context(lm=lm):
        sorter = dr.ScoreSort(dr.PointwiseJudge(), concurrency=1)
        by_calls = sorter(query=QUERY, documents=DOCUMENTS, max_calls=2).ranking
        by_money = sorter(query="else", documents=DOCUMENTS, max_cost=0.000001).ranking
    assert (by_calls.usage.calls, by_calls.degraded) == (2, True)
    assert (by_money.usage.calls <= 1, by_money.degraded) == (True, True)


def test_without_the_sdk_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "typesafe_sdk", None)
    lm = dr.models.decision("m", base_url="http://127.0.0.1:9")
    with pytest.raises(MissingExtraError, match=r"pip install 'dspy-rerank\[decision\]'"):
        dr.rerank(QUERY, DOCUMENTS, lm=lm)


def test_without_any_key_the_error_says_so(monkeypatch):
    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    with pytest.raises(dspy.LMConfigurationError, match="TYPESAFE_API_KEY"):
        dr.rerank(QUERY, DOCUMENTS, lm="typesafe/jev-latest")


def test_connections_are_kept(serve):
    server = serve(*system_one(GOOD))
    lm = dr.models.decision("m", base_url=server.url, cache=False)
    made = []
    before = SystemOne._sdk_kwargs
    try:
        SystemOne._sdk_kwargs = lambda self: made.append(1) or before(self)
        with dspy.context(lm=lm):
            sorter = dr.ScoreSort(dr.PointwiseJudge(), concurrency=2)
            for _ in range(3):
                sorter(query=QUERY, documents=DOCUMENTS)
    finally:
        SystemOne._sdk_kwargs = before
    assert (len(made), len(server.asked)) == (1, 9)


def test_a_copy_keeps_the_model_the_key_and_the_price():
    lm = dr.models.decision("m", base_url="http://x", api_key=CANARY, prices=(1.0, 2.0))
    made = lm.copy(cache=False)
    assert (made.model, made.base_url, made.cache) == ("m", "http://x", False)
    assert made.api_key.reveal() == CANARY
    assert made.price == lm.price


def test_a_pickle_holds_the_name_of_the_key_and_not_the_key(monkeypatch):
    monkeypatch.setenv("DECISION_KEY", CANARY)
    lm = dr.models.decision("m", base_url="http://x", api_key="os.environ/DECISION_KEY")
    text = pickle.dumps(lm)
    made = pickle.loads(text)
    assert (made.model, made.base_url, made.api_key.reveal()) == ("m", "http://x", CANARY)
    assert CANARY.encode() not in text


def test_the_probe_asks_one_question(serve, chat):
    server = serve(chat("A", {"A": 0.9, "B": 0.1}))
    with doubling(server.url) as url:
        told = dr.models.probe(dr.models.decision("served", base_url=url))
    assert (told.answer, told.confidence, len(server.asked)) == ("A", pytest.approx(0.9), 1)
    assert told.answered
    assert "decision model" in told.problem


def test_a_probe_that_fails_is_a_result(serve):
    told = dr.models.probe(dr.models.decision("m", base_url=serve((500, {}, "down")).url))
    assert not told.answered
    assert "500" in told.problem


def yaml(tmp_path, text):
    path = tmp_path / "litellm.yaml"
    path.write_text(text)
    return dr.models.load(path)


def test_a_decision_model_cannot_share_an_alias(tmp_path):
    entry = "  - {{model_name: judge, litellm_params: {{model: {}}}}}\n"
    loaded = yaml(
        tmp_path, "model_list:\n" + entry.format("typesafe/m") + entry.format("openai/gpt-4o")
    )
    with pytest.raises(InputError, match="alias of its own"):
        loaded["judge"]


def test_a_parameter_that_means_nothing_is_refused(tmp_path):
    loaded = yaml(
        tmp_path,
        "model_list:\n  - model_name: judge\n    litellm_params:\n"
        "      {model: typesafe/m, temperature: 0.5}\n",
    )
    with pytest.raises(InputError, match="temperature"):
        loaded["judge"]


def test_a_name_with_its_provider_is_a_decision_model():
    assert isinstance(dr.models.get("typesafe/jev-latest"), SystemOne)
    assert dr.models.get("typesafe/jev-latest").model == "jev-latest"


@pytest.mark.parametrize(
    ("question", "answer", "words"),
    [
        ({"type": "noul"}, {"noul": 0.5}, ""),
        ({"type": "noul"}, {"noul": 1.5}, "no probability"),
        ({"type": "noul"}, {"noul": True}, "no probability"),
        ({"type": "noul"}, None, "no answer"),
        ({"type": "score", "criteria": ["a", "b"]},
         {"probabilities": {0: 0.5, 1: 0.5}, "confidence": 1.0}, ""),
        ({"type": "score", "criteria": ["a", "b"]},
         {"probabilities": {0: 0.5, 2: 0.5}, "confidence": 1.0}, "not those of its options"),
        ({"type": "choice", "criteria": {"a": None, "b": None}},
         {"probabilities": {"a": 0.0, "b": 0.0}, "confidence": 1.0}, "no distribution"),
        ({"type": "choice", "criteria": {"a": None, "b": None}},
         {"probabilities": {"a": float("nan"), "b": 0.5}, "confidence": 1.0}, "no distribution"),
        ({"type": "choice", "criteria": {"a": None, "b": None}},
         {"probabilities": {"a": 0.5, "b": 0.5}, "confidence": None}, "no confidence"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_question_is_said(question, answer, words):
    found = misfit({"x": question}, {} if answer is None else {"x": answer})
    assert words in found
    assert bool(found) == bool(words)


@pytest.mark.local_model
@pytest.mark.skipif(not dr.models.available(), reason="the embedded model is not installed")
def test_the_embedded_model_makes_decisions():
    with dr.models.serve() as chat, doubling(chat.url, api_key=chat.api_key) as url:
        lm = dr.models.decision("embedded", base_url=url, timeout=300)
        with dspy.context(lm=lm):
            sorter = dr.ScoreSort(dr.PointwiseJudge())
            ranking = sorter(query=QUERY, documents=DOCUMENTS[:2]).ranking
    assert (ranking.usage.calls, ranking.unknowns, ranking.degraded) == (2, 0, False)
    assert all(0 <= item.score <= 3 for item in ranking)
    assert ranking.usage.prompt_tokens > 200


def stingy(chat):
    """A chat model that knows the grades, which pages say, and gives no more than 1.2 of 3."""

    def answer(body):
        state = body["messages"][1]["content"].partition("</input>")[0]
        mean = 0.4 * int(state.partition("worth ")[2][0])
        low = int(mean)
        odds = {str(low): 1 - (mean - low) - 1e-6, str(low + 1): mean - low + 1e-6}
        return chat(str(low), odds)

    return answer


def test_reanchor_over_the_real_api_is_fitted_saved_and_loaded(serve, chat, tmp_path):
    examples = [
        dspy.Example(query=f"q{i}", documents=[f"{i} is worth {g}" for g in (2, 0, 3, 1)],
                     relevance=[2, 0, 3, 1])
        for i in range(6)
    ]  # fmt: skip
    data = dr.datasets.from_examples(examples)
    server = serve(stingy(chat))
    with doubling(server.url) as url:
        lm = dr.models.decision("served", base_url=url)
        optimizer = dr.optimizers.ReAnchor(lm=lm)
        student = dr.ScoreSort(dr.PointwiseJudge())
        found = optimizer.compile(student, trainset=data[:4], valset=data[4:])
        asked = len(server.asked)
        loaded = dr.load(dr.save(found, tmp_path / "program.json"), lm=lm)
        ranking = loaded(query="new", documents=["worth 1", "worth 3", "worth 0"]).ranking
    assert (asked, found.card["chosen"]["kept"]) == (6 * 4, True)
    assert [round(item.score) for item in ranking] == [3, 1, 0]
    assert list(ranking.indices) == [1, 0, 2]
