"""The injection suite, and prompts and answers around it."""

import json
import re
from pathlib import Path

import dspy

import dspy_rerank as dr

ATTACKS = {
    attack["name"]: attack
    for attack in json.loads(
        (Path(__file__).parents[2] / "benchmarks/injections.json").read_text("utf-8")
    )
}
ADAPTERS = {
    "compact": lambda: None, "chat": dspy.ChatAdapter, "json": dspy.JSONAdapter,
    "xml": dspy.XMLAdapter,
}  # fmt: skip
DEFENCES = (None, "fence", "mark", "remind")
QUERY = "how to bake bread"


class TwoFields(dspy.Signature):
    """Which passage is better?"""

    query: str = dspy.InputField()
    criteria: str = dspy.InputField()
    passage_a: str = dspy.InputField()
    passage_b: str = dspy.InputField()
    winner: str = dspy.OutputField()


JUDGES = {
    "pointwise": lambda **o: dr.PointwiseJudge(evidence="generate", **o),
    "pairwise": lambda **o: dr.PairwiseJudge(swap=False, **o),
    "pairwise, two fields": lambda **o: dr.PairwiseJudge(TwoFields, swap=False, **o),
    "setwise": dr.SetwiseJudge,
    "listwise": dr.ListwiseJudge,
}


def inputs(kind):
    return {"criteria": "prefer recent ones"} if "fields" in kind else {}


def text(name, me="B"):
    """An attack's passage, by someone who guesses its label."""
    return ATTACKS[name]["text"].replace("{me}", me).replace("{query}", QUERY)


def says(name, me="B"):
    """What a model that obeys would say."""
    return ATTACKS[name]["says"].replace("{me}", me).replace("{query}", QUERY)


def shown(kind, passages):
    """As many of the passages as one question holds, the last one included."""
    few = {"pointwise": 1, "pairwise": 2, "pairwise, two fields": 2}.get(kind, len(passages))
    return list(passages[-few:])


_CONTROL = r"<\|\w+\|>|</?s>|\[/?INST\]|<(?:start|end)_of_turn>"


def frame(prompt, judge):
    """All in a prompt that looks like a judge's frame, in the order in which it stands."""
    names = [*judge.signature.fields, "query", "passage"]
    headings = "|".join(name.replace("_", " ") for name in names)
    pattern = (
        rf"^Passage \[\w+\]: |^(?:{headings}):|\[\[ ## \w+ ## \]\]"
        rf"|</?(?:{'|'.join(judge.signature.fields)})>|{_CONTROL}"
    )
    broken = re.sub("[\v\f\x1c-\x1e\x85\u2028\u2029]", "\n", prompt)
    found = re.finditer(pattern, broken, re.MULTILINE | re.IGNORECASE)
    return [part[0] for part in found]
