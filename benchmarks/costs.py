"""What each method costs on 100 passages for the top 10: calls, rounds, passages and tokens.

    python benchmarks/costs.py

A scripted model answers every question rightly by the labels, with the real prompts of every
judge, so the counts are those of a model that makes no mistakes. Tokens are counted by the
embedded model's tokenizer where it is installed, else estimated. Passages are the shipped set's.
"""

import re
from collections.abc import Callable

import dspy

import dspy_rerank as dr
from dspy_rerank import datasets, models
from dspy_rerank.reading.labels import estimate_tokens
from dspy_rerank.testing import ScriptedEngine, scripted_lm

N, TOP_K = 100, 10


def passages() -> list[str]:
    """A hundred different passages of the shipped set, each with a worth that a script can see."""
    seen = dict.fromkeys(d.text for query in datasets.load("ostrel") for d in query.documents)
    texts = [text.split("\n", 1)[1] for text in list(seen)[:N]]
    return [f"{text} (worth {(i * 37) % N})" for i, text in enumerate(texts)]


def worths(prompt: str) -> list[int]:
    """What the passages of a question are worth, in the order shown."""
    return [int(number) for number in re.findall(r"\(worth (\d+)\)", prompt)]


def grade(prompt: str) -> str:
    """The pointwise answer."""
    return f"{3 * worths(prompt)[-1] / N:.2f}"


def letter(prompt: str) -> str:
    """The pairwise and setwise answer."""
    shown = worths(prompt)
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[shown.index(max(shown))]


def order(prompt: str) -> str:
    """The listwise answer."""
    shown = worths(prompt)
    places = sorted(range(len(shown)), key=lambda place: -shown[place])
    return " > ".join(f"[{place + 1}]" for place in places)


METHODS: list[tuple[str, Callable[[], dr.Reranker], Callable[[str], str]]] = [
    ("ScoreSort, pointwise", lambda: dr.ScoreSort(dr.PointwiseJudge()), grade),
    ("TopDown, listwise", lambda: dr.TopDown(dr.ListwiseJudge()), order),
    ("TopDown 2 rounds, listwise", lambda: dr.TopDown(dr.ListwiseJudge(), rounds=2), order),
    ("SlidingWindow 20/10, listwise", lambda: dr.SlidingWindow(dr.ListwiseJudge()), order),
    ("TopDown 2 finals, listwise", lambda: dr.TopDown(dr.ListwiseJudge(), finals=2), order),
    ("TourRank, listwise", lambda: dr.TourRank(dr.ListwiseJudge()), order),
    ("TDPart, listwise", lambda: dr.TDPart(dr.ListwiseJudge()), order),
    ("Tournament, listwise", lambda: dr.Tournament(dr.ListwiseJudge()), order),
    ("Consensus of 3 TopDown", lambda: dr.Consensus(dr.TopDown(dr.ListwiseJudge())), order),
    ("TopDown, setwise", lambda: dr.TopDown(dr.SetwiseJudge()), letter),
    ("HeapSort c=9, setwise", lambda: dr.HeapSort(dr.SetwiseJudge()), letter),
    ("Survivor 8, setwise", lambda: dr.Survivor(dr.SetwiseJudge()), letter),
    ("TopDown, pairwise swapped", lambda: dr.TopDown(dr.PairwiseJudge()), letter),
    ("HeapSort, pairwise swapped", lambda: dr.HeapSort(dr.PairwiseJudge()), letter),
    ("MergeSort, pairwise swapped", lambda: dr.MergeSort(dr.PairwiseJudge()), letter),
    ("PRPSliding, pairwise swapped", lambda: dr.PRPSliding(dr.PairwiseJudge()), letter),
    ("AllPairs, pairwise swapped", lambda: dr.AllPairs(dr.PairwiseJudge()), letter),
]


def counter() -> Callable[[str], int]:
    """Counts tokens, really where a tokenizer is at hand."""
    if not models.available():
        return estimate_tokens
    llama = models.get("local/smollm2-135m").engine.llama
    return lambda text: len(llama.tokenize(text))


def main() -> None:
    """Print the table as Markdown."""
    documents, count = passages(), counter()
    print(
        f"top {TOP_K} of {N} passages, {sum(map(count, documents)) // N} tokens each on average\n"
    )
    print("| method | calls | rounds | passages read | prompt tokens | answer tokens |")
    print("|---|---|---|---|---|---|")
    for name, build, script in METHODS:
        lm = scripted_lm(script)
        with dspy.context(lm=lm):
            usage = build()("how do I restore a file", documents, top_k=TOP_K).ranking.usage
        engine = lm.engine
        assert isinstance(engine, ScriptedEngine)
        tokens = sum(map(count, engine.prompts))
        answers = sum(count(script(prompt)) for prompt in engine.prompts)
        print(
            f"| {name} | {usage.calls} | {usage.rounds} | {usage.passages_read} "
            f"| {tokens:,} | {answers:,} |"
        )


if __name__ == "__main__":
    main()
