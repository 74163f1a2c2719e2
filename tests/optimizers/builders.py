"""Labelled queries and scripted models for the tests of compilers."""

import json
import random
import re

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


def proposer(prompt):
    """A prompt-writing model: fills every field that it is asked for with the magic words."""
    if "JSON object in the following order" in prompt:
        return json.dumps({"new_instruction": MAGIC})
    asked = prompt.rsplit("Respond with the corresponding output fields", 1)[-1]
    names = dict.fromkeys(re.findall(r"\[\[ ## (\w+) ## \]\]", asked)) or ["instruction"]
    said = [f"[[ ## {name} ## ]]\n{_field(name)}" for name in names if name != "completed"]
    return "\n\n".join([*said, "[[ ## completed ## ]]"])


def _field(name):
    return f'{{"predict": "{MAGIC}"}}' if name == "module_advice" else MAGIC
