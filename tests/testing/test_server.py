"""The fault server: what it sends, what it records, what it leaves."""

import asyncio
import doctest
import json
import urllib.error
import urllib.request

import aiohttp
import pytest

from dspy_rerank.testing import FaultServer, at_random, completion, faults, oracle_answers, server
from dspy_rerank.testing.faults import CATALOGUE

KEY = "sk-canary-1234567890"


def post(base_url, body=None, path="/chat/completions", **headers):
    """Status, headers and JSON of one request."""
    request = urllib.request.Request(
        base_url + path, json.dumps(body or {"model": "m", "messages": []}).encode(), headers
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.headers, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()


def said(content):
    return json.loads(content)["choices"][0]["message"]["content"]


def test_the_example_in_the_documentation():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    (example,) = [t for t in finder.find(server.FaultServer, globs={}) if t.examples]
    assert runner.run(example) == (0, 6)


def test_it_says_what_it_is_told_to():
    with FaultServer("yes") as one, FaultServer(completion("no")) as other:
        assert said(post(one.base_url)[2]) == "yes"
        assert said(post(other.base_url)[2]) == "no"


def test_a_function_answers_by_the_request():
    with FaultServer(lambda asked: f"{asked.number} {asked.prompt}") as running:
        messages = [{"role": "system", "content": "be brief"},
                    {"role": "user", "content": [{"type": "text", "text": "hello"}]}]  # fmt: skip
        post(running.base_url)
        assert said(post(running.base_url, {"messages": messages})[2]) == "1 be brief\nhello"


def test_what_the_function_raises_is_sent_and_raised_again():
    running = FaultServer(lambda asked: {}["missing"]).start()
    assert post(running.base_url)[0] == 500
    with pytest.raises(KeyError, match="missing"):
        running.stop()
    running.stop()


def test_requests_are_recorded_without_their_keys():
    with FaultServer("A", faults=[faults.status(503)]) as running:
        more = {"Authorization": f"Bearer {KEY}", "Api-Key": KEY, "Cookie": KEY, "X-Trace": "7"}
        for _ in range(2):
            post(running.base_url, {"model": "m", "messages": []}, **more)
        first, second = running.asked
    assert (first.number, first.path, first.model) == (0, "/v1/chat/completions", "m")
    assert (first.fault, second.fault) == ("status 503", "")
    assert first.headers["x-trace"] == "7"
    assert KEY not in repr(running.asked)
    assert running.met == {"status 503": 1}


def test_only_the_latest_requests_are_kept():
    with FaultServer("A", keep=2) as running:
        for _ in range(5):
            post(running.base_url)
        assert running.requests == 5
        assert [asked.number for asked in running.asked] == [3, 4]


def test_faults_come_in_turn_and_then_no_more():
    with FaultServer("A", faults=[faults.status(500), None, faults.status(503)]) as running:
        assert [post(running.base_url)[0] for _ in range(5)] == [500, 200, 503, 200, 200]


def test_one_fault_always_comes():
    with FaultServer("A", faults=faults.status(502)) as running:
        assert [post(running.base_url)[0] for _ in range(3)] == [502] * 3


def test_retry_after_in_every_form():
    for given, header in [
        (None, None), (7, "7"), ("soon", "soon"), (faults.LONG_AGO, "Wed, 01 Jan 2020 00:00:00 GMT")
    ]:  # fmt: skip
        with FaultServer("A", faults=faults.rate_limit(given)) as running:
            status, headers, _ = post(running.base_url)
            assert (status, headers["Retry-After"]) == (429, header)


def test_connections_break_as_they_should():
    with FaultServer("A", faults=[faults.reset(), faults.half_body()]) as running:
        with pytest.raises(ConnectionResetError):
            post(running.base_url)
        with pytest.raises(Exception, match="IncompleteRead"):
            post(running.base_url)


@pytest.mark.parametrize("fault", [faults.hang(), faults.endless_body()], ids=str)
def test_a_client_that_goes_away_is_in_flight_no_more(fault):
    with FaultServer("A", faults=fault) as running:

        async def impatient():
            timeout = aiohttp.ClientTimeout(total=0.1)
            async with aiohttp.ClientSession(timeout=timeout) as session:
                async with session.post(f"{running.base_url}/chat/completions", json={}) as answer:
                    await answer.read()

        with pytest.raises(TimeoutError):
            asyncio.run(impatient())
        assert running.requests == 1
        assert running.wait(lambda s: (s.in_flight, s.connections) == (0, 0))


def test_many_at_once_over_one_pool():
    async def many(base_url):
        async with aiohttp.ClientSession() as session:

            async def one():
                async with session.post(f"{base_url}/chat/completions", json={}) as answer:
                    return said(await answer.read())

            return await asyncio.gather(*(one() for _ in range(50)))

    with FaultServer("A", latency=lambda number: 0.001 * (number % 5)) as running:
        assert asyncio.run(many(running.base_url)) == ["A"] * 50
        assert running.requests == 50
        assert running.most_in_flight > 1
        assert running.wait(lambda s: s.connections == 0)


def test_asynchronous_code_uses_it_too():
    async def use():
        async with FaultServer("A") as running:
            async with aiohttp.ClientSession() as session:
                async with session.get(f"{running.base_url}/models") as answer:
                    assert (await answer.json())["data"][0]["id"] == "served"
                async with session.post(f"{running.base_url}/embeddings", json={}) as answer:
                    assert answer.status == 404
            return running.requests

    assert asyncio.run(use()) == 0


@pytest.mark.parametrize("name", CATALOGUE)
def test_a_fault_changes_what_is_sent_and_nothing_else(name):
    right = faults.Sent(completion("A", odds={"A": 0.9, "B": 0.1}))
    before = json.dumps(right.body)
    changed = CATALOGUE[name].change(right)
    assert changed != right or changed.content != right.content
    assert json.dumps(right.body) == before
    assert str(CATALOGUE[name]) == name


def test_names_are_unique():
    made = [faults.slow(1), faults.slow(2), faults.status(500), faults.finished(None)]
    assert len({fault.name for fault in made}) == 4


def test_faults_at_random_in_shares_that_repeat():
    schedule = at_random({faults.reset(): 0.2, faults.hang(): 0.1}, seed=3)
    drawn = [getattr(schedule(number), "name", "") for number in range(2000)]
    assert 320 < drawn.count("reset") < 480
    assert 140 < drawn.count("no answer") < 260
    again = at_random({faults.reset(): 0.2, faults.hang(): 0.1}, seed=3)
    assert drawn == [getattr(again(number), "name", "") for number in range(2000)]
    assert drawn != [
        getattr(at_random({faults.reset(): 0.2}, seed=4)(n), "name", "") for n in range(2000)
    ]


@pytest.mark.parametrize("shares", [[0.7, 0.7], [-0.1, 0.2], [1.5, 0]])
def test_shares_that_cannot_be_are_refused(shares):
    with pytest.raises(ValueError, match="probabilities"):
        at_random(dict(zip([faults.reset(), faults.hang()], shares, strict=True)))


def labelled(labels, texts):
    lines = [f"Passage [{label}]: {text}" for label, text in zip(labels, texts, strict=True)]
    return {"messages": [{"role": "user", "content": "\n".join(["Query: q", *lines])}]}


GRADES = {"low": 0, "high": 3, "middle": 1.5}


@pytest.mark.parametrize(
    ("labels", "texts", "answer"),
    [
        ("AB", ["low", "high"], "B"),
        ("AB", ["low", "low"], "A"),
        ("ABC", ["middle", "low", "high"], "C"),
        ("123", ["middle", "low", "high"], "[3] > [1] > [2]"),
    ],
)
def test_the_oracle_reads_the_labels(labels, texts, answer):
    with FaultServer(oracle_answers(GRADES)) as running:
        assert said(post(running.base_url, labelled(labels, texts))[2]) == answer


def test_the_oracle_is_as_sure_as_it_is_told():
    import math

    body = {**labelled("ABC", list(GRADES)), "logprobs": True}
    with FaultServer(oracle_answers(GRADES, sure=0.7)) as running:
        choice = json.loads(post(running.base_url, body)[2])["choices"][0]
    (token,) = choice["logprobs"]["content"]
    odds = {entry["token"]: math.exp(entry["logprob"]) for entry in token["top_logprobs"]}
    assert odds == pytest.approx({"B": 0.7, "A": 0.15, "C": 0.15})


def test_a_passage_without_a_grade_is_said():
    with pytest.raises(KeyError, match="unheard"), FaultServer(oracle_answers(GRADES)) as running:
        assert post(running.base_url, labelled("AB", ["low", "unheard"]))[0] == 500
