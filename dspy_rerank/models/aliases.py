"""Named language models from a configuration: change the file, not the program."""

import hashlib
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from dspy_rerank.errors import InputError
from dspy_rerank.limits import set_limit
from dspy_rerank.models._config import NOT_FOR_THE_WIRE, Config, Deployment, read_config
from dspy_rerank.models._router import AsyncRouterEngine, RouterEngine
from dspy_rerank.models._secret import resolved
from dspy_rerank.models.direct import direct
from dspy_rerank.models.local import PREFIX, local

DIRECT = frozenset(
    {"openai", "hosted_vllm", "vllm", "openai_like", "lm_studio", "llamafile", "custom_openai"}
)
"""Providers that speak OpenAI's protocol at an ``api_base`` of the user's."""
OLLAMA = frozenset({"ollama", "ollama_chat"})
_DIRECT_KEYS = frozenset({"api_base", "base_url", "api_key", "timeout"})


class Aliases(Mapping[str, dspy.LM]):
    """Language models by alias, each made when it is first asked for, and then kept.

    Args:
        config: Of the file.
    """

    def __init__(self, config: Config):
        self.config = config
        self._made: dict[str, dspy.LM] = {}
        self._lock = threading.RLock()

    def __getitem__(self, alias: str) -> dspy.LM:
        """The language model of an alias.

        Raises:
            KeyError: There is no such alias.
            InputError: An environment variable that its configuration names is not set.
        """
        with self._lock:
            if alias not in self._made:
                self._made[alias] = _named(self.config, alias)
            return self._made[alias]

    def __iter__(self) -> Iterator[str]:
        return iter(self.config.groups)

    def __len__(self) -> int:
        return len(self.config.groups)

    def __repr__(self) -> str:
        return f"Aliases({', '.join(self)})"

    def alias_of(self, lm: Any) -> str | None:
        """Under which alias an LM is known here."""
        return next((alias for alias, made in self._made.items() if made is lm), None)


_loaded: dict[str, Aliases] = {}


def load(path: str | Path) -> Aliases:
    """The language models of a LiteLLM proxy configuration, by alias.

    The aliases are known to `get` afterwards, and wherever a model's name is taken. Nothing is
    contacted, and no key is looked up before its alias is used. An alias of a later file hides
    the same one of an earlier file.

    An alias with one deployment becomes a plain `dspy.LM`: over a direct engine where the
    deployment is an OpenAI-compatible server (``openai/``, ``hosted_vllm/``, ``ollama/`` and such
    with an ``api_base``), in this process where it is ``local/...``, else by DSPy's own client or,
    for providers that it does not know, LiteLLM. One with several deployments or with fallbacks
    goes through LiteLLM's Router. ``rpm`` and ``tpm`` limit all judges of this process.

    Args:
        path: A YAML file with ``model_list``, and perhaps ``router_settings`` and
            ``litellm_settings``.

    Raises:
        InputError: The file cannot be used; the message names it and the entry.
    """
    found = Aliases(read_config(path))
    for alias in found:
        _loaded.pop(alias, None)
        _loaded[alias] = found
    return found


def named(alias: str) -> dspy.LM | None:
    """The language model of an alias that was loaded before."""
    return _loaded[alias][alias] if alias in _loaded else None


def alias_of(lm: Any) -> str | None:
    """The alias under which an LM was loaded, if it was."""
    found = ((name, aliases.alias_of(lm)) for name, aliases in _loaded.items())
    return next((name for name, alias in found if alias == name), None)


def known() -> tuple[str, ...]:
    """All aliases that were loaded."""
    return tuple(_loaded)


def forget() -> None:
    """Unload all aliases."""
    _loaded.clear()


def deployments(loaded: Aliases, alias: str) -> Iterator[tuple[str, str, Callable[[], dspy.LM]]]:
    """Each deployment of an alias by itself: a name, the model, and what makes its LM.

    A group comes last as a whole, so that it shows whether it survives those that fail.
    """
    group = loaded.config.groups[alias]
    for place, deployment in enumerate(group if len(group) > 1 else ()):
        yield f"{alias}[{place}]", deployment.model, partial(_single, deployment)
    yield alias, next(iter(group)).model, partial(loaded.__getitem__, alias)


def _named(config: Config, alias: str) -> dspy.LM:
    group = config.groups[alias]
    try:
        lm = (
            _grouped(config, alias)
            if len(group) > 1 or _moves(config, alias)
            else _single(next(iter(group)))
        )
    except InputError as error:
        raise InputError(f"{config.source}, {alias}: {error}") from None
    rates = {name: [d.total(name) for d in group] for name in ("rpm", "tpm")}
    known = {n: None if None in v else sum(x or 0 for x in v) for n, v in rates.items()}
    if any(known.values()):
        set_limit(lm, **known)
    return lm


def _moves(config: Config, alias: str) -> bool:
    return len(config.reachable(alias)) > 1


def _grouped(config: Config, alias: str) -> dspy.LM:
    """The Router's name in DSPy holds a digest of the file's part, so that caches stay apart."""
    parts = [(n, d.model, d.params.get("api_base")) for n in config.reachable(alias)
             for d in config.groups[n]]  # fmt: skip
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
    return dspy.LM(
        f"router/{alias}-{digest}",
        engine=RouterEngine(config, alias),
        async_engine=AsyncRouterEngine(config, alias),
    )


def _single(deployment: Deployment) -> dspy.LM:
    wire = {
        key: resolved(value)
        for key, value in deployment.params.items()
        if key not in NOT_FOR_THE_WIRE and value is not None and key != "api_key"
    }
    provider, _, rest = deployment.model.partition("/")
    if deployment.model.startswith(PREFIX):
        return local(deployment.model, **wire)
    base = wire.get("api_base") or wire.get("base_url")
    if base and rest and provider in DIRECT | OLLAMA and set(wire) <= _DIRECT_KEYS | _GENERATION:
        return _direct(provider, str(base), rest, deployment, wire)
    key = resolved(deployment.params.get("api_key"))
    salt = {"rollout_id": int(hashlib.sha256(str(base).encode()).hexdigest()[:7], 16)}
    given = {**wire, **({"api_key": key} if key else {}), **(salt if base else {})}
    return dspy.LM(deployment.model, **given)


_GENERATION = frozenset({"temperature", "max_tokens", "top_p", "seed", "stop", "num_retries"})


def _direct(
    provider: str, base: str, model: str, deployment: Deployment, wire: Mapping[str, Any]
) -> dspy.LM:
    url = base.rstrip("/")
    url = f"{url}/v1" if provider in OLLAMA and not url.endswith("/v1") else url
    more = {key: value for key, value in wire.items() if key not in ("api_base", "base_url")}
    key = deployment.params.get("api_key")
    resolved(key)
    return direct(url, model=model, api_key=key, **more)
