"""Named language models from a configuration: change the file, not the program."""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import dspy

from dspy_rerank.context import set_window
from dspy_rerank.errors import InputError
from dspy_rerank.limits import Limit, set_limit
from dspy_rerank.models._chat import OPENAI_LIKE
from dspy_rerank.models._config import (
    NOT_FOR_THE_WIRE,
    PRICES,
    Config,
    Deployment,
    read_config,
)
from dspy_rerank.models._hiding import HidingLM
from dspy_rerank.models._paced import PacedLM
from dspy_rerank.models._router import RouterEngine
from dspy_rerank.models._secret import resolved
from dspy_rerank.models.decision import PREFIX as DECIDING
from dspy_rerank.models.decision import deployed, refuse_group
from dspy_rerank.models.direct import direct
from dspy_rerank.models.local import PREFIX, local

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
                found = self.config.with_name(alias)
                if found is None:
                    raise KeyError(alias)
                self._made[alias] = _named(found, alias)
            return self._made[alias]

    def __contains__(self, alias: object) -> bool:
        """Whether there is such an alias, or a pattern such as ``openai/*`` that it fits."""
        return isinstance(alias, str) and self.config.with_name(alias) is not None

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
    the same one of an earlier file. What the file says that has no meaning here is named in a
    warning.

    Errors, whoever asks and catches them, never repeat a key that a provider repeats.

    An alias with one deployment becomes a `dspy.LM`: over a direct engine where the
    deployment is an OpenAI-compatible server (``openai/``, ``hosted_vllm/``, ``ollama/`` and such
    with an ``api_base``), in this process where it is ``local/...``, else by DSPy's own client or,
    for providers that it does not know, LiteLLM. One with several deployments or with fallbacks
    goes through LiteLLM's Router. ``rpm``, ``tpm`` and ``max_parallel_requests`` hold for every
    call through the alias in this process, by judges, by hand and by optimizers. A price
    (``input_cost_per_token`` and so on) may stand in ``litellm_params`` or ``model_info``.
    ``environment_variables`` are set at an alias's first use, where they are not set already.

    Args:
        path: A YAML file with ``model_list``, and perhaps ``router_settings``,
            ``litellm_settings``, ``credential_list`` and ``environment_variables``.

    Raises:
        InputError: The file cannot be used; the message names it and the entry.
    """
    found = Aliases(read_config(path))
    for alias in found:
        _loaded.pop(alias, None)
        _loaded[alias] = found
    return found


def named(alias: str) -> dspy.LM | None:
    """The language model of an alias that was loaded before, or that fits a pattern of such."""
    if alias in _loaded:
        return _loaded[alias][alias]
    fitting = [found for found in _loaded.values() if alias in found]
    return fitting[-1][alias] if fitting else None


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


def deployments(
    loaded: Aliases, alias: str
) -> Iterator[tuple[str, Deployment, Callable[[], dspy.LM]]]:
    """Each deployment of an alias by itself: a name, what the file says, and what makes its LM.

    A group comes last as a whole, so that it shows whether it survives those that fail.
    """
    found = loaded.config.with_name(alias)
    group = found.groups[alias] if found is not None else ()
    for place, deployment in enumerate(group if len(group) > 1 else ()):
        yield f"{alias}[{place}]", deployment, partial(_single, deployment)
    yield alias, next(iter(group)), partial(loaded.__getitem__, alias)


def _named(config: Config, alias: str) -> dspy.LM:
    group = config.groups[alias]
    for name, value in config.environment.items():
        os.environ.setdefault(name, str(resolved(value)))
    lm: Any
    try:
        if len(group) > 1 or _moves(config, alias):
            lm = _grouped(config, alias)
        else:
            lm = _single(next(iter(group)))
    except InputError as error:
        raise InputError(f"{config.source}, {alias}: {error}") from None
    lm.alias = alias
    set_limit(lm, **rates(group))
    sizes: list[Any] = [deployment.info.get("max_input_tokens") for deployment in group]
    if all(isinstance(size, int) and size > 0 for size in sizes):
        set_window(lm, min(sizes))
    return lm


def rates(group: tuple[Deployment, ...]) -> dict[str, Any]:
    """Requests and tokens a minute, and requests at once, that a group allows together."""
    found = {}
    for ours, theirs in (("rpm", "rpm"), ("tpm", "tpm"), ("at_once", "max_parallel_requests")):
        each = [deployment.total(theirs) for deployment in group]
        found[ours] = None if None in each else sum(rate or 0 for rate in each)
    return found


def _moves(config: Config, alias: str) -> bool:
    return len(config.reachable(alias)) > 1


def _grouped(config: Config, alias: str) -> dspy.LM:
    """The Router's name in DSPy holds a digest of the file's part, so that caches stay apart."""
    parts = [(n, d.model, d.params.get("api_base")) for n in config.reachable(alias)
             for d in config.groups[n]]  # fmt: skip
    refuse_group(alias, {name: config.groups[name] for name in config.reachable(alias)})
    digest = hashlib.sha256(repr(parts).encode()).hexdigest()[:8]
    engine = RouterEngine(config, alias)
    return HidingLM(
        f"router/{alias}-{digest}",
        engine=engine,
        async_engine=engine.twin,
    )


def _single(deployment: Deployment) -> Any:
    """The LM of one deployment, which knows its price where the file gives one."""
    lm = _unpriced(deployment)
    if deployment.price is not None:
        lm.price = deployment.price
    return lm


def _unpriced(deployment: Deployment) -> Any:
    if deployment.model.startswith(DECIDING):
        return deployed(deployment)
    wire = {
        key: resolved(value)
        for key, value in deployment.params.items()
        if key not in NOT_FOR_THE_WIRE | PRICES | {"base_model", "api_key"} and value is not None
    }
    provider, _, rest = deployment.model.partition("/")
    if deployment.model.startswith(PREFIX):
        return local(deployment.model, **wire)
    base = wire.get("api_base") or wire.get("base_url")
    if (
        base
        and rest
        and provider in OPENAI_LIKE | OLLAMA
        and set(wire) <= _DIRECT_KEYS | _GENERATION
    ):
        return _direct(provider, str(base), rest, deployment, wire)
    key = resolved(deployment.params.get("api_key"))
    salt = int(hashlib.sha256(str(base).encode()).hexdigest()[:7], 16)
    given = {**wire, **({"api_key": key} if key else {}), **({"rollout_id": salt} if base else {})}
    if any(rates((deployment,)).values()):
        lm = PacedLM(deployment.model, limit=Limit(), **given)
    else:
        lm = HidingLM(deployment.model, **given)
    if base:
        lm.salt = salt
    return lm


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
