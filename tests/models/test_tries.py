"""Whom a group asks after a failure, and what a ranking is told of it."""

import time

import dspy
import pytest
import yaml
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank.models import aliases
from dspy_rerank.models._config import Config, Deployment
from dspy_rerank.models._tries import NONE_LEFT, tries

SERVER = lm15.ServerError("oops", status=500)
LONG = lm15.ContextLengthError("too long", status=400)
REFUSED = lm15.InvalidRequestError("no", status=400)
POLICY = lm15.InvalidRequestError("against our content policy", status=400)
WRONG_KEY = lm15.AuthError("who are you", status=401)


@pytest.fixture(autouse=True)
def no_aliases():
    aliases.forget()
    yield
    aliases.forget()


def config(groups, retries=1, **moves):
    made = {name: (Deployment("openai/m"),) * count for name, count in groups.items()}
    return Config("file", made, retries=retries, moves=moves)


def asked(error, given, alias="a"):
    """Which groups are asked when all of them fail with the same error."""
    waiting, found = tries(given, alias), []
    attempt = next(waiting)
    while True:
        found.append(attempt.group)
        try:
            attempt = waiting.send(error)
        except StopIteration as end:
            return found if end.value is error else ["another error"]


TWO = {"fallbacks": {"a": ("b",), "b": ("c", "a")}}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (SERVER, ["a", "a", "b", "b", "c", "c"]),
        (REFUSED, ["a", "b", "c"]),
        (WRONG_KEY, ["a", "b", "b", "c"]),
        (LONG, ["a", "b", "c"]),
    ],
)
def test_fallbacks_come_in_order_and_once(error, expected):
    assert asked(error, config({"a": 1, "b": 2, "c": 1}, **TWO)) == expected


def test_long_prompts_and_refused_ones_have_fallbacks_of_their_own():
    given = config(
        dict.fromkeys("abcd", 1), fallbacks={"a": ("b",)},
        context_window_fallbacks={"a": ("c",)}, content_policy_fallbacks={"a": ("d",)},
    )  # fmt: skip
    assert asked(LONG, given) == ["a", "c"]
    assert asked(POLICY, given) == ["a", "d"]
    assert asked(REFUSED, given) == ["a", "b"]


def test_that_nobody_is_left_is_no_reason_where_one_is_known():
    given = config({"a": 2, "b": 2}, fallbacks={"a": ("b",)})
    waiting = tries(given, "a")
    next(waiting)
    waiting.send(SERVER)
    waiting.send(lm15.ServerError(NONE_LEFT))
    with pytest.raises(StopIteration) as end:
        waiting.send(lm15.ServerError(NONE_LEFT))
    assert end.value.value is SERVER


def test_another_deployment_is_asked_at_once_and_the_same_one_later():
    def second(count):
        waiting = tries(config({"a": count}), "a")
        assert next(waiting).wait == 0
        return waiting.send(SERVER).wait

    assert second(2) == 0
    assert 0 < second(1) <= 1


def test_the_same_deployment_is_left_alone_as_long_as_it_asks():
    waiting = tries(config({"a": 1}), "a")
    next(waiting)
    assert waiting.send(lm15.RateLimitError("slow", status=429, retry_after=3.0)).wait == 3.0


def error(status, **headers):
    return status, headers, {"error": {"message": "down"}}


@pytest.fixture
def group(tmp_path, serve, chat):
    """A configuration of servers: by alias, what each deployment answers."""

    def make(**answers):
        settings = answers.pop("settings", {})
        servers = {name: [serve(said) for said in given] for name, given in answers.items()}
        entries = [
            {"model_name": name, "litellm_params": {"model": "openai/m", "api_base": server.url,
             "api_key": "k", **answers_price(place)}}
            for name, given in servers.items() for place, server in enumerate(given)
        ]  # fmt: skip
        path = tmp_path / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": entries, **settings}))
        return dr.models.load(path), servers

    def answers_price(place):
        return {"input_cost_per_token": 1e-3 * (place + 1), "output_cost_per_token": 1e-3}

    return make


def ranked(lm, **options):
    with dspy.context(lm=lm):
        judge = dr.PointwiseJudge(evidence="generate")
        return dr.ScoreSort(judge, concurrency=1, **options)("q", ["x", "y", "z"]).ranking


def test_a_failing_deployment_is_counted_in_the_ranking_and_left_alone_after(group, chat):
    loaded, servers = group(judge=[error(500), chat("2")])
    ranking = ranked(loaded["judge"])
    bad, good = servers["judge"]
    assert not ranking.degraded
    assert ranking.usage.failed_calls == len(bad.asked) <= 1
    assert len(good.asked) == ranking.usage.calls == 3


def test_each_answer_costs_what_its_deployment_costs(group, chat):
    loaded, servers = group(judge=[chat("2"), chat("2")])
    usage = ranked(loaded["judge"]).usage
    first, second = (len(server.asked) for server in servers["judge"])
    assert usage.cost == pytest.approx(8e-3 * first + 15e-3 * second)
    assert usage.cost_reason == ""


def test_a_fallback_is_reported(group, chat, caplog):
    fallbacks = {"fallbacks": [{"judge": ["other"]}], "num_retries": 0}
    loaded, servers = group(
        judge=[error(500)], other=[chat("2")], settings={"litellm_settings": fallbacks}
    )
    with caplog.at_level("WARNING", logger="dspy_rerank"):
        usage = ranked(loaded["judge"]).usage
    assert usage.failed_calls >= 1
    assert usage.calls == len(servers["other"][0].asked) == 3
    assert "judge: answered by other after 1 failed tries and 1 fallbacks" in caplog.text


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
def test_tries_and_fallbacks_count_against_max_calls(group, limit):
    fallbacks = {"fallbacks": [{"judge": ["other"]}], "num_retries": 1}
    loaded, servers = group(
        judge=[error(500), error(500)], other=[error(500)],
        settings={"litellm_settings": fallbacks},
    )  # fmt: skip
    ranking = ranked(loaded["judge"], max_calls=limit)
    sent = sum(len(server.asked) for group in servers.values() for server in group)
    assert 0 < sent <= limit
    assert ranking.degraded


def test_tries_keep_to_max_cost(group):
    """Answers that cannot be read may have been paid for: at most $2.2 each, so one fits."""
    lost = (200, {}, "not a completion")
    loaded, servers = group(judge=[lost, lost])
    ranking = ranked(loaded["judge"], max_cost=3.0)
    assert sum(len(server.asked) for server in servers["judge"]) <= 1
    assert "max_cost" in ranking.reasons[0]


def test_when_all_fail_the_ranking_says_why(group):
    loaded, _ = group(judge=[error(500), error(503)])
    ranking = ranked(loaded["judge"], error_retries=0)
    assert ranking.degraded
    assert ranking.indices == [0, 1, 2]
    assert "down" in ranking.reasons[0]
    assert NONE_LEFT not in ranking.reasons[0]
    assert ranking.usage.failed_calls >= 2


def test_a_deadline_ends_the_tries(group):
    begun = time.monotonic()
    loaded, _ = group(
        judge=[error(500)], other=[error(500)],
        settings={"litellm_settings": {"fallbacks": [{"judge": ["other"]}], "num_retries": 9}},
    )  # fmt: skip
    assert "deadline" in ranked(loaded["judge"], deadline=3.0).reasons[0]
    assert time.monotonic() - begun < 60
