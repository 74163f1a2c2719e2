"""Options of ``dspy-rerank compile`` that go to the search, and those that prove its result."""

import argparse
from typing import Any

from ..defaults import resolve_lm
from ..errors import InputError
from ._app import positive

COSTS = ("tokens", "calls", "rounds", "money")


def add_proof(command: argparse.ArgumentParser) -> None:
    """What the result is compared with, and on which queries."""
    group = command.add_argument_group("proof")
    group.add_argument(
        "--test-split", default="test", metavar="NAME",
        help="split of the data that the result is measured on, where it has splits (test)",
    )  # fmt: skip
    group.add_argument("--seed", type=int, default=0)
    group.add_argument(
        "--seeds", type=positive, default=1, metavar="N",
        help="compile with N seeds, from --seed on, and say how far the result hangs on them; "
        "saved is the one that is best on the validation queries. --max-calls, --max-cost and "
        "--timeout hold for all together: each seed has an equal share of the money, and of the "
        "calls and the time that those before it have left; what one has asked the others know",
    )  # fmt: skip
    group.add_argument(
        "--plain", action="store_true",
        help="compare with a plain DSPy optimizer (the recipe's, or a random search over "
        "demonstrations) on whole rankings; it makes at most as many calls as compiling did, on "
        "top of what --max-calls, --max-cost and --timeout allow",
    )  # fmt: skip


def add_search(command: argparse.ArgumentParser) -> None:
    """What goes before the recipe, or before the defaults of a search."""
    group = command.add_argument_group("search")
    group.add_argument("--trials", type=positive, metavar="N", help="settings to try (40)")
    group.add_argument(
        "--max-calls", type=positive, metavar="N", help="judge calls in all, a recipe's too"
    )
    group.add_argument(
        "--timeout", type=float, metavar="SECONDS",
        help="for the search; a recipe's DSPy optimizer counts, but is not stopped",
    )  # fmt: skip
    group.add_argument(
        "--max-cost", type=float, metavar="DOLLARS", help="spent on the search, likewise"
    )
    group.add_argument("--cost", choices=COSTS, help="of serving: a second objective")
    group.add_argument(
        "--try-lm", action="append", dest="lms", metavar="NAME",
        help="a further model to choose among; may be given several times",
    )  # fmt: skip
    group.add_argument(
        "--instructions", action="append", metavar="TEXT",
        help="a wording to try; may be given several times",
    )  # fmt: skip
    group.add_argument("--demos", help="numbers of demonstrations to try (1,2,4)")
    group.add_argument(
        "--storage", metavar="FILE|URL",
        help="journal file or database URL: a killed search goes on, several processes share one",
    )  # fmt: skip
    group.add_argument("--study-name", metavar="NAME", help="of the search in the storage")


def options_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The arguments that were given for the search and the models."""
    names = (
        "trials", "max_calls", "max_cost", "timeout", "cost", "lms", "instructions", "demos",
        "storage", "study_name", "seed", "reflection_lm",
    )  # fmt: skip
    given = {name: getattr(arguments, name) for name in names}
    if given["demos"] is not None:
        given["demos"] = numbers(given["demos"])
    if given["reflection_lm"]:
        given["reflection_lm"] = resolve_lm(given["reflection_lm"])
    return {name: value for name, value in given.items() if value is not None}


def numbers(text: str) -> list[int]:
    """``1,2,4`` as numbers."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"--demos {text!r}; expected numbers such as 1,2,4") from None
