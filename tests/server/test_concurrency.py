"""Many requests at once: none lost, none mixed, none ranked for nobody."""

import asyncio
import hashlib
import time

import httpx
import pytest

import dspy_rerank as dr
from dspy_rerank.server import Program
from tests.server.harness import scored, serving


def grade(text):
    """A number that depends on every character."""
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


class Model:
    """A slow judge whose grades depend on ids, and which notices when texts are mixed."""

    def __init__(self, seconds=0.02):
        self.seconds = seconds
        self.mixed = []
        self.asked = 0
        self.cancelled = 0
        self.running = 0
        self.most = 0

    async def __call__(self, query, passages):
        self.asked += 1
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.running -= 1
        self.mixed += [text for text in passages if not text.startswith(query)]
        return float(grade(passages[0])) if len(passages) == 1 else self.order(passages)

    def order(self, passages):
        return sorted(range(len(passages)), key=lambda place: -grade(passages[place]))


def request(number):
    query = f"query {number};"
    documents = [f"{query} document {place}" for place in range(5 + number % 7)]
    return {"query": query, "documents": documents, "model": f"p{number % 2}", "explain": True}


def right(body, answer):
    texts = body["documents"]
    best = sorted(range(len(texts)), key=lambda place: -grade(texts[place]))
    return [result["index"] for result in answer["results"]] == best


async def ask_all(url, bodies, paths=("/v1/rerank", "/v2/rerank")):
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(limits=limits, timeout=60) as client:
        calls = [
            client.post(url + paths[number % len(paths)], json=body)
            for number, body in enumerate(bodies)
        ]
        return await asyncio.gather(*calls)


def test_200_requests_at_once_are_all_answered_and_none_is_mixed_with_another():
    models = [Model(), Model()]
    programs = [scored(f"p{i}", fn=judge_of(model)) for i, model in enumerate(models)]
    bodies = [request(number) for number in range(200)]
    with serving(*programs) as url:
        answers = asyncio.run(ask_all(url, bodies))
        ready = httpx.get(f"{url}/ready").json()["programs"]
    assert [answer.status_code for answer in answers] == [200] * 200
    assert all(right(body, answer.json()) for body, answer in zip(bodies, answers, strict=True))
    assert [answer.json()["model"] for answer in answers] == [body["model"] for body in bodies]
    assert len({answer.json()["id"] for answer in answers}) == 200
    assert [model.mixed for model in models] == [[], []]
    assert sum(model.asked for model in models) == sum(len(body["documents"]) for body in bodies)
    assert all(8 < model.most <= 16 * 8 for model in models)
    assert ready == {name: {"running": 0, "waiting": 0} for name in ("p0", "p1")}


def judge_of(model):
    async def judge(query, passages):
        return await model(query, passages)

    return judge


def test_what_exceeds_the_queue_is_turned_away_and_the_rest_is_answered():
    model = Model(0.1)
    bodies = [{"query": "q", "documents": [f"q {number}"]} for number in range(30)]
    with serving(scored(fn=judge_of(model)), at_once=2, queue=8) as url:
        answers = asyncio.run(ask_all(url, bodies))
    codes = [answer.status_code for answer in answers]
    assert set(codes) == {200, 429}
    assert codes.count(200) >= 10
    assert model.asked == codes.count(200)
    turned = next(answer for answer in answers if answer.status_code == 429)
    assert 1 <= int(turned.headers["retry-after"]) <= 60


def test_a_slow_program_does_not_hold_up_another():
    slow, fast = Model(60), Model(0)
    with serving(
        scored("slow", fn=judge_of(slow)), scored("fast", fn=judge_of(fast)), at_once=1, queue=2
    ) as url:

        async def go():
            async with httpx.AsyncClient(base_url=url, timeout=20) as client:

                def ask(name):
                    body = {"query": "q", "documents": ["q"], "model": name}
                    return client.post("/v2/rerank", json=body)

                stuck = [asyncio.ensure_future(ask("slow")) for _ in range(3)]
                while (await client.get("/ready")).json()["programs"]["slow"]["waiting"] < 2:
                    await asyncio.sleep(0.01)
                codes = [(await ask("fast")).status_code, (await ask("slow")).status_code]
                for task in stuck:
                    task.cancel()
                await asyncio.gather(*stuck, return_exceptions=True)
                return codes

        assert asyncio.run(go()) == [200, 429]


