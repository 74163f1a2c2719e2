"""Labels measured by vLLM's own requests: all of them, exactly, and never at any price."""

import itertools
import json
import math

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.models._exact import AsyncExactEngine, Unmeasurable, decided

START, END, OPEN = 1, 2, 3
OPTIONS = {"cache": False}


class VLLM:
    """As vLLM answers: byte-like tokens (a letter a token), a chat template, scored token ids."""

    def __init__(self, odds, *, version=(0, 29), merges=False):
        self.odds, self.version, self.merges = odds, version, merges
        self.paths = []

    def __call__(self, path, body):
        self.paths.append(path)
        if path == "/tokenize":
            return self.tokenize(body)
        return self.complete(body) if path == "/v1/completions" else self.chat(body)

    def tokenize(self, body):
        tokens = [START]
        for place, message in enumerate(body["messages"]):
            last = place == len(body["messages"]) - 1
            tokens += [OPEN, *map(ord, message["content"])]
            if self.merges and message["role"] == "assistant":
                tokens[-len(message["content"]) - 1 :] = [999]
            if not (last and body["continue_final_message"]):
                tokens.append(END)
        tokens += [OPEN] if body["add_generation_prompt"] else []
        return {"count": len(tokens), "max_model_len": 4096, "tokens": tokens, "token_strs": None}

    def complete(self, body):
        assert body["max_tokens"] == 1
        assert body["return_tokens_as_token_ids"] is True
        choices = [self.choice(*item, body) for item in enumerate(body["prompt"])]
        used = sum(map(len, body["prompt"]))
        usage = {"prompt_tokens": used, "completion_tokens": len(choices),
                 "total_tokens": used + len(choices), "prompt_tokens_details": None}  # fmt: skip
        return {"id": "cmpl-1", "object": "text_completion", "created": 1, "model": "served",
                "choices": choices[::-1], "usage": usage}  # fmt: skip

    def choice(self, index, prompt, body):
        said = prompt[len(prompt) - prompt[::-1].index(OPEN) :]
        wanted = body["logprob_token_ids"] if self.version >= (0, 29) else []
        table = {f"token_id:{t}": self.logprob(said, t) for t in wanted}
        top = {**table, "token_id:9": -0.5}
        logprobs = {"text_offset": [0], "token_logprobs": [-0.5], "tokens": ["token_id:9"],
                    "top_logprobs": [top]}  # fmt: skip
        return {"index": index, "text": "M", "logprobs": logprobs, "finish_reason": "length",
                "stop_reason": None, "prompt_logprobs": None}  # fmt: skip

    def logprob(self, said, token):
        """Of a token behind what has been said, by the odds of whole answers."""
        so_far = "".join(map(chr, said))
        going = {a: p for a, p in self.odds.items() if a.startswith(so_far)}
        total = sum(going.values())
        if token == END:
            share = going.get(so_far, 0.0)
        else:
            share = sum(p for a, p in going.items() if a.startswith(so_far + chr(token)))
        return math.log(share / total) if share and total else -9999.0

    def chat(self, body):
        best = max(self.odds, key=self.odds.get)
        top = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in self.odds.items()]
        entry = {**next(t for t in top if t["token"] == best), "top_logprobs": top}
        message = {"role": "assistant", "content": best}
        choice = {"index": 0, "finish_reason": "stop", "message": message,
                  "logprobs": {"content": [entry]}}  # fmt: skip
        return {"id": "x", "object": "chat.completion", "created": 1, "model": "served",
                "choices": [choice], "usage": {"prompt_tokens": 7}}  # fmt: skip


def ask(judge, server, *passages, lm=None):
    with dspy.context(lm=lm or dr.models.vllm(server.url, model="m", **OPTIONS)):
        return judge(query="q", passages=list(passages)).judgment


def test_a_preference_is_measured(serve_paths):
    vllm = VLLM({"A": 0.6, "B": 0.3, "Tie": 0.05, "The": 0.05})
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    judgment = ask(judge, serve_paths(vllm), "x", "y")
    assert (judgment.best, judgment.raw, judgment.evidence) == (0, "A", "logprobs")
    assert judgment.confidence == pytest.approx((0.6 + 0.05 / 2) / 0.95)


