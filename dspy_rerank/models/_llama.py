"""One llama.cpp server inside this process, loaded once for each file and settings."""

import http.client
import importlib
import importlib.util
import json
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from dspy import lm15

from dspy_rerank.errors import MissingExtraError, NoModelError

Body = dict[str, Any]
"""A request or an answer as the OpenAI API writes it."""


N_CTX = 4096
"""Default length of the context: twenty passages of a listwise question, or a page of demos."""


@dataclass(frozen=True, slots=True)
class Settings:
    """How a model is loaded.

    One request runs at a time: batching four of them gained 15 % on one-sentence passages and
    nothing on longer ones (2 cores), and made a score depend on what else was being scored.

    Attributes:
        n_ctx: Longest prompt and answer together, in tokens.
        n_threads: Threads; by default as many as there are cores.
        cache_mib: Memory for the prompts read earlier, of which a new one may share a prefix.
    """

    n_ctx: int = N_CTX
    n_threads: int = -1
    cache_mib: int = 256


class Token(NamedTuple):
    """A token of the model's vocabulary."""

    id: int
    bytes: bytes

    @property
    def text(self) -> str:
        """The token as text; a token that is part of a character reads as U+FFFD."""
        return self.bytes.decode("utf-8", "replace")

    @property
    def whole(self) -> bool:
        """Whether the token consists of whole characters."""
        return self.text.encode() == self.bytes


class Llama:
    """A loaded model. Safe to call from several threads, which then wait for one another.

    Args:
        server: The ``xllamacpp.Server``.
        settings: How it was loaded.
        api_key: What its HTTP door on loopback asks for.
    """

    def __init__(self, server: Any, settings: Settings, api_key: str) -> None:
        self.server = server
        self.settings = settings
        self.api_key = api_key
        self.tokenize = lru_cache(maxsize=256)(self._tokenize)

    @property
    def url(self) -> str:
        """Where the OpenAI-compatible API of this model listens, on loopback."""
        return f"{self.server.listening_address}/v1"

    def chat(self, body: Body) -> Body:
        """The answer to a chat request, under the model's chat template."""
        return _checked(self.server.handle_chat_completions(body))

    def complete(self, body: Body) -> Body:
        """The continuation of ``body["prompt"]``, a text or a list of token ids."""
        return _checked(self.server.handle_completions(body))

    def _tokenize(self, text: str, special: bool = False) -> tuple[Token, ...]:
        """The tokens of a text, in which control tokens such as ``<|im_end|>`` are plain text.

        Args:
            text: Any text.
            special: Whether to begin with the token that begins a document, if the model has one.
        """
        asked = {"content": text, "add_special": special, "parse_special": False}
        answer = self._post("/tokenize", {**asked, "with_pieces": True})
        return tuple(Token(t["id"], _piece(t["piece"])) for t in answer["tokens"])

    def _post(self, path: str, body: Body) -> Body:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self.api_key}"}
        connection = http.client.HTTPConnection(urlsplit(self.server.listening_address).netloc)
        try:
            connection.request("POST", path, json.dumps(body), headers)
            return _checked(json.loads(connection.getresponse().read()))
        finally:
            connection.close()


_loaded: dict[tuple[Path, Settings], Llama] = {}
_lock = threading.Lock()


def load(path: Path, settings: Settings = Settings()) -> Llama:
    """The model in a GGUF file, loaded at the first call and shared afterwards."""
    with _lock:
        key = (path, settings)
        if key not in _loaded:
            _loaded[key] = _start(path, settings)
        return _loaded[key]


def require() -> None:
    """Raise unless xllamacpp is installed; it is not imported.

    Raises:
        MissingExtraError: With the line that installs it.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise MissingExtraError("local models need xllamacpp: pip install 'dspy-rerank[local]'")


def _start(path: Path, settings: Settings) -> Llama:
    xllamacpp = _library()
    api_key = secrets.token_urlsafe()
    try:
        server = xllamacpp.Server(_parameters(xllamacpp, path, settings, api_key))
    except RuntimeError as error:
        raise NoModelError(f"llama.cpp cannot load {path}: {error}") from error
    return Llama(server, settings, api_key)


def _parameters(xllamacpp: ModuleType, path: Path, settings: Settings, api_key: str) -> Any:
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = settings.n_ctx
    params.n_parallel = 1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = settings.n_threads
    params.cache_ram_mib = settings.cache_mib
    params.slot_prompt_similarity = 0.0  # keep every prompt, also next to a similar one
    params.verbosity = -1
    params.api_keys = [api_key]  # a page in a browser can reach loopback, too
    params.endpoint_slots = params.ui = False
    return params


def _library() -> ModuleType:
    require()
    with _yielding_threads():
        return importlib.import_module("xllamacpp")


@contextmanager
def _yielding_threads() -> Iterator[None]:
    """Make OpenMP, which reads its settings when it is loaded, wait without spinning.

    A spinning wait costs nothing on an idle machine and a factor of 4 to 7 on a busy one: each
    of the many barriers then lasts until the scheduler lets the other thread run.
    """
    name = "OMP_WAIT_POLICY"
    before = os.environ.get(name)
    os.environ.setdefault(name, "passive")
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name, None)


def _piece(piece: str | list[int]) -> bytes:
    """A token's bytes; the server writes those that are no valid text as numbers."""
    return piece.encode() if isinstance(piece, str) else bytes(piece)


def _checked(body: Mapping[str, Any]) -> Body:
    """The body, unless it reports an error, which is raised in DSPy's terms."""
    error = body.get("error")
    if error is None:
        return dict(body)
    message = str(error.get("message", error))
    if error.get("type") == "exceed_context_size_error":
        raise lm15.ContextLengthError(message, provider="local")
    kind = lm15.InvalidRequestError if error.get("code") == 400 else lm15.ServerError
    raise kind(message, provider="local")
