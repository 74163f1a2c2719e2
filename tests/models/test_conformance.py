"""Certainty over every path to a model, by every adapter, for every judge: right or none."""

import json
import math
import re

import dspy
import pytest
import yaml
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank.models import aliases
from dspy_rerank.testing import AsyncScriptedEngine, ScriptedEngine

OPTIONS = {"cache": False, "temperature": 0.0, "num_retries": 0}
ADAPTERS = {"compact": lambda: None, "chat": dspy.ChatAdapter, "json": dspy.JSONAdapter}
WRAPPINGS = {
    "compact": lambda field, said: said,
    "chat": lambda field, said: f"[[ ## {field} ## ]]\n{said}\n\n[[ ## completed ## ]]",
    "json": lambda field, said: json.dumps({field: said}),
}
REASONED = {
    "compact": lambda field, said: f"Reasoning: {MUSING}\n{field.capitalize()}: {said}",
    "chat": lambda field, said: (
        f"[[ ## reasoning ## ]]\n{MUSING}\n\n[[ ## {field} ## ]]\n{said}\n\n[[ ## completed ## ]]"
    ),
    "json": lambda field, said: json.dumps({"reasoning": MUSING, field: said}),
}
MUSING = "A is off, B is not, C may do; 1 or 2 or 3, yes or no."

JUDGES = {
    "pointwise": (dr.PointwiseJudge, {}, 1, "2", {"2": 0.6, "3": 0.3, "1": 0.1}),
    "out of ten": (dr.PointwiseJudge, {"scale": (0, 10)}, 1, "7", {"7": 0.6, "8": 0.3, "9": 0.1}),
    "yes or no": (
        dr.PointwiseJudge, {"signature": "query, passage -> relevant: bool"}, 1,
        "yes", {"yes": 0.6, "no": 0.3, "Yes": 0.1},
    ),
    "pairwise": (dr.PairwiseJudge, {"swap": False}, 2, "A", {"A": 0.6, "B": 0.4}),
    "setwise": (dr.SetwiseJudge, {}, 3, "C", {"C": 0.6, "A": 0.3, "B": 0.1}),
    "listwise": (dr.ListwiseJudge, {}, 3, "C", {"C": 0.6, "A": 0.3, "B": 0.1}),
}  # fmt: skip
SORTERS = {1: dr.ScoreSort, 2: dr.MergeSort, 3: dr.TopDown}
SURE = {"yes or no": 0.7}
"""Where the spellings of the answer have more than 0.6."""


def scripted(url, folder, served):
    """The same answers without a server, so far as DSPy's own types can hold them."""

    class Engine(ScriptedEngine):
        def complete(self, request):
            body = served()
            return lm15.response_from_openai_chat({**body, "id": None})

    engine = Engine("")
    twin = AsyncScriptedEngine(engine)
    return dspy.LM("scripted/m", engine=engine, async_engine=twin, **OPTIONS)


def through(engine):
    return lambda url, folder, served: dspy.LM(
        "openai/m", engine=engine, api_base=url, api_key="none", **OPTIONS
    )


def grouped(url, folder, served):
    params = {"model": "openai/m", "api_base": url, "api_key": "none"}
    entries = [{"model_name": "group", "litellm_params": params}] * 2
    path = folder / "group.yaml"
    path.write_text(yaml.safe_dump({"model_list": entries}))
    lm = dr.models.load(path)["group"]
    aliases.forget()
    return lm.copy(**OPTIONS)


ENGINES = {
    "scripted": scripted,
    "direct": lambda url, folder, served: dr.models.direct(url, model="m", **OPTIONS),
    "native": through("lm15"),
    "litellm": through("litellm"),
    "router": grouped,
}


def token(word, odds):
    top = [{"token": t, "logprob": math.log(p), "bytes": list(t.encode())} for t, p in odds.items()]
    return {**next(t for t in top if t["token"] == word), "top_logprobs": top}


def tokens(text, said, odds, cut=r"\w+|\s+|[^\w\s]", shown=lambda word: word):
    """Entries, certain of every token but the answer's, which is the last mention of it."""
    place = max(m.start() for m in re.finditer(rf"(?<!\w){said}(?!\w)", text))
    entries = []
    for match in re.finditer(cut, text):
        word, start = match.group(), place - match.start()
        if not 0 <= start < len(word):
            entries.append(token(shown(word), {shown(word): 0.999, "other": 0.001}))
            continue
        kept = word[:start], word[start + len(said) :]
        named = {shown(kept[0] + name + kept[1]): mass for name, mass in odds.items()}
        entries.append(token(shown(word), named))
    return entries


