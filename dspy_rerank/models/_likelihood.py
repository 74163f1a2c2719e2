"""How likely a model finds a given text after a prompt, token by token.

llama.cpp scores only what it generates, so the text is generated: a grammar written in token ids
leaves one choice at each step, and the server reports the probability that the model gave to it.
A grammar over the letters would let the model choose its own segmentation and distort the result.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from dspy import lm15

from dspy_rerank.models._llama import Body, Llama, Token

_TOPS = (200, 1 << 20)
"""How far to look for a token that cannot be forced: first nearby, then everywhere."""


def likelihood(llama: Llama, prompt: str, continuation: str, top: int = 0) -> Body:
    """The completion of a prompt by a given text, with the log-probability of each of its tokens.

    Args:
        llama: The model.
        prompt: Raw text, no chat template. Trailing spaces go to the continuation, and one space
            is put between the two where there is no white space.
        continuation: The text to score.
        top: How many alternatives to report for each token.

    Raises:
        lm15.InvalidRequestError: The continuation is empty.
        lm15.ContextLengthError: Prompt and continuation do not fit into the context.
    """
    before, text = seam(prompt, continuation)
    read = [token.id for token in llama.tokenize(before, special=True)]
    forced = llama.tokenize(text)
    _check_room(len(read), len(forced), llama.settings.n_ctx)
    answers = []
    for run in _runs(forced):
        answers.append(_score(llama, read, run, top))
        read += [token.id for token in run]
    return _merged(answers, continuation)


def seam(prompt: str, continuation: str) -> tuple[str, str]:
    """Prompt and continuation, cut where the tokenizer would cut: before the space."""
    text = continuation.strip()
    bare = prompt.rstrip(" ")
    return bare, text if not text or bare[-1:].isspace() or not bare else f" {text}"


def _check_room(read: int, forced: int, n_ctx: int) -> None:
    if not forced:
        raise lm15.InvalidRequestError("there is no text to score", provider="local")
    if read + forced > n_ctx:
        raise lm15.ContextLengthError(
            f"prompt ({read}) and text to score ({forced} tokens) exceed the context ({n_ctx})",
            provider="local",
        )


def _runs(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    """The tokens in runs that can be forced at once.

    The grammar stumbles over a token that is only a part of a character, so each such token is
    a run of its own.
    """
    for whole, group in groupby(tokens, lambda token: token.whole):
        run = list(group)
        yield from [run] if whole else ([token] for token in run)


def _score(llama: Llama, read: Sequence[int], run: Sequence[Token], top: int) -> Body:
    """The completion of what was read by one run."""
    if not run[0].whole:
        return _look_up(llama, read, run[0])
    body = llama.complete(_forcing(read, [token.id for token in run], max(top, 1)))
    for entry, token in zip(_entries(body), run, strict=True):
        entry |= _named(token, entry["top_logprobs"][:top])
    return body


def _look_up(llama: Llama, read: Sequence[int], token: Token) -> Body:
    """The score of one token, found among the alternatives to another: slow but exact."""
    other = llama.tokenize("a")[0].id
    for top in _TOPS:
        body = llama.complete(_forcing(read, [other], top))
        found = [e for e in _entries(body)[0]["top_logprobs"] if e["id"] == token.id]
        if found:
            _entries(body)[:] = [found[0] | _named(token, [])]
            return body
    raise lm15.ServerError(f"llama.cpp gave no score to {token}", provider="local")


def _named(token: Token, top: list[dict[str, Any]]) -> dict[str, Any]:
    return {"token": token.text, "bytes": list(token.bytes), "top_logprobs": top}


def _forcing(read: Sequence[int], ids: Sequence[int], top: int) -> Body:
    return {
        "prompt": list(read),
        "grammar": "root ::= " + " ".join(f"<[{i}]>" for i in ids),
        "max_tokens": len(ids),
        "logprobs": top,
        "temperature": 0.0,
        "samplers": ["temperature"],
    }


def _entries(body: Body) -> list[dict[str, Any]]:
    return body["choices"][0]["logprobs"]["content"]


def _merged(answers: Sequence[Body], text: str) -> Body:
    """The answers to the runs as one; the prompt was read once, in the first of them."""
    entries = [entry for body in answers for entry in _entries(body)]
    choice = {"index": 0, "text": text, "finish_reason": "stop", "logprobs": {"content": entries}}
    usage = answers[0]["usage"]
    counted = {
        "completion_tokens": len(entries),
        "total_tokens": usage["prompt_tokens"] + len(entries),
    }
    return {**answers[0], "choices": [choice], "usage": {**usage, **counted}}
