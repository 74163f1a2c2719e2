"""Probabilities of labels as vLLM measures them, for all labels and not for the likeliest tokens.

Labels are put behind the prompt as tokens, and one request asks for the log-probabilities of
exactly these tokens (``logprob_token_ids``, vLLM 0.29). Nothing is generated, so an answer is
always one of the labels, and no label is missed for not being among the top 20. The requests are
those that DSPy's own client sends to measure judgments, without its wording.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import dspy
from dspy import lm15

from dspy_rerank.models._chat import openai_body
from dspy_rerank.models._hiding import HidingLM
from dspy_rerank.models.direct import TIMEOUT, AsyncDirectEngine, DirectEngine

Path = tuple[int, ...]

FAINTEST = -1e4
"""Log-probability of what the model rules out."""


class Unmeasurable(Exception):  # noqa: N818
    """The server, its template or its tokenizer does not allow it; the message says why."""


class AsyncExactEngine(AsyncDirectEngine):
    """A direct engine that measures, where a request names its labels.

    Attributes:
        unable: Why labels cannot be measured here, once that is known; answers are generated then.
    """

    scores_labels = True

    def __init__(self, url: str, model: str, **options: Any) -> None:
        super().__init__(url, model, **options)
        self.unable = ""
        self._paths: dict[str, Path] = {}

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """The likeliest label with the probabilities of all, or a generated answer."""
        labels, plain = _labels(request)
        if labels and not self.unable:
            try:
                async with self.limit.turn(1):
                    return await self._measured(plain, labels)
            except Unmeasurable as why:
                self.unable = str(why)
        return await super().complete(plain)

    async def _measured(self, request: lm15.Request, labels: Sequence[str]) -> lm15.Response:
        messages = openai_body(request)["messages"]
        before = await self._tokens(messages, add_generation_prompt=True)
        new = [label for label in labels if label not in self._paths]
        found = await asyncio.gather(*(self._path(messages, before, label) for label in new))
        self._paths.update(zip(new, found, strict=True))
        paths = decided({label: self._paths[label] for label in labels})
        return await self._scored(request.model, before, paths)

    async def _path(self, messages: list[Any], before: Path, label: str) -> Path:
        """A label's tokens behind the prompt, with the one that ends the answer."""
        said = [*messages, {"role": "assistant", "content": label}]
        begun = await self._tokens(said, continue_final_message=True)
        ended = await self._tokens(said)
        if begun[: len(before)] != before or ended[: len(begun)] != begun or begun == ended:
            raise Unmeasurable(f"the chat template does not put {label!r} right behind the prompt")
        return ended[len(before) : len(begun) + 1]

    async def _tokens(self, messages: list[Any], **options: bool) -> Path:
        asked = {"add_generation_prompt": False, "continue_final_message": False, **options}
        url = self.url.removesuffix("/v1") + "/tokenize"
        body = await self._ask(url, {"messages": messages, **asked})
        tokens = body.get("tokens")
        if not isinstance(tokens, list) or not all(type(token) is int for token in tokens):
            raise Unmeasurable(f"{url} gave no tokens")
        return tuple(tokens)

    async def _scored(self, model: str, before: Path, paths: Mapping[str, Path]) -> lm15.Response:
        nodes = sorted({path[:size] for path in paths.values() for size in range(len(path))})
        wanted = sorted({token for path in paths.values() for token in path})
        body = await self._ask(
            f"{self.url}/completions",
            {
                "prompt": [[*before, *node] for node in nodes], "max_tokens": 1,
                "temperature": 1.0, "logprobs": 0, "return_tokens_as_token_ids": True,
                "logprob_token_ids": wanted,
            },
        )  # fmt: skip
        tables = dict(zip(nodes, _tables(body, len(nodes)), strict=True))
        return _answer(body, model, {label: _sum(tables, path) for label, path in paths.items()})

    async def _ask(self, url: str, body: dict[str, Any]) -> Mapping[str, Any]:
        """One request; a server that does not know such requests cannot measure."""
        try:
            return await self._exchange(url, {**body, "model": self.model})
        except lm15.InvalidRequestError as error:
            raise Unmeasurable(str(error)) from None


class ExactEngine(DirectEngine):
    """The synchronous engine: the same requests, sent from the background loop."""

    scores_labels = True
    TWIN = AsyncExactEngine


