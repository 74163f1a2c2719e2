"""DSPy's requests as llama.cpp reads them, and llama.cpp's answers as DSPy reads them."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from dspy import lm15

from dspy_rerank.models._llama import Body

DEFAULT_MAX_TOKENS = 512
"""Where the caller sets no limit; a small model that rambles would fill its whole context."""

OPENAI_LIKE = frozenset(
    {"openai", "hosted_vllm", "vllm", "openai_like", "lm_studio", "llamafile", "custom_openai"}
)
"""Providers that speak OpenAI's protocol, at an ``api_base`` of the user's if one is given."""
_PASSED_ON = frozenset({"logit_bias", "grammar", "chat_template_kwargs"})
_OURS = frozenset({"likelihood", "metadata"})


def chat_body(request: lm15.Request) -> Body:
    """The request as a chat completion for llama.cpp, which takes a few parameters more."""
    body = openai_body(request)
    return {
        "max_tokens": DEFAULT_MAX_TOKENS,
        **body,
        **_extensions(request.config.extensions or {}),
    }


def openai_body(request: lm15.Request) -> Body:
    """The request as any OpenAI-compatible server reads it, without model and extensions."""
    config = request.config
    body = {
        "messages": list(_messages(request)),
        "max_tokens": config.max_tokens,
        "temperature": config.temperature,
        "top_p": config.top_p,
        "top_k": config.top_k,
        "seed": config.seed,
        "stop": list(config.stop) or None,
        "frequency_penalty": config.frequency_penalty,
        "presence_penalty": config.presence_penalty,
        "response_format": _response_format(config.response_format),
        **_logprobs(config.logprobs),
    }
    return {key: value for key, value in body.items() if value is not None}


def raw_prompt(request: lm15.Request) -> str:
    """The request as one text that ends where the answer begins, without a chat template.

    A turn of the assistant continues the turn before it on the same line; everything else is
    set apart by an empty line.
    """
    text = ""
    for message in _messages(request):
        gap = " " if message["role"] == "assistant" else "\n\n"
        text += f"{gap}{message['content']}" if text else message["content"]
    return text


def continuation(request: lm15.Request) -> str | None:
    """The text whose likelihood is asked for, ``None`` when an answer is.

    Either ``Config.extensions["likelihood"]`` or, for calls that come from keyword arguments,
    ``metadata={"likelihood": ...}``, the one open-ended argument that DSPy lets through.
    """
    extensions = request.config.extensions or {}
    metadata = extensions.get("metadata")
    found = extensions.get("likelihood")
    if found is None and isinstance(metadata, dict):
        found = metadata.get("likelihood")
    if found is not None and not isinstance(found, str):
        raise lm15.InvalidRequestError(f"the text to score is a str, got {found!r}")
    return found


def response(body: Body, model: str) -> lm15.Response:
    """The answer in DSPy's terms; ``provider_data`` keeps the timings only."""
    choices = [
        {**choice, "message": choice.get("message") or {"content": choice.get("text", "")}}
        for choice in body["choices"]
    ]
    answer = lm15.response_from_openai_chat({**body, "choices": choices, "model": model})
    return replace(answer, provider_data={"timings": body.get("timings", {})})


def _messages(request: lm15.Request) -> Iterator[dict[str, str]]:
    if request.tools:
        raise lm15.UnsupportedFeatureError("this engine takes no tools", feature="tools")
    if request.system is not None:
        yield {"role": "system", "content": _text(request.system)}
    for message in request.messages:
        yield {"role": message.role, "content": _text(message.parts)}


def _text(parts: Any) -> str:
    if isinstance(parts, str):
        return parts
    if not all(isinstance(part, lm15.TextPart) for part in parts):
        raise lm15.UnsupportedFeatureError("this engine reads text only", feature="media")
    return "".join(part.text for part in parts)


def _logprobs(top: int | None) -> dict[str, Any]:
    """Log-probabilities; llama.cpp reports none when asked for no alternatives at all."""
    return {} if top is None else {"logprobs": True, "top_logprobs": max(top, 1)}


def _response_format(wanted: dict[str, Any] | None) -> dict[str, Any] | None:
    if wanted is None or wanted.get("type") != "json_schema":
        return wanted
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": wanted["schema"]}}


def _extensions(extensions: dict[str, Any]) -> dict[str, Any]:
    unknown = sorted(set(extensions) - _PASSED_ON - _OURS)
    if unknown:
        raise lm15.UnsupportedFeatureError(
            f"local models do not know the parameters {unknown}", feature=unknown[0]
        )
    return {key: value for key, value in extensions.items() if key in _PASSED_ON}
