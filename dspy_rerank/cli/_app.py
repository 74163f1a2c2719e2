"""Parses arguments, runs a command, and turns every expected error into one line and a code."""

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any

BAD_INPUT = 2
FAILED = 1
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    0 is success, 2 bad input, 1 a failing model, 3 a limit that was reached, 130 an interrupt.
    """
    # DSPy and LiteLLM would otherwise fetch a price list from the network on first use.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    arguments = parser().parse_args(argv)
    from dspy import LMError

    from ..errors import ModelError, RerankError

    try:
        return arguments.command(arguments) or 0
    except (ModelError, LMError) as error:
        return _complain(error, FAILED)
    except (RerankError, OSError, UnicodeDecodeError) as error:
        return _complain(error, BAD_INPUT)
    except KeyboardInterrupt:
        return INTERRUPTED


def _complain(error: BaseException, code: int) -> int:
    if isinstance(error, BrokenPipeError):
        sys.stderr.close()
        return 0
    sys.stderr.write(f"dspy-rerank: {' '.join(str(error).split())}\n")
    return code


class _Parser(argparse.ArgumentParser):
    """One whose commands take options between their other arguments, and say their own usage."""

    _inside = False

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> Any:
        """What a command does not know is an error of that command, not of the program's."""
        if self._inside or self._subparsers is not None:
            return super().parse_known_args(args, namespace)
        self._inside = True
        ended = "--" in (args or ())  # which argparse forgets between its two passes
        parse = super().parse_known_args if ended else self.parse_known_intermixed_args
        try:
            found, extra = parse(args, namespace)
        finally:
            self._inside = False
        if extra:
            self.error(f"unrecognized arguments: {' '.join(extra)}")
        return found, extra


def parser() -> argparse.ArgumentParser:
    """The parser with all commands."""
    from .. import __version__
    from . import (
        batch,
        checking,
        compare,
        compiling,
        demo,
        estimating,
        evaluating,
        models,
        ranking,
        serve,
    )

    top = _Parser(prog="dspy-rerank", description="LLM reranking as an optimizable program.")
    top.add_argument("--version", action="version", version=f"dspy-rerank {__version__}")
    commands = top.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for command in (
        demo,
        ranking,
        estimating,
        checking,
        compiling,
        evaluating,
        compare,
        models,
        serve,
        batch,
    ):
        command.add_to(commands)
    return top


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    try:
        value = int(text)
    except ValueError:
        value = 0
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 1")
    return value