def raw(word):
    """As byte-level vocabularies write it."""
    return word.replace(" ", "Ġ").replace("\n", "Ċ")


def sentencepiece(word):
    return word.replace(" ", "▁").replace("\n", "<0x0A>")


def edited(**changes):
    """Every entry with other values under some of its names."""
    return lambda text, said, odds: {
        "content": [{**entry, **changes} for entry in tokens(text, said, odds)]
    }


def junk(text, said, odds):
    """The likeliest alternatives hold no label, and what is left may be any."""
    entries = tokens(text, said, odds)
    for entry in entries:
        if math.exp(entry["logprob"]) < 0.9:
            entry["logprob"] = math.log(0.2)
            entry["top_logprobs"] = token("The", {"The": 0.4, "I": 0.2})["top_logprobs"]
    return {"content": entries}


def content(**options):
    return lambda text, said, odds: {"content": tokens(text, said, odds, **options)}


RIGHT = {
    "a token a word": content(),
    "spaces before words": content(cut=r" ?\w+|\s+|[^\w\s]"),
    "quotes and spaces glued": content(cut=r"[\s\"(\[]*\w+|\s+|[^\w\s]"),
    "quotes behind glued": content(cut=r"[\s\"(\[]*\w+[\"}\]]*|\s+|[^\w\s]"),
    "raw vocabulary": content(cut=r" ?\w+|\s+|[^\w\s]", shown=raw),
    "sentencepiece": content(cut=r" ?\w+|\s|[^\w\s]", shown=sentencepiece),
    "an end token behind": lambda text, said, odds: {
        "content": [*tokens(text, said, odds), token("<|end|>", {"<|end|>": 0.9, "A": 0.1})]
    },
}
NONE = {
    "null": lambda *_: None,
    "empty": lambda *_: {"content": []},
    "null content": lambda *_: {"content": None},
    "refused": lambda *_: {"content": None, "refusal": None},
    "no alternatives": edited(top_logprobs=[]),
    "of another text": lambda text, said, odds: {
        "content": [token("zzz", {"zzz": 0.6, said: 0.4})]
    },
    "without the first half": lambda *given: {
        "content": tokens(*given)[(len(tokens(*given)) + 1) // 2 :]
    },
    "without the labels": junk,
}
WRONG = {
    "a list": lambda *_: [1, 2],
    "a text": lambda *_: "logprobs",
    "texts for entries": lambda *_: {"content": ["A", "B"]},
    "texts for numbers": edited(logprob="-inf"),
    "null for numbers": edited(logprob=None),
    "null for tokens": edited(token=None),
    "null for alternatives": edited(top_logprobs=None),
    "above zero": edited(logprob=0.5),
}


def body(text, logprobs):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "finish_reason": "stop", "message": message, "logprobs": logprobs}
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "m",
            "choices": [choice], "usage": usage}  # fmt: skip


class Asked:
    """One judge over one path to a model, whose next answer can be set."""

    def __init__(self, engine, adapter, kind, serve, folder):
        make, options, self.shown, self.said, self.odds = JUDGES[kind]
        self.adapter, self.sure = adapter, SURE.get(kind, 0.6)
        self.judge = make(evidence="logprobs", adapter=ADAPTERS[adapter](), **options)
        self.server = serve()
        self.lm = ENGINES[engine](self.server.url, folder, lambda: self.server.answers[0])

    def text(self, wrappings=WRAPPINGS):
        return wrappings[self.adapter](self.judge.roles.answer, self.said)

    def __call__(self, logprobs, text=None):
        text = self.text() if text is None else text
        self.server.answers = [body(text, logprobs(text, self.said, self.odds))]
        with dspy.context(lm=self.lm):
            sorter = SORTERS[self.shown](self.judge, error_retries=0, retries=0)
            ranking = sorter("q", [f"passage {i}" for i in range(self.shown)]).ranking
        assert not ranking.degraded, ranking.reasons
        judgment = ranking.judgments[0]
        assert judgment.known, judgment
        return judgment


def certain(judgment, sure):
    return (
        judgment.confidence == pytest.approx(sure, abs=2e-3)
        and judgment.confidence_source == "logprob"
    )


