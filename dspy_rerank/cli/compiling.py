"""``dspy-rerank compile``: turn labels into a better reranker, and prove it."""

import argparse
from typing import Any

import dspy

from ..datasets import Dataset
from ..errors import InputError
from ..evaluation import Evaluation
from ..program import save
from ..sorters import Reranker
from ._app import positive
from ._common import add_data, add_json, add_model, model, program_or_default, read_data, writable
from ._show import emit, progress, say, show_evaluation
from .evaluating import measured

FRACTIONS = (0.35, 0.3, 0.35)


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser("compile", help="compile a reranker from labelled queries")
    add_data(command)
    command.add_argument("--out", default="reranker.json", metavar="FILE", help="where to save it")
    command.add_argument("--program", metavar="FILE", help="start from a saved program")
    command.add_argument("--metric", default="nDCG@10")
    command.add_argument("--trials", type=positive, default=40, metavar="N")
    command.add_argument("--max-calls", type=positive, metavar="N", help="judge calls in all")
    command.add_argument("--timeout", type=float, metavar="SECONDS")
    command.add_argument(
        "--instructions", action="append", default=[], metavar="TEXT",
        help="a wording to try; may be given several times",
    )  # fmt: skip
    command.add_argument("--demos", default="1,2,4", help="numbers of demonstrations to try")
    command.add_argument("--seed", type=int, default=0)
    add_model(command)
    add_json(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile, save, and measure on queries that the search never saw."""
    target = writable(arguments.out)
    train, validation, test = parts(read_data(arguments), arguments.seed)
    lm = model(arguments)
    student = program_or_default(arguments.program, lm)
    compiled, found = compiled_and_proved(student, train, validation, test, lm, arguments)
    save(compiled, target)
    if arguments.json:
        emit({"program": str(target), "card": compiled.card, "test": found.to_dict()})
    else:
        show_card(compiled)
        show_evaluation(found)
        say(verdict(found))
        say(f"saved {target}")
    return 0


def parts(data: Dataset, seed: int) -> tuple[Dataset, Dataset, Dataset]:
    """Train, validation and test queries: the data set's own splits, or a seeded deal."""
    if {"train", "validation", "test"} <= set(data.splits):
        return data.part("train"), data.part("validation"), data.part("test")
    if len(data) < 6:
        raise InputError(
            f"{data.name} has {len(data)} queries; expected at least 6 to train, validate and test"
        )
    train, validation, test = data.split(*FRACTIONS, seed=seed)
    return train, validation, test


def compiled_and_proved(
    student: Reranker, train: Any, validation: Any, test: Any, lm: Any, arguments: Any
) -> tuple[Reranker, Evaluation]:
    """The compiled reranker, and student and copy on the test queries."""
    from ..optimizers import RerankerSearch, SearchProgress

    with progress(arguments.json) as bars, dspy.context(lm=lm):

        def tell(state: SearchProgress) -> None:
            what = f"compiling (best {state.best:.4f}, {state.calls} calls)"
            bars("compiling" if state.done < state.trials else what, state.done, state.trials)

        search = RerankerSearch(
            arguments.metric,
            trials=arguments.trials,
            instructions=arguments.instructions,
            demos=numbers(arguments.demos),
            max_calls=arguments.max_calls,
            timeout=arguments.timeout,
            lm=lm,
            seed=arguments.seed,
            progress=tell,
        )
        compiled = search.compile(student, trainset=train, valset=validation)
    rows = {"uncompiled": student, "compiled": compiled}
    found = measured(rows, test, [arguments.metric], lm, arguments.json)
    compiled.card["test"] = {
        "queries": len(test),
        "fingerprint": test.fingerprint,
        **{row.name: round(row.mean(arguments.metric).mean, 6) for row in found.rows},
    }
    return compiled, found


def numbers(text: str) -> list[int]:
    """``1,2,4`` as numbers."""
    try:
        return [int(part) for part in text.split(",") if part.strip()]
    except ValueError:
        raise InputError(f"--demos {text!r}; expected numbers such as 1,2,4") from None


def show_card(compiled: Reranker) -> None:
    """What the search chose and what it cost."""
    card = compiled.card
    chosen, spent, val = card["chosen"], card["spent"], card["validation"]
    say(f"chosen: {chosen['variant']}; prior weight {chosen['prior']:g}")
    say(
        f"validation ({val['queries']} queries): incoming {val['incoming']:.4f}, "
        f"uncompiled {val['uncompiled']:.4f}, compiled {val['compiled']:.4f}"
    )
    say(
        f"compiling took {spent['calls']} calls, {spent['prompt_tokens']} prompt tokens, "
        f"{spent['seconds']:.0f} s"
    )


def verdict(found: Evaluation) -> str:
    """What the test queries say, in words."""
    (metric,) = found.metrics
    sentences = []
    for over in (found.rows[0].name, "uncompiled"):
        gain = found.gain(metric, "compiled", over)
        if not gain.significant:
            sentences.append(f"- no difference from the {over} that can be told: {gain}")
        else:
            word = "better" if gain.mean > 0 else "WORSE"
            sentences.append(f"- {word} than the {over}: {gain}")
    head = f"compiled, on {found.queries} queries that the search never saw:"
    return "\n".join([head, *sentences])
