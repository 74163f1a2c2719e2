"""Reads the configuration file of LiteLLM's proxy. Nothing is contacted or looked up here."""

import fnmatch
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from dspy_rerank.errors import InputError
from dspy_rerank.prices import NAMES, Price, read_price

logger = logging.getLogger(__name__)

NOT_FOR_THE_WIRE = frozenset(
    {"rpm", "tpm", "max_parallel_requests", "weight", "order", "tags", "use_in_pass_through"}
)
PRICES = frozenset(NAMES.values())
ROUTER_KEYS = frozenset(
    {
        "routing_strategy", "routing_strategy_args", "timeout", "stream_timeout", "cooldown_time",
        "allowed_fails", "allowed_fails_policy", "disable_cooldowns", "enable_pre_call_checks",
        "default_litellm_params", "enable_weighted_failover",
    }
)  # fmt: skip
"""Settings that LiteLLM's Router gets; retries and fallbacks are made here."""
MOVES = ("fallbacks", "context_window_fallbacks", "content_policy_fallbacks")
_OWN = {
    "": {
        "model_list", "litellm_settings", "router_settings", "general_settings",
        "environment_variables", "credential_list",
    },
    "router_settings": {
        *ROUTER_KEYS, *MOVES, "num_retries", "retry_after", "default_fallbacks", "max_fallbacks",
        "model_group_alias",
    },
    "litellm_settings": {
        *MOVES, "num_retries", "default_fallbacks", "drop_params", "request_timeout",
        "allowed_fails", "cooldown_time",
    },
}  # fmt: skip
"""What is used. ``general_settings`` are the proxy server's own and change no answer."""


@dataclass(frozen=True)
class Deployment:
    """One model at one provider.

    Attributes:
        model: As LiteLLM names it.
        params: Everything else of ``litellm_params``; secrets as written in the file.
        info: The file's ``model_info``.
    """

    model: str
    params: Mapping[str, Any] = field(repr=False, default_factory=dict)
    info: Mapping[str, Any] = field(default_factory=dict)

    def total(self, name: str) -> float | None:
        """A rate of this deployment (``rpm`` or ``tpm``), if one is set."""
        value = self.params.get(name)
        return float(value) if isinstance(value, int | float) and value > 0 else None

    @property
    def price(self) -> Price | None:
        """What the file says that its tokens cost."""
        return read_price(self.params, self.info)

    @property
    def listed(self) -> str:
        """The model's name in price lists."""
        return str(self.info.get("base_model") or self.params.get("base_model") or self.model)


@dataclass(frozen=True)
class Config:
    """What a file says.

    Attributes:
        source: The file.
        groups: Deployments by alias, in the file's order; an alias may be a pattern (``openai/*``).
        router: Settings of LiteLLM's Router.
        moves: Per kind of failure (``fallbacks`` for any), by alias, whom to ask then, in order.
        retries: Further tries within a group, if the file says.
        retry_after: Seconds between two tries, at least.
        drop_params: Drop parameters that a provider does not know.
        environment: Variables that the file sets where they are not set.
        unused: What the file says that is not used here.
    """

    source: str
    groups: Mapping[str, tuple[Deployment, ...]]
    router: Mapping[str, Any] = field(default_factory=dict)
    moves: Mapping[str, Mapping[str, tuple[str, ...]]] = field(default_factory=dict)
    retries: int | None = None
    retry_after: float = 0.0
    drop_params: bool = False
    environment: Mapping[str, Any] = field(repr=False, default_factory=dict)
    unused: tuple[str, ...] = ()

    @property
    def fallbacks(self) -> Mapping[str, tuple[str, ...]]:
        """By alias, whom to ask when it fails, in order."""
        return self.moves.get("fallbacks", {})

    def reachable(self, alias: str) -> tuple[str, ...]:
        """The alias and all that may answer in its place."""
        found = [alias]
        for name in found:
            for moves in self.moves.values():
                found += [n for n in moves.get(name, ()) if n not in found]
        return tuple(found)

    def with_name(self, name: str) -> "Config | None":
        """This configuration with a name of its own that one of its patterns stands for.

        ``None`` where the name is neither an alias nor fits a pattern; of several patterns the
        longest counts.
        """
        if name in self.groups:
            return self
        fitting = [p for p in self.groups if "*" in p and fnmatch.fnmatchcase(name, p)]
        if not fitting:
            return None
        pattern = max(fitting, key=len)
        group = tuple(_filled(d, pattern, name) for d in self.groups[pattern])
        moves = {
            kind: {**named, name: named[pattern]} if pattern in named else named
            for kind, named in self.moves.items()
        }
        return replace(self, groups={**self.groups, name: group}, moves=moves)


def _filled(deployment: Deployment, pattern: str, name: str) -> Deployment:
    """A pattern's deployment for one model: its own star stands for what the name's did."""
    before, _, after = pattern.partition("*")
    rest = name[len(before) : len(name) - len(after)]
    return replace(deployment, model=deployment.model.replace("*", rest, 1))


