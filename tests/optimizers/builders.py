"""Labelled queries and scripted models for the tests of compilers."""

import random

import dspy

from dspy_rerank import datasets

MAGIC = "Prefer what is current."


def labelled(queries=12, seed=0, grades=(0, 1, 2, 3, 0, 1)):
    """Queries whose documents say their grade; the order they come in says nothing."""
    rng = random.Random(seed)
    examples = []
    for q in range(queries):
        dealt = list(grades)
        rng.shuffle(dealt)
        texts = [f"query {seed}-{q} passage {i} worth {grade}" for i, grade in enumerate(dealt)]
        examples.append(dspy.Example(query=f"query {seed}-{q}", documents=texts, relevance=dealt))
    return datasets.from_examples(examples)


def worths(prompt):
    """The worths of the passages in the question itself, which comes last."""
    last = prompt.rsplit("Query: ", 1)[1]
    return [part[0] for part in last.split("worth ")[1:]]


def skilled(prompt):
    """A grader: right when told the magic words or shown two demonstrations, else it says 1."""
    return worths(prompt)[0] if MAGIC in prompt or prompt.count("Passage: ") >= 3 else "1"