def vllm(
    url: str, *, model: str, api_key: str | None = None, timeout: float = TIMEOUT, **kwargs: Any
) -> dspy.LM:
    """A model behind vLLM 0.29 or newer, whose probabilities of labels are measured exactly.

    Judges that go by log-probabilities and use the compact adapter then know the probability of
    every label, 100 grades or 50 passages of a window included, in one request without generated
    text beside one for tokens (the first question takes two more for each label). All other
    questions, and servers that cannot, are answered as :func:`dspy_rerank.models.direct` does.

    Args:
        url: Where the API is, with its version: ``http://127.0.0.1:8000/v1``.
        model: The model's name there.
        api_key: A key, or ``os.environ/NAME``, which alone survives saving.
        timeout: Seconds for a whole request.
        **kwargs: As in :func:`dspy_rerank.models.direct`.

    Raises:
        InputError: The address is none.
    """
    engine = ExactEngine(url, model, api_key=api_key, timeout=timeout)
    place = engine.url.partition("://")[2]
    settings = {"temperature": 0.0, **kwargs}
    return HidingLM(f"vllm/{place}/{model}", **settings, engine=engine, async_engine=engine.twin)


def decided(paths: Mapping[str, Path]) -> dict[str, Path]:
    """Each label's tokens, with the end of the answer only where another label goes on from it.

    Args:
        paths: The tokens of each label, and the one that ends the answer.

    Raises:
        Unmeasurable: Two labels have the same tokens.
    """
    if len(set(paths.values())) < len(paths):
        raise Unmeasurable("two labels have the same tokens")
    return {label: _needed(path, paths.values()) for label, path in paths.items()}


def _needed(path: Path, all_paths: Iterable[Path]) -> Path:
    bare = path[:-1]
    longer = any(other != path and other[: len(bare)] == bare for other in all_paths)
    return path if longer else bare


def _labels(request: lm15.Request) -> tuple[tuple[str, ...], lm15.Request]:
    """The labels that a request names in its metadata, and the request without them."""
    given = dict(request.config.extensions or {})
    metadata = given.get("metadata")
    if not isinstance(metadata, Mapping) or "labels" not in metadata:
        return (), request
    rest = {name: value for name, value in metadata.items() if name != "labels"}
    more = (
        {**given, "metadata": rest} if rest else {n: v for n, v in given.items() if n != "metadata"}
    )
    plain = replace(request, config=replace(request.config, extensions=more or None))
    return tuple(map(str, cast("Sequence[Any]", metadata["labels"]))), plain


def _tables(body: Mapping[str, Any], count: int) -> list[dict[int, float]]:
    """For each prompt the log-probabilities of the tokens asked for."""
    choices = body.get("choices")
    if not isinstance(choices, list) or len(choices) != count:
        raise Unmeasurable(f"the server answered {count} prompts otherwise than one by one")
    return [_table(choice) for choice in sorted(choices, key=lambda choice: choice["index"])]


def _table(choice: Mapping[str, Any]) -> dict[int, float]:
    tops = (choice.get("logprobs") or {}).get("top_logprobs") or [{}]
    named = ((key.partition("token_id:")[2], value) for key, value in (tops[0] or {}).items())
    return {
        int(token): max(FAINTEST, float(value))
        for token, value in named
        if token.isdigit() and isinstance(value, int | float) and not math.isnan(value)
    }


def _sum(tables: Mapping[Path, Mapping[int, float]], path: Path) -> float:
    steps = [tables[path[:size]].get(token) for size, token in enumerate(path)]
    if None in steps:
        raise Unmeasurable("the server ignored logprob_token_ids; vLLM 0.29 or newer knows it")
    return max(FAINTEST, min(0.0, math.fsum(step for step in steps if step is not None)))


def _answer(body: Mapping[str, Any], model: str, scores: Mapping[str, float]) -> lm15.Response:
    """The likeliest label as if it were one token, beside all others."""
    best = max(scores, key=scores.__getitem__)
    top = tuple(lm15.TopLogprob(label, score) for label, score in scores.items())
    used = body.get("usage") or {}
    return lm15.Response(
        id=body.get("id"),
        model=body.get("model") or model,
        message=lm15.Message.assistant([lm15.TextPart(best)]),
        finish_reason="stop",
        usage=lm15.Usage(
            input_tokens=used.get("prompt_tokens"), output_tokens=used.get("completion_tokens"),
            total_tokens=used.get("total_tokens"),
        ),
        logprobs=(lm15.TokenLogprob(best, scores[best], top=top),),
    )  # fmt: skip
