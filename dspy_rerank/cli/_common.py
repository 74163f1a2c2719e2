"""Arguments that several commands share, and what they stand for."""

import argparse
from pathlib import Path
from typing import Any

import dspy

from .. import models
from ..datasets import Dataset, load
from ..defaults import resolve_lm
from ..errors import InputError


def add_model(command: argparse.ArgumentParser) -> None:
    """``--lm``."""
    command.add_argument(
        "--lm",
        metavar="NAME",
        help="language model, such as local/smollm2-135m or openai/gpt-4o-mini (default: what a "
        "program was compiled with, the one alias of --config, or the embedded model)",
    )
    command.add_argument(
        "--config", metavar="FILE", help="LiteLLM proxy configuration whose aliases --lm may name"
    )


def add_json(command: argparse.ArgumentParser) -> None:
    """``--json``."""
    command.add_argument("--json", action="store_true", help="print JSON instead of tables")


def add_data(command: argparse.ArgumentParser) -> None:
    """The data set and which part of it."""
    command.add_argument(
        "data", help="labelled data: the name of a shipped set (ostrel), a file or a folder"
    )
    command.add_argument("--run", metavar="FILE", help="TREC run with the candidates")
    command.add_argument("--depth", type=int, metavar="N", help="candidates per query")
    command.add_argument("--queries", type=int, metavar="N", help="the first N queries only")


def read_data(arguments: argparse.Namespace, split: str | None = None) -> Dataset:
    """The data set that the arguments name."""
    data = load(arguments.data, split, run=arguments.run, depth=arguments.depth)
    return data[: arguments.queries] if arguments.queries else data


def configured(arguments: argparse.Namespace) -> models.Aliases | None:
    """The aliases of ``--config``, read once, so that one alias is one model with one limit."""
    if arguments.config and getattr(arguments, "aliases", None) is None:
        arguments.aliases = models.load(arguments.config)
    return getattr(arguments, "aliases", None)


def model(arguments: argparse.Namespace) -> Any:
    """The language model that the arguments name, an alias of the configuration if it is one.

    Raises:
        InputError: There is a configuration with several aliases, and none is named.
    """
    loaded = configured(arguments)
    if loaded is None or arguments.lm or dspy.settings.lm is not None:
        return resolve_lm(arguments.lm)
    if len(loaded) == 1 and not any("*" in alias for alias in loaded):
        return loaded[next(iter(loaded))]
    raise InputError(f"--config without --lm: name one of its aliases, {', '.join(loaded)}")


def writable(path: str) -> Path:
    """A path for output, or an error before any work is done."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise InputError(f"{path}: cannot be written; its folder must exist and it must be a file")
    return target


def names_of(text: str | None) -> list[str]:
    """Names that are given in one argument, separated by commas."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def dollars(text: str) -> float:
    """US dollars, 0 or more, for argparse."""
    return number(text, "US dollars")


def number(text: str, what: str) -> float:
    """A finite number of at least 0, for argparse."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e12:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {what}")
    return value