def read_config(path: str | Path) -> Config:
    """The content of a configuration file.

    Raises:
        InputError: It cannot be read, or says something that cannot be; file and entry are named.
    """
    source = Path(path)
    try:
        content = yaml.safe_load(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError(f"{source}: there is no such file") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" (line {mark.line + 1})" if mark else ""
        raise InputError(f"{source} is not YAML{where}") from None
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise InputError(f"{source} cannot be read: {type(error).__name__}") from None
    try:
        config = _config(str(source), content)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None
    except (TypeError, AttributeError, ValueError, LookupError, RecursionError) as error:
        raise InputError(f"{source}: a value is of a wrong kind ({error})"[:400]) from None
    if config.unused:
        logger.warning("%s: not used here: %s", source, ", ".join(config.unused))
    return config


def _config(source: str, content: Any) -> Config:
    entries = content.get("model_list") if isinstance(content, Mapping) else None
    if not isinstance(entries, list) or not entries:
        raise InputError("expected a model_list with model_name and litellm_params, as LiteLLM has")
    router, general = (_section(content, n) for n in ("router_settings", "litellm_settings"))
    groups = _groups(entries, _credentials(content))
    for alias, target in _aliases(router).items():
        if target not in groups:
            raise InputError(f"model_group_alias names {target!r}, which model_list does not have")
        groups.setdefault(alias, groups[target])
    kept = {key: value for key, value in router.items() if key in ROUTER_KEYS}
    for theirs, ours in (("request_timeout", "timeout"), ("allowed_fails", "allowed_fails"),
                         ("cooldown_time", "cooldown_time")):  # fmt: skip
        if theirs in general:
            kept.setdefault(ours, general[theirs])
    retries = router.get("num_retries", general.get("num_retries"))
    return Config(
        source, groups, kept, {kind: _moves(groups, kind, general, router) for kind in MOVES},
        None if retries is None else int(_number("num_retries", retries)),
        _number("retry_after", router.get("retry_after") or 0),
        bool(general.get("drop_params")), _section(content, "environment_variables"),
        tuple(_unused(content)),
    )  # fmt: skip


def _unused(content: Mapping[str, Any]) -> Iterable[str]:
    yield from sorted(map(str, set(content) - _OWN[""]))
    for name in ("router_settings", "litellm_settings"):
        yield from (f"{name}.{key}" for key in sorted(map(str, set(content.get(name) or ())
                    - _OWN[name])))  # fmt: skip


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = content.get(name) or {}
    if not isinstance(section, Mapping):
        raise InputError(f"{name} is {type(section).__name__}, expected a mapping")
    return section


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
        raise InputError(f"{name} is {value!r:.40}, expected a number of at least 0")
    return float(value)


def _credentials(content: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Parameters that deployments name by ``litellm_credential_name``."""
    found = {}
    for entry in content.get("credential_list") or ():
        name = entry.get("credential_name") if isinstance(entry, Mapping) else None
        values = entry.get("credential_values") if isinstance(entry, Mapping) else None
        if not isinstance(name, str) or not isinstance(values, Mapping):
            raise InputError("credential_list needs a credential_name and credential_values each")
        found[name] = values
    return found


def _groups(
    entries: list[Any], credentials: Mapping[str, Mapping[str, Any]]
) -> dict[str, tuple[Deployment, ...]]:
    groups: dict[str, tuple[Deployment, ...]] = {}
    for place, entry in enumerate(entries):
        name, deployment = _deployment(place, entry, credentials)
        groups[name] = (*groups.get(name, ()), deployment)
    return groups


def _deployment(
    place: int, entry: Any, credentials: Mapping[str, Mapping[str, Any]]
) -> tuple[str, Deployment]:
    name = entry.get("model_name") if isinstance(entry, Mapping) else None
    params = entry.get("litellm_params") if isinstance(entry, Mapping) else None
    model = params.get("model") if isinstance(params, Mapping) else None
    if not isinstance(name, str) or not name or not isinstance(model, str) or not model:
        raise InputError(f"model_list[{place}] needs a model_name and litellm_params with a model")
    rest = {key: value for key, value in params.items() if key != "model"}  # pyright: ignore[reportOptionalMemberAccess]
    named = rest.pop("litellm_credential_name", None)
    if named is not None and named not in credentials:
        raise InputError(f"model_list[{place}] names the credential {named!r}, which is not listed")
    info = entry.get("model_info") or {}
    if not isinstance(info, Mapping):
        raise InputError(f"model_list[{place}]: model_info is {type(info).__name__}, not a mapping")
    shared = credentials[named] if named is not None else {}
    found = Deployment(model, {**shared, **rest}, info)
    try:
        _ = found.price
    except InputError as error:
        raise InputError(f"model_list[{place}]: {error}") from None
    return name, found


def _aliases(router: Mapping[str, Any]) -> dict[str, str]:
    given = _section(router, "model_group_alias")
    return {
        name: str(v.get("model", "")) if isinstance(v, Mapping) else str(v)
        for name, v in given.items()
    }


def _moves(
    groups: Mapping[str, Any], kind: str, *sections: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """By alias, of which a later section's count; an entry that names no alias is an error."""
    found: dict[str, tuple[str, ...]] = {}
    for section in sections:
        for entry in section.get(kind) or ():
            for name, targets in _pairs(kind, entry):
                found[name] = tuple(targets)
        if kind == "fallbacks":
            for name in section.get("default_fallbacks") or ():
                for alias in groups:
                    if alias != name and name not in found.get(alias, ()):
                        found[alias] = (*found.get(alias, ()), name)
    if "*" in found and "*" not in groups:
        everyone = found.pop("*")
        found = {**{a: tuple(n for n in everyone if n != a) for a in groups}, **found}
    for name, targets in found.items():
        lost = next((n for n in (name, *targets) if n not in groups), None)
        if lost is not None:
            raise InputError(f"{kind} name {lost!r}, which model_list does not have")
    return {name: targets for name, targets in found.items() if targets}


def _pairs(kind: str, entry: Any) -> Iterable[tuple[str, list[str]]]:
    good = isinstance(entry, Mapping) and all(
        isinstance(v, list) and all(isinstance(n, str) for n in v) for v in entry.values()
    )
    if not good:
        raise InputError(f"{kind} has {entry!r:.60}; expected entries like {{judge: [cheap]}}")
    return entry.items()
