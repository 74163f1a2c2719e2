"""CPU and memory that a judgment costs before any model thinks: the paths side by side.

    python benchmarks/overhead.py [--calls 200] [--rounds 5] [--memory]

A scripted server in a process of its own answers at once with fixed bytes. Numbers are process
CPU a judgment (the best of several rounds in which the paths take turns), so a slow machine or
network does not enter; ratios, each the median over the rounds, are what to trust. ``--memory``
prints how resident memory grows while rankings are kept, with their passages, and once they are
dropped.
"""

import argparse
import asyncio
import gc
import json
import math
import multiprocessing
import os
import time
from collections import defaultdict
from statistics import median

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import aiohttp
import dspy

import dspy_rerank as dr
from dspy_rerank import calls
from dspy_rerank.adapters import COMPACT
from dspy_rerank.judges.signatures import PreferPassage

PASSAGE = "word " * 180
IN_FLIGHT = 32
CHAT = "[[ ## winner ## ]]\nA\n\n[[ ## completed ## ]]"


def answer(text, logprobs):
    """A chat completion as bytes, one token a character run."""
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}
    choice["message"]["content"] = text
    if logprobs:
        top = [{"token": t, "logprob": math.log(p), "bytes": [65]} for t, p in
               (("A", 0.8), ("B", 0.1), (" A", 0.05), ("Tie", 0.03), ("a", 0.02))]  # fmt: skip
        count = 1 if text == "A" else 12
        choice["logprobs"] = {"content": [{**top[0], "top_logprobs": top}] * count}
    usage = {"prompt_tokens": 500, "completion_tokens": 1, "total_tokens": 501}
    body = {"id": "x", "object": "chat.completion", "created": 1, "model": "m"}
    content = json.dumps({**body, "choices": [choice], "usage": usage}).encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}"
    return head.encode() + b"\r\n\r\n" + content


class Scripted(asyncio.Protocol):
    """Reads a request, writes the bytes that suit it."""

    def connection_made(self, transport):
        """Nothing read yet."""
        self.transport, self.buffer = transport, b""

    def data_received(self, data):
        """Answer once the request is whole."""
        self.buffer += data
        head, found, body = self.buffer.partition(b"\r\n\r\n")
        if not found:
            return
        size = next(int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                    if line.startswith(b"content-length"))  # fmt: skip
        if len(body) >= size:
            self.buffer = b""
            self.transport.write(ANSWERS[b"[[ ##" in body, b'"top_logprobs"' in body])


ANSWERS = {
    (chat, logprobs): answer(CHAT if chat else "A", logprobs)
    for chat in (False, True)
    for logprobs in (False, True)
}


def serve(ready):
    async def main():
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Scripted, "127.0.0.1", 0)
        ready.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(main())


def inputs(number):
    passages = f"Passage [A]: {number} {PASSAGE}\nPassage [B]: {PASSAGE}"
    return {"query": "a question of some length?", "passages": passages}


def paths(url):
    """Each path as a function of the call's number and its configuration."""
    import litellm

    options = {"cache": False, "temperature": 0.0, "num_retries": 0}
    native = {"api_base": url, "api_key": "none"}
    direct = dr.models.direct(url, model="m", **options)
    through = dspy.LM("openai/m", engine="litellm", **native, **options)
    plain = dspy.LM("openai/m", engine="lm15", **native, **options)
    predict = dspy.Predict(PreferPassage)
    judge = dr.PairwiseJudge(swap=False)

    async def bare_aiohttp(number, config):
        body = {"model": "m", "messages": [{"role": "user", "content": str(inputs(number))}]}
        async with SESSION[0].post(f"{url}/chat/completions", json={**body, **config}) as got:
            json.loads(await got.read())

    async def bare_litellm(number, config):
        messages = [{"role": "user", "content": str(inputs(number))}]
        await litellm.acompletion(
            model="openai/m", messages=messages, temperature=0.0, max_retries=0, **native, **config
        )

    def ours(lm):
        async def ask(number, config):
            with dspy.context(lm=lm):
                await calls.call(predict, inputs(number), adapter=COMPACT, config=config)

        return ask

    async def judged(number, config):
        texts = (f"{number} {PASSAGE}", PASSAGE)
        question = dr.judges.Question("a question of some length?", texts)
        with dspy.context(lm=direct):
            await (judge if config else generating).ask(question)

    generating = dr.PairwiseJudge(swap=False, evidence="generate")

    async def dspy_native(number, config):
        with dspy.context(lm=plain):
            await predict.acall(**inputs(number), config=config)

    return {
        "aiohttp, bare": bare_aiohttp,
        "direct engine + compact adapter": ours(direct),
        "direct engine, a PairwiseJudge's question": judged,
        "LiteLLM engine + compact adapter": ours(through),
        "litellm.acompletion, bare": bare_litellm,
        "dspy.Predict, native client": dspy_native,
    }


