"""Builds `bm25.run` and `qrels.txt` of this set from what was written and judged by hand.

    python datasets/ostrel/build.py

`corpus.jsonl`, `queries.jsonl` and `topicality.tsv` are written by hand. The first-stage run is
BM25 over title and text (bm25s, default parameters, English stop words and stemmer), 12 a query.
`qrels.txt` applies the house rule to the topicality judgments.
"""

import json
from pathlib import Path

DEPTH = 12
HERE = Path(__file__).parent


def read_jsonl(name: str) -> list[dict]:
    """The objects of a JSON-lines file beside this script."""
    text = (HERE / name).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def first_stage(corpus: list[dict], queries: list[dict]) -> dict[str, list[tuple[str, float]]]:
    """BM25's best documents for every query, best first."""
    import bm25s
    import Stemmer  # PyStemmer

    def tokens(texts: list[str]):
        stemmer = Stemmer.Stemmer("english")
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    texts = [f"{document['title']}\n{document['text']}" for document in corpus]
    index = bm25s.BM25()
    index.index(tokens(texts), show_progress=False)
    asked = tokens([query["text"] for query in queries])
    places, scores = index.retrieve(asked, k=DEPTH, show_progress=False)
    return {
        query["id"]: [(corpus[p]["id"], float(s)) for p, s in zip(row, marks, strict=True)]
        for query, row, marks in zip(queries, places, scores, strict=True)
    }


def grade(topicality: int, document: dict) -> int:
    """The house rule: current beats deprecated, task and reference pages beat talk and praise."""
    if document["version"] in ("1", "2") or document["type"] in ("marketing", "release"):
        return min(topicality, 1)
    return min(topicality, 2) if document["type"] == "forum" else topicality


def write(run: dict[str, list[tuple[str, float]]], corpus: list[dict]) -> None:
    """Write the run, and the qrels where topicality has been judged."""
    lines = [
        f"{qid} Q0 {did} {rank} {score:.4f} bm25"
        for qid, hits in run.items()
        for rank, (did, score) in enumerate(hits, 1)
    ]
    (HERE / "bm25.run").write_text("\n".join(lines) + "\n", encoding="utf-8")
    judged = HERE / "topicality.tsv"
    if not judged.exists():
        return
    documents = {document["id"]: document for document in corpus}
    rows = [line.split("\t") for line in judged.read_text("utf-8").split("\n") if line.strip()]
    qrels = [f"{qid} 0 {did} {grade(int(mark), documents[did])}" for qid, did, mark in rows]
    (HERE / "qrels.txt").write_text("\n".join(qrels) + "\n", encoding="utf-8")


if __name__ == "__main__":
    documents = read_jsonl("corpus.jsonl")
    write(first_stage(documents, read_jsonl("queries.jsonl")), documents)