def test_a_ranking_ends_when_its_client_hangs_up(caplog):
    model = Model(60)
    caplog.set_level("INFO", "dspy_rerank.server")
    with serving(scored(fn=judge_of(model))) as url:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": ["q 1", "q 2"]}, timeout=0.5)  # fmt: skip # noqa: E501
        until(lambda: model.cancelled == 2)
        until(lambda: httpx.get(f"{url}/ready").json()["programs"]["numbers"]["running"] == 0)
        assert 'status="499"' in httpx.get(f"{url}/metrics").text
    assert model.asked == 2


def until(holds, seconds=10):
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_a_request_that_waits_leaves_the_queue_when_its_client_hangs_up():
    model = Model(60)
    with serving(scored(fn=judge_of(model)), at_once=1) as url:
        for _ in range(2):
            with pytest.raises(httpx.ReadTimeout):
                httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": ["q"]}, timeout=0.3)
        state = {"running": 0, "waiting": 0}
        until(lambda: httpx.get(f"{url}/ready").json()["programs"]["numbers"] == state)


def test_a_ranking_that_runs_out_of_time_answers_with_what_it_has():
    model = Model(60)
    with serving(scored(fn=judge_of(model)), seconds=0.2) as url:
        answer = httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": ["q 1", "q 2"]})
    assert answer.status_code == 200
    details = answer.json()["meta"]["dspy_rerank"]
    assert details["degraded"]
    assert details["reasons"] == ["deadline=0.2s was reached"]
    assert (details["unknowns"], details["unasked"], details["cut_short"]) == (2, 0, 2)
    assert answer.json()["meta"]["warnings"][:2] == [
        "degraded: deadline=0.2s was reached", "2 questions were cut short",
    ]  # fmt: skip
    assert [result["index"] for result in answer.json()["results"]] == [0, 1]
    assert model.cancelled == 2


def test_a_ranking_that_does_not_end_by_itself_is_ended(monkeypatch):
    from dspy_rerank.server import service

    async def stuck(*args, **more):
        await asyncio.sleep(60)

    program = scored()
    monkeypatch.setattr(service, "GRACE", 0.1)
    monkeypatch.setattr(type(program.reranker), "acall", stuck)
    with serving(program, seconds=0.1) as url:
        answer = httpx.post(f"{url}/v2/rerank", json={"query": "q", "documents": ["q"]})
    assert answer.status_code == 504
    assert "no ranking within 0.1 s" in answer.json()["message"]


def test_questions_of_one_request_can_be_limited():
    model = Model(0)
    with serving(scored(fn=judge_of(model)), calls=2) as url:
        body = {"query": "q", "documents": [f"q {number}" for number in range(6)]}
        answer = httpx.post(f"{url}/v2/rerank", json=body).json()
    assert model.asked == 2
    assert answer["meta"]["warnings"][:2] == [
        "degraded: max_calls=2 was reached", "4 questions were not asked",
    ]  # fmt: skip


def test_no_prompt_is_kept_in_memory():
    from dspy.clients import base_lm

    lm = dr.testing.scripted_lm("2")
    program = Program("p", dr.ScoreSort(dr.PointwiseJudge(evidence="generate")), lm)
    with serving(program) as url:
        for number in range(5):
            body = {"query": f"q {number}", "documents": ["a", "b", "c"]}
            assert httpx.post(f"{url}/v2/rerank", json=body).status_code == 200
    assert base_lm.GLOBAL_HISTORY == []
    assert len(lm.history) <= 1
    assert len(program.reranker.history) <= 1
