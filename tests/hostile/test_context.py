"""Prompts that are too long: cut or divided before they are asked, and after a refusal once."""

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.context import ANSWER, LEAST, level, set_window, window_of
from dspy_rerank.errors import InputError, ModelError
from dspy_rerank.reading.labels import estimate_tokens
from dspy_rerank.testing import FaultServer, limited, oracle_answers
from dspy_rerank.testing.windows import SILENT, STATED
from tests.faults.harness import ENGINES, language_model

JUDGES = {
    "pointwise": lambda: dr.ScoreSort(dr.PointwiseJudge(), error_retries=0),
    "pairwise": lambda: dr.AllPairs(dr.PairwiseJudge(), error_retries=0),
    "setwise": lambda: dr.HeapSort(dr.SetwiseJudge(), error_retries=0),
    "listwise": lambda: dr.TopDown(dr.ListwiseJudge(), error_retries=0),
}
RIGHT = [3, 4, 0, 2, 1]


class ByFirstWord(dict):
    """Grades of passages by their first word, so that they are known when cut."""

    def __missing__(self, text):
        return float(text.split()[0])


def passages(words):
    """Five passages of about so many tokens, best at position 3."""
    return [f"{grade} " + "word " * words for grade in (1.5, 0.2, 1.1, 2.9, 2.2)]


def serving(tokens, message=STATED):
    return FaultServer(limited(oracle_answers(ByFirstWord()), tokens, message=message))


def ranked(lm, kind, documents, query="q", **options):
    with dspy.context(lm=lm):
        return JUDGES[kind]()(query, documents, **options).ranking


@pytest.mark.parametrize("kind", JUDGES)
def test_a_known_context_is_kept_to_without_a_refusal(kind):
    with serving(700) as server:
        lm = language_model(server)
        set_window(lm, 933)
        ranking = ranked(lm, kind, passages(1000))
        assert ranking.indices == RIGHT
        assert ranking.truncated == (0, 1, 2, 3, 4)
        assert (ranking.usage.failed_calls, ranking.unknowns, ranking.degraded) == (0, 0, False)
        assert server.requests == ranking.usage.calls
        assert all("Query: q" in asked.prompt for asked in server.asked)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("kind", JUDGES)
def test_a_refusal_is_learned_from_and_the_question_asked_once_more(kind, engine):
    with serving(700) as server:
        ranking = ranked(language_model(server, engine), kind, passages(1000), concurrency=1)
        assert ranking.indices == RIGHT
        assert ranking.truncated == (0, 1, 2, 3, 4)
        assert (ranking.unknowns, ranking.degraded) == (0, False)
        assert ranking.usage.failed_calls == 1
        assert server.requests == ranking.usage.calls + 1


def test_a_refusal_that_names_no_limit_halves_the_question():
    with serving(1500, SILENT) as server:
        ranking = ranked(language_model(server), "listwise", passages(500))
        assert ranking.indices == RIGHT
        assert ranking.truncated
        assert (server.requests, ranking.usage.failed_calls) == (2, 1)


def test_short_passages_keep_their_end_where_long_ones_are_cut():
    documents = [*passages(1000)[:2], "2.9 short", "2.2 short"]
    with serving(700) as server:
        ranking = ranked(language_model(server), "listwise", documents)
        assert ranking.indices == [2, 3, 0, 1]
        assert ranking.truncated == (0, 1)
        assert [item.truncated for item in ranking] == [False, False, True, True]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_refused_window_that_is_then_asked_about_in_parts_counts_its_refusal(engine):
    documents = [f"{(7 * i) % 20} " + "word " * 200 for i in range(20)]
    with serving(1000) as server, dspy.context(lm=language_model(server, engine)):
        sorter = dr.SlidingWindow(dr.ListwiseJudge(), window=20, step=10, concurrency=1)
        ranking = sorter("q", documents, top_k=1).ranking
        assert ranking[0].text.split()[0] == "19"
        assert ranking.usage.failed_calls >= 1
        assert server.requests == ranking.usage.calls + ranking.usage.failed_calls


@pytest.mark.parametrize(("sorter", "n"), [
    (dr.SlidingWindow(dr.ListwiseJudge(), window=20, step=10), 20),
    (dr.HeapSort(dr.SetwiseJudge(), children=19), 20),
])  # fmt: skip
def test_a_window_that_would_be_cut_to_crumbs_is_asked_about_in_parts(sorter, n):
    documents = [f"{(7 * i) % n} " + "word " * 200 for i in range(n)]
    with serving(1000) as server, dspy.context(lm=language_model(server)):
        set_window(dspy.settings.lm, 1333)
        ranking = sorter("q", documents, top_k=1, max_calls=2000).ranking
        assert ranking[0].text.split()[0] == str(n - 1)
        assert (ranking.usage.failed_calls, ranking.unknowns) == (0, 0)
        first = ranking.judgments[0]
        assert (first.status, "in parts" in first.reason, len(first.group)) == ("repaired", True, n)
        assert first.asks >= 3
        longest = max(estimate_tokens(asked.prompt) for asked in server.asked)
        assert longest <= 1000


def test_an_order_in_parts_has_the_best_half_of_each_half_in_order():
    documents = [f"{i} " + "word " * 300 for i in range(8)]
    with serving(600) as server, dspy.context(lm=language_model(server)):
        set_window(dspy.settings.lm, 800)
        ranking = dr.SlidingWindow(dr.ListwiseJudge(), window=8, step=4)("q", documents).ranking
        assert ranking.indices[:2] == [7, 6]
        assert sorted(ranking.indices) == list(range(8))
        assert len(ranking.judgments) == 1