SESSION = []


async def spent(path, config, numbers):
    """CPU seconds a call, with 32 in flight."""
    limit = asyncio.Semaphore(IN_FLIGHT)

    async def one(number):
        async with limit:
            await path(number, config)

    begun = time.process_time()
    await asyncio.gather(*(one(number) for number in numbers))
    return (time.process_time() - begun) / len(numbers)


async def measured(url, count, rounds):
    """CPU milliseconds by path, plain and with alternatives: those of every round."""
    SESSION[:] = [aiohttp.ClientSession()]
    found, each = defaultdict(list), paths(url)
    for turn in range(rounds + 1):
        for name, path in each.items():
            for top, config in enumerate(CONFIGS):
                first = (2 * turn + top) * count
                gc.collect()  # nobody pays for what the path before left behind
                took = 1000 * await spent(path, config, range(first, first + count))
                if not turn:
                    gc.freeze()  # what is imported only now: a server would do so, too
                if turn:
                    found[name, top].append(took)
    await SESSION[0].close()
    return found


CONFIGS = ({}, {"logprobs": True, "top_logprobs": 5})


def show_cpu(url, count, rounds):
    found = asyncio.run(measured(url, count, rounds))
    print(f"{'CPU ms a judgment, 32 in flight':44} {'plain':>8} {'top 5':>8}")
    for name in dict.fromkeys(name for name, _ in found):
        print(f"{name:44} {min(found[name, 0]):8.2f} {min(found[name, 1]):8.2f}")
    for ours, bare in (("LiteLLM engine + compact adapter", "litellm.acompletion, bare"),
                       ("direct engine + compact adapter", "aiohttp, bare")):  # fmt: skip
        ratios = [
            median(a / b for a, b in zip(found[ours, top], found[bare, top], strict=True))
            for top in (0, 1)
        ]
        print(f"{ours} / {bare}:", ", ".join(f"{ratio:.2f}" for ratio in ratios))


def engines(url):
    """How the memory rows reach the server."""
    native = {"api_base": url, "api_key": "none", "temperature": 0.0}
    return {
        "direct": lambda **more: dr.models.direct(url, model="m", **more),
        "LiteLLM": lambda **more: dspy.LM("openai/m", engine="litellm", **native, **more),
    }


def resident():
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grown(url, engine, evidence, cache, count):
    """MiB a 10,000 judgments: while their rankings are kept, and once they are dropped."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=True)
    lm = engines(url)[engine](cache=cache)
    judge = dr.PointwiseJudge(evidence=evidence)
    reranker = dr.ScoreSort(judge, concurrency=IN_FLIGHT)

    def ranked(turn):
        passages = [f"{turn} {number} {PASSAGE}" for number in range(100)]
        return reranker("a question of some length?", passages).ranking

    with dspy.context(lm=lm):
        for turn in range(WARM // 100):
            ranked(-turn)
        gc.collect()
        before = resident()
        kept = [ranked(turn) for turn in range(1, count // 100 + 1)]
        gc.collect()
        after = resident()
        made = sum(len(ranking.judgments) for ranking in kept)
        kept.clear()
        gc.collect()
    return [(size - before) / made * 1e4 / 2**20 for size in (after, resident())]


WARM = 2000
"""Judgments before memory is measured: what is bounded has reached its bound by then."""


def show_memory(url, count):
    print(f"{'RSS growth a 10,000 judgments, MiB':44} {'kept':>8} {'dropped':>8}")
    fresh = multiprocessing.get_context("spawn")
    for engine in engines(url):
        for cache in (False, True):
            for evidence in ("generate", "logprobs"):
                with fresh.Pool(1) as pool:
                    found = pool.apply(grown, (url, engine, evidence, cache, count))
                how = "top 5" if evidence == "logprobs" else "plain"
                name = f"{engine}, {how}, DSPy's memory cache {'on' if cache else 'off'}"
                print(f"{name:44} {found[0]:8.1f} {found[1]:8.1f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200, help="a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    ready = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(ready,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ready.get()}/v1"
    if arguments.memory:
        show_memory(url, 4000)
    else:
        show_cpu(url, arguments.calls, arguments.rounds)
    server.kill()


if __name__ == "__main__":
    main()