def silent(judgment):
    source = (judgment.confidence, judgment.confidence_source)
    return source == (None, "none") and "no confidence: " in judgment.reason


@pytest.fixture(params=ENGINES)
def engine(request):
    return request.param


@pytest.fixture(params=ADAPTERS)
def adapter(request):
    return request.param


@pytest.fixture(params=JUDGES)
def asked(request, engine, adapter, serve, tmp_path):
    return Asked(engine, adapter, request.param, serve, tmp_path)


def test_confidence_is_right_by_every_tokenizer(asked):
    found = {name: asked(shape) for name, shape in RIGHT.items()}
    wrong = {name: j for name, j in found.items() if not certain(j, asked.sure)}
    assert not wrong


def test_without_usable_logprobs_there_is_none_and_a_reason(asked):
    found = {name: asked(shape) for name, shape in NONE.items()}
    wrong = {name: j for name, j in found.items() if not silent(j)}
    assert not wrong


def test_reasoning_before_the_answer_decides_nothing(asked):
    thinking = f"<think>{MUSING} {asked.text()}</think>\n{asked.text()}"
    for text in (asked.text(REASONED), thinking):
        assert certain(asked(content(), text), asked.sure), text


def test_logprobs_of_the_wrong_shape_are_none(asked, request):
    engine = request.getfixturevalue("engine")
    if engine in ("scripted", "native", "litellm"):
        pytest.skip("DSPy's and LiteLLM's own readers refuse such an answer as a whole")
    found = {name: asked(shape) for name, shape in WRONG.items()}
    wrong = {name: j for name, j in found.items() if not silent(j)}
    assert not wrong


@pytest.mark.parametrize(("said", "sure"), [("10", 0.72), ("1", 0.54)])
def test_a_label_in_two_tokens_is_followed(engine, said, sure, serve, tmp_path):
    asked = Asked(engine, "compact", "out of ten", serve, tmp_path)
    first = token("1", {"1": 0.9, "2": 0.1})
    ends = {"10": {"0": 0.8, "<|end|>": 0.2}, "1": {"<|end|>": 0.6, "0": 0.4}}[said]
    second = token("0" if said == "10" else "<|end|>", ends)
    asked.said = said
    judgment = asked(lambda *_: {"content": [first, second]})
    assert judgment.confidence == pytest.approx(sure)
    expected = {"10": 0.72 * 10 + 0.18 + 0.2, "1": 0.54 + 3.6 + 0.2}[said]
    assert judgment.score == pytest.approx(expected)


def test_a_label_that_may_be_the_beginning_of_another_has_none(engine, serve, tmp_path):
    asked = Asked(engine, "compact", "out of ten", serve, tmp_path)
    asked.said = "1"
    assert silent(asked(lambda *_: {"content": [token("1", {"1": 0.9, "2": 0.1})]}))


def test_a_label_whose_longer_sister_is_a_token_of_its_own_has_one(engine, serve, tmp_path):
    asked = Asked(engine, "compact", "out of ten", serve, tmp_path)
    asked.said = "1"
    odds = {"1": 0.7, "10": 0.3}
    assert certain(asked(lambda *_: {"content": [token("1", odds)]}), 0.7)


def test_an_answer_before_its_explanation_is_found(engine, serve, tmp_path):
    asked = Asked(engine, "json", "pairwise", serve, tmp_path)
    text = json.dumps({"winner": "A", "reasoning": "B is old, so A"})
    words = re.findall(r"\w+|\s+|[^\w\s]", text)
    place = words.index("A")
    entries = [
        token(word, {"A": 0.6, "B": 0.4} if at == place else {word: 0.999, "x": 0.001})
        for at, word in enumerate(words)
    ]
    assert certain(asked(lambda *_: {"content": entries}, text), 0.6)


@pytest.mark.parametrize("evidence", ["auto", "logprobs"])
def test_a_provider_that_litellm_says_has_no_logprobs_is_asked_without(evidence, serve):
    server = serve(body("A", None))
    lm = dspy.LM("mistral/m", engine="litellm", api_base=server.url, api_key="none", **OPTIONS)
    judge = dr.PairwiseJudge(swap=False, evidence=evidence)
    with dspy.context(lm=lm):
        ranking = dr.MergeSort(judge)("q", ["x", "y"]).ranking
    assert not ranking.degraded, ranking.reasons
    assert ranking.judgments[0].confidence is None
    assert len(server.asked) == 1
    assert "logprobs" not in server.asked[0]["body"]