@pytest.mark.parametrize("kind", JUDGES)
def test_query_and_instructions_are_never_cut(kind):
    with serving(700) as server:
        lm = language_model(server)
        set_window(lm, 933)
        query = "q " * 900
        ranking = ranked(lm, kind, passages(10), query)
        assert (server.requests, ranking.degraded, ranking.indices) == (0, True, [0, 1, 2, 3, 4])
        assert "never" not in ranking.reasons[0]
        assert "query, instructions and demonstrations take about" in ranking.reasons[0]
        with pytest.raises(ModelError, match="Shorten them"):
            ranked(lm, kind, passages(10), query, on_error="raise")


@pytest.mark.parametrize("engine", ENGINES)
def test_a_query_that_a_refusal_shows_to_be_too_long_is_not_cut_either(engine):
    """Nobody knew how much the server takes: one call is lost on that, and the reason says it."""
    with serving(700) as server:
        ranking = ranked(language_model(server, engine), "listwise", passages(10), "q " * 900)
        assert (server.requests, ranking.degraded, ranking.indices) == (1, True, [0, 1, 2, 3, 4])
        assert "query, instructions and demonstrations take about" in ranking.reasons[0]


def test_demonstrations_are_never_cut():
    demo = {"query": "d", "passage": "demonstration " * 200, "relevance": "1"}
    said = limited(lambda asked: "2", 1500)
    with FaultServer(said) as server, dspy.context(lm=language_model(server)):
        sorter = dr.ScoreSort(dr.PointwiseJudge(), on_error="raise")
        sorter.judge.predict.demos = [demo]
        set_window(dspy.settings.lm, 1900)
        ranking = sorter("q", passages(1000)).ranking
        assert ranking.truncated == (0, 1, 2, 3, 4)
        assert all(asked.prompt.count("demonstration") >= 200 for asked in server.asked)
        set_window(dspy.settings.lm, 800)
        with pytest.raises(ModelError, match="fewer demonstrations"):
            sorter("q", passages(1000))


def test_a_refusal_that_contradicts_what_was_sent_is_not_learned_from():
    """A server that says it takes 100,000 tokens and refuses 60 has another reason."""
    message = STATED.replace("{limit}", "100000")
    with serving(1, message) as server:
        lm = language_model(server)
        ranking = ranked(lm, "listwise", passages(3))
        assert (ranking.degraded, server.requests, window_of(lm)) == (True, 1, None)


def test_a_second_refusal_ends_the_question():
    with serving(40) as server:
        ranking = ranked(language_model(server), "pointwise", passages(800), concurrency=1)
        assert ranking.degraded
        assert server.requests <= 2


def test_extra_calls_keep_to_max_calls():
    with serving(700) as server:
        lm = language_model(server)
        ranking = ranked(lm, "pointwise", passages(1000), concurrency=1, max_calls=1)
        assert (server.requests, ranking.degraded) == (1, True)
        assert ranking.reasons == ("max_calls=1 was reached",)


def test_a_table_tells_the_context_of_a_known_model():
    assert window_of(dspy.LM("openai/gpt-4")) == 8192
    assert window_of(dspy.LM("openai/nobody-knows-this")) is None


def test_a_configuration_tells_the_context(tmp_path):
    path = tmp_path / "litellm.yaml"
    path.write_text(
        "model_list:\n- model_name: judge\n  litellm_params: {model: openai/x, api_key: k}\n"
        "  model_info: {max_input_tokens: 777}\n"
    )
    assert window_of(dr.models.load(path)["judge"]) == 777


@pytest.mark.parametrize("tokens", [0, -1, 1.5, True, "8k"])
def test_an_impossible_context_is_refused(tokens):
    with pytest.raises(InputError, match="whole number"):
        set_window(dspy.LM("openai/x"), tokens)


@pytest.mark.parametrize(
    ("sizes", "room", "limit"),
    [([10, 10], 100, 10), ([10, 100], 60, 50), ([100, 100, 1], 101, 50), ([], 9, 9), ([5], 3, 3)],
)
def test_the_level_fills_the_room(sizes, room, limit):
    assert level(sizes, room) == limit
    assert sum(min(size, limit) for size in sizes) <= room


def test_short_prompts_are_not_measured_twice(monkeypatch):
    """What surely fits costs no look into a table."""
    monkeypatch.setattr("dspy_rerank.context.table_entry", lambda lm: pytest.fail("looked up"))
    with serving(700) as server:
        assert not ranked(language_model(server, "litellm"), "listwise", passages(20)).truncated
    assert LEAST < ANSWER


@pytest.mark.local_model
def test_the_embedded_model_measures_with_its_own_tokenizer():
    if not dr.models.available():
        pytest.skip("the embedded model is not installed")
    lm = dr.models.get("local/smollm2-135m", n_ctx=256, cache=False)
    documents = ["The capital of France is Paris. " + "word " * 2000, "Bananas are yellow."]
    sorter = dr.ScoreSort(dr.PointwiseJudge(), max_passage_tokens=None)
    with dspy.context(lm=lm):
        ranking = sorter("What is the capital of France?", documents).ranking
    assert (sorted(ranking.indices), ranking.truncated) == ([0, 1], (0,))
    assert (ranking.usage.failed_calls, ranking.unknowns) == (0, 0)
    assert 200 < ranking.usage.prompt_tokens < 2 * 256
