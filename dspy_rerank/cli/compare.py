"""``dspy-rerank compare``: two programs on the same queries, with the paired difference."""

import argparse
from typing import Any

from ..errors import InputError
from ..evaluation import finite
from ..program import load as load_program
from ._common import add_data, add_json, add_model, model, read_data
from ._show import emit, say, show_evaluation
from .evaluating import add_metrics, measured, metrics_of


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser("compare", help="two programs on the same queries")
    command.add_argument("first", help="a saved program")
    command.add_argument("second", help="a saved program")
    add_data(command)
    command.add_argument("--split", help="one split of the data set, such as test")
    add_metrics(command)
    add_model(command)
    add_json(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure both and print their difference."""
    first, second = arguments.first, arguments.second
    if first == second:
        raise InputError(f"{first} twice; expected two different programs")
    metrics = metrics_of(arguments)
    programs = {path: load_program(path) for path in (first, second)}
    data = read_data(arguments, arguments.split)
    found = measured(programs, data, metrics, model(arguments), arguments.json)
    gains = {metric: found.gain(metric, second, first) for metric in metrics}
    if arguments.json:
        emit({**found.to_dict(), "difference": {m: finite(g) for m, g in gains.items()}})
        return 0
    show_evaluation(found)
    for metric, gain in gains.items():
        verdict = "a real difference" if gain.significant else "no difference that can be told"
        say(f"{metric}: {second} - {first} = {gain}: {verdict}")
    return 0