def test_all_of_many_passages_are_ordered_not_the_likeliest_twenty(serve_paths):
    labels = [*"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "AA", "AB", "AC", "AD"]
    masses = {label: (i * 7) % 30 + 1.0 for i, label in enumerate(labels)}
    total = sum(masses.values())
    vllm = VLLM({label: mass / total for label, mass in masses.items()})
    judge = dr.ListwiseJudge(evidence="logprobs")
    judgment = ask(judge, serve_paths(vllm), *map(str, range(30)))
    order = sorted(range(30), key=lambda place: -masses[labels[place]])
    assert judgment.status == "ok"
    assert list(judgment.order) == order
    assert judgment.confidence == pytest.approx(max(masses.values()) / total)


def test_grades_of_several_tokens_are_told_apart(serve_paths):
    odds = {"1": 0.2, "10": 0.5, "7": 0.3}
    judge = dr.PointwiseJudge(scale=(0, 10), evidence="logprobs")
    judgment = ask(judge, serve_paths(VLLM(odds)), "p")
    assert judgment.score == pytest.approx(0.2 * 1 + 0.5 * 10 + 0.3 * 7)
    assert judgment.confidence == pytest.approx(0.5)


def test_yes_and_no_are_measured_as_words(serve_paths):
    judge = dr.PointwiseJudge("query, passage -> relevant: bool", evidence="logprobs")
    judgment = ask(judge, serve_paths(VLLM({"yes": 0.3, "no": 0.6, "Yes": 0.1})), "p")
    assert judgment.score == pytest.approx(0.3 / 0.9)


def test_labels_are_tokenized_once_and_then_two_requests_a_question_are_enough(serve_paths):
    vllm = VLLM({"A": 0.6, "B": 0.4})
    server = serve_paths(vllm)
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    with dspy.context(lm=dr.models.vllm(server.url, model="m", **OPTIONS)):
        sorter = dr.MergeSort(judge, concurrency=1)
        ranking = sorter("q", [*"abcd"]).ranking
    asked = ranking.usage.calls
    assert vllm.paths.count("/tokenize") == asked + 2 * 3
    assert vllm.paths.count("/v1/completions") == asked
    assert ranking.usage.prompt_tokens > 0
    assert "/v1/chat/completions" not in vllm.paths


def test_a_server_that_ignores_the_tokens_is_asked_for_an_answer_from_then_on(serve_paths):
    vllm = VLLM({"A": 0.6, "B": 0.4}, version=(0, 25))
    server = serve_paths(vllm)
    lm = dr.models.vllm(server.url, model="m", **OPTIONS)
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    assert ask(judge, server, "x", "y", lm=lm).confidence == pytest.approx(0.6)
    assert "0.29" in lm.engine.twin.unable
    before = len(vllm.paths)
    assert ask(judge, server, "x", "z", lm=lm).confidence == pytest.approx(0.6)
    assert vllm.paths[before:] == ["/v1/chat/completions"]


def test_a_server_without_such_requests_is_asked_for_an_answer(serve_paths):
    def other(path, body):
        if path != "/v1/chat/completions":
            return 404, {}, {"error": {"message": "no such path"}}
        return VLLM({"A": 0.7, "B": 0.3}).chat(body)

    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    assert ask(judge, serve_paths(other), "x", "y").confidence == pytest.approx(0.7)


def test_a_template_that_puts_the_answer_elsewhere_is_not_measured(serve_paths):
    vllm = VLLM({"A": 0.6, "B": 0.4}, merges=True)
    server = serve_paths(vllm)
    lm = dr.models.vllm(server.url, model="m", **OPTIONS)
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    assert ask(judge, server, "x", "y", lm=lm).confidence == pytest.approx(0.6)
    assert "right behind the prompt" in lm.engine.twin.unable


@pytest.mark.parametrize(
    "judge",
    [
        dr.PairwiseJudge(swap=False, evidence="generate"),
        dr.PairwiseJudge(swap=False, evidence="logprobs", adapter=dspy.ChatAdapter()),
        dr.PairwiseJudge(swap=False, evidence="logprobs", reasoning=True),
        dr.SetwiseJudge(votes=2),
    ],
)
def test_other_questions_are_answered_in_words(judge, serve_paths):
    vllm = VLLM({"A": 0.6, "B": 0.4})
    ask(judge, serve_paths(vllm), "x", "y")
    assert set(vllm.paths) == {"/v1/chat/completions"}


def test_the_engine_survives_saving(serve_paths):
    server = serve_paths(VLLM({"A": 0.6, "B": 0.4}))
    lm = dr.models.vllm(server.url, model="m", api_key="os.environ/NO_SUCH_KEY", **OPTIONS)
    state = json.loads(json.dumps(lm.engine.dump_state()))
    engine = type(lm.engine).load_state(state)
    again = dspy.LM(lm.model, engine=engine, async_engine=engine.twin, **OPTIONS)
    assert isinstance(engine.twin, AsyncExactEngine)
    assert (again.engine.url, again.engine.model) == (lm.engine.url, "m")
    assert lm.model.startswith("vllm/127.0.0.1")


def test_a_server_that_is_down_is_an_error_and_no_verdict_on_its_abilities(serve_paths):
    def down(path, body):
        return 503, {}, {"error": {"message": "busy"}}

    lm = dr.models.vllm(serve_paths(down).url, model="m", **OPTIONS)
    with dspy.context(lm=lm):
        judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
        ranking = dr.MergeSort(judge, error_retries=0)("q", ["x", "y"]).ranking
    assert ranking.degraded
    assert lm.engine.twin.unable == ""


def test_the_end_counts_where_another_label_goes_on():
    paths = {"A": (65, 2), "B": (66, 2), "AA": (65, 65, 2)}
    assert decided(paths) == {"A": (65, 2), "B": (66,), "AA": (65, 65)}


def test_a_label_of_several_tokens_counts_to_its_last_one():
    paths = {"A": (65, 2), "Tie": (84, 105, 101, 2)}
    assert decided(paths)["Tie"] == (84, 105, 101)


def test_labels_that_look_alike_cannot_be_measured():
    with pytest.raises(Unmeasurable):
        decided({"A": (65, 2), "a": (65, 2)})


def test_every_probability_is_of_its_own_label(serve_paths):
    for odds in itertools.permutations((0.5, 0.3, 0.2)):
        vllm = VLLM(dict(zip("ABC", odds, strict=True)))
        judgment = ask(dr.SetwiseJudge(evidence="logprobs"), serve_paths(vllm), *"xyz")
        assert judgment.probabilities == pytest.approx(odds)
