"""Reads the configuration file of LiteLLM's proxy. Nothing is contacted or looked up here."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from dspy_rerank.errors import InputError

NOT_FOR_THE_WIRE = frozenset({"rpm", "tpm", "max_parallel_requests", "weight", "order", "tags"})
ROUTER_KEYS = frozenset(
    {
        "routing_strategy", "num_retries", "timeout", "cooldown_time", "allowed_fails",
        "retry_after", "fallbacks", "context_window_fallbacks", "content_policy_fallbacks",
        "model_group_alias", "enable_pre_call_checks", "retry_policy", "allowed_fails_policy",
        "disable_cooldowns", "max_fallbacks", "default_litellm_params", "default_fallbacks",
    }
)  # fmt: skip


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


@dataclass(frozen=True)
class Config:
    """What a file says.

    Attributes:
        source: The file.
        groups: Deployments by alias, in the file's order.
        router: Settings of the Router.
        fallbacks: By alias, which to try when it fails, in order.
        drop_params: Drop parameters that a provider does not know.
    """

    source: str
    groups: Mapping[str, tuple[Deployment, ...]]
    router: Mapping[str, Any] = field(default_factory=dict)
    fallbacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drop_params: bool = False

    def reachable(self, alias: str) -> tuple[str, ...]:
        """The alias and all that may answer in its place."""
        found = [alias]
        for name in found:
            found += [n for n in self.fallbacks.get(name, ()) if n not in found]
        return tuple(found)


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
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{source} cannot be read: {error}") from None
    try:
        return _config(str(source), content)
    except InputError as error:
        raise InputError(f"{source}: {error}") from None


def _config(source: str, content: Any) -> Config:
    entries = content.get("model_list") if isinstance(content, Mapping) else None
    if not isinstance(entries, list) or not entries:
        raise InputError("expected a model_list with model_name and litellm_params, as LiteLLM has")
    groups: dict[str, tuple[Deployment, ...]] = {}
    for place, entry in enumerate(entries):
        name, deployment = _deployment(place, entry)
        groups[name] = (*groups.get(name, ()), deployment)
    router = _section(content, "router_settings")
    general = _section(content, "litellm_settings")
    for alias, target in _aliases(router).items():
        groups.setdefault(alias, groups.get(target, ()))
    fallbacks = _fallbacks(groups, router, general)
    kept = {key: value for key, value in router.items() if key in ROUTER_KEYS}
    for name in ("num_retries",):
        if name in general:
            kept.setdefault(name, general[name])
    known = {name: group for name, group in groups.items() if group}
    return Config(source, known, kept, fallbacks, bool(general.get("drop_params")))


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = content.get(name) or {}
    if not isinstance(section, Mapping):
        raise InputError(f"{name} is {type(section).__name__}, expected a mapping")
    return section


def _deployment(place: int, entry: Any) -> tuple[str, Deployment]:
    name = entry.get("model_name") if isinstance(entry, Mapping) else None
    params = entry.get("litellm_params") if isinstance(entry, Mapping) else None
    model = params.get("model") if isinstance(params, Mapping) else None
    if not isinstance(name, str) or not name or not isinstance(model, str) or not model:
        raise InputError(f"model_list[{place}] needs a model_name and litellm_params with a model")
    rest = {key: value for key, value in params.items() if key != "model"}  # pyright: ignore[reportOptionalMemberAccess]
    return name, Deployment(model, rest, entry.get("model_info") or {})


def _aliases(router: Mapping[str, Any]) -> dict[str, str]:
    given = router.get("model_group_alias") or {}
    return {name: v if isinstance(v, str) else v.get("model", "") for name, v in given.items()}


def _fallbacks(
    groups: Mapping[str, Any], *sections: Mapping[str, Any]
) -> dict[str, tuple[str, ...]]:
    """By alias; an entry that names no alias of the file is an error."""
    found: dict[str, tuple[str, ...]] = {}
    for section in sections:
        for entry in section.get("fallbacks") or ():
            for name, targets in _pairs(entry):
                found[name] = tuple(targets)
        for name in section.get("default_fallbacks") or ():
            for alias in groups:
                if alias != name:
                    found[alias] = (*found.get(alias, ()), name)
    for name, targets in found.items():
        lost = next((n for n in (name, *targets) if n not in groups), None)
        if lost is not None:
            raise InputError(f"fallbacks name {lost!r}, which model_list does not have")
    return found


def _pairs(entry: Any) -> Iterable[tuple[str, list[str]]]:
    good = isinstance(entry, Mapping) and all(isinstance(v, list) for v in entry.values())
    if not good:
        raise InputError(f"fallbacks has {entry!r:.60}; expected entries like {{judge: [cheap]}}")
    return entry.items()
