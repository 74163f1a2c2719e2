"""CPU and memory that a judgment costs before any model thinks: the paths side by side.

    python benchmarks/overhead.py [--calls 400] [--memory]

A scripted server in a process of its own answers at once with fixed bytes. Numbers are process
CPU a judgment (best of three), so a slow machine or network does not enter; ratios are what to
trust.
"""

import argparse
import asyncio
import json
import math
import multiprocessing
import os
import time
import tracemalloc

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


async def spent(path, config, count):
    """CPU seconds a call, best of three, with 32 in flight."""
    SESSION[:] = [aiohttp.ClientSession()]
    limit = asyncio.Semaphore(IN_FLIGHT)

    async def one(number):
        async with limit:
            await path(number, config)

    best = math.inf
    for turn in range(4):
        begun = time.process_time()
        await asyncio.gather(*(one(turn * count + number) for number in range(count)))
        best = min(best, time.process_time() - begun) if turn else best
    await SESSION[0].close()
    return best / count


def show_cpu(url, count):
    config = {"logprobs": True, "top_logprobs": 5}
    print(f"{'CPU ms a judgment, 32 in flight':44} {'plain':>8} {'top 5':>8}")
    found = {}
    for name, path in paths(url).items():
        found[name] = [1000 * asyncio.run(spent(path, c, count)) for c in ({}, config)]
        print(f"{name:44} {found[name][0]:8.2f} {found[name][1]:8.2f}", flush=True)
    pairs = zip(found["LiteLLM engine + compact adapter"], found["litellm.acompletion, bare"],
                strict=True)  # fmt: skip
    print("LiteLLM engine / bare litellm:", ", ".join(f"{a / b:.2f}" for a, b in pairs))


def show_memory(url, count):
    """What stays behind after many judgments of one ranking."""
    lm = dr.models.direct(url, model="m")
    passages = [f"{number} {PASSAGE}" for number in range(math.ceil((2 * count) ** 0.5))]
    with dspy.context(lm=lm):
        reranker = dr.AllPairs(dr.PairwiseJudge(swap=False), concurrency=IN_FLIGHT)
        reranker("warm up", passages[:4])
        tracemalloc.start()
        ranking = reranker("a question", passages).ranking
        now, peak = tracemalloc.get_traced_memory()
    made = len(ranking.judgments)
    print(f"memory a 10,000 judgments: {now / made * 1e4 / 2**20:.0f} MiB kept, "
          f"{peak / made * 1e4 / 2**20:.0f} MiB at most ({made} judgments measured, "
          f"{len(lm.history)} history entries)")  # fmt: skip


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=400)
    parser.add_argument("--memory", action="store_true")
    arguments = parser.parse_args()
    ready = multiprocessing.get_context("spawn").Queue()
    server = multiprocessing.get_context("spawn").Process(target=serve, args=(ready,), daemon=True)
    server.start()
    url = f"http://127.0.0.1:{ready.get()}/v1"
    if arguments.memory:
        show_memory(url, 1000)
    else:
        show_cpu(url, arguments.calls)
    server.kill()


if __name__ == "__main__":
    main()
