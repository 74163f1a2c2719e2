"""``--program``, or ``--sorter`` and ``--judge``: which reranker a command takes, and its model."""

import argparse
import json
from pathlib import Path
from typing import Any

from ..binding import bound, own_model
from ..defaults import default_reranker, resolve_lm
from ..errors import InputError
from ..named import reranker_named
from ..program import load
from ..sorters import Reranker
from ._common import configured, model


def add_reranker(
    command: argparse.ArgumentParser, program: str = "a saved program (default: built in)"
) -> None:
    """The options, ``--program`` described as given."""
    command.add_argument("--program", metavar="FILE", help=program)
    add_named(command)


def add_named(command: argparse.ArgumentParser) -> None:
    """``--sorter`` and ``--judge``."""
    command.add_argument(
        "--sorter", metavar="NAME", help="class of the sorter in place of a program, such as "
        "ScoreSort or 'TopDown(window=10)' (default: one for the judge)",
    )  # fmt: skip
    command.add_argument(
        "--judge", metavar="NAME", help="class of its judge, such as PointwiseJudge or "
        "'PointwiseJudge(evidence=\"generate\")' (default: one for the sorter)",
    )  # fmt: skip


def is_named(arguments: argparse.Namespace) -> bool:
    """Whether a sorter or judge was named.

    Raises:
        InputError: A program was, too.
    """
    named = bool(arguments.sorter or arguments.judge)
    if named and arguments.program:
        raise InputError("--program has its sorter and judge; give it or --sorter and --judge")
    return named


def reranker_and_model(arguments: argparse.Namespace) -> tuple[Reranker, Any]:
    """The saved program, what was named, or what suits the model; and who answers it.

    Raises:
        InputError: The model that a program was saved with is not at hand, and none is named.
    """
    named = is_named(arguments)
    if arguments.program:
        reranker, lm = program_and_model(arguments.program, arguments)
        return reranker, model(arguments) if lm is None else lm
    lm = model(arguments)
    own = reranker_named(arguments.sorter, arguments.judge) if named else default_reranker(lm)
    return own, lm


def program_and_model(path: str, arguments: argparse.Namespace) -> tuple[Reranker, Any]:
    """A saved program, bound to the model of ``--lm``, else to the one that it names, if any.

    The model is ``None`` where nobody has said which.

    Raises:
        InputError: That model is not at hand.
    """
    configured(arguments)
    if arguments.lm:
        lm = resolve_lm(arguments.lm)
        return load(path, lm=lm), lm
    reranker = load(path)
    try:
        lm = own_model(json.loads(Path(path).read_text(encoding="utf-8")))
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return bound(reranker, lm), lm


def name_of(arguments: argparse.Namespace) -> str:
    """What the reranker is called in tables."""
    named = " + ".join(name for name in (arguments.sorter, arguments.judge) if name)
    return arguments.program or named or "default reranker"
