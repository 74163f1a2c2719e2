"""``dspy-rerank check``: what is wrong with labelled queries, before anything is spent on them."""

import argparse
from collections import Counter
from dataclasses import asdict
from typing import Any

from ..datasets import Dataset, Problem, check
from ..datasets.checks import ERRORS
from ..shown import count
from ._app import FAILED
from ._common import add_data, add_json, read_data
from ._show import emit, say

NAMED = 5
"""Queries that are named with a problem; JSON has all."""


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser(
        "check",
        help="find what is wrong with labelled queries",
        description="Say what is wrong with labelled queries, and what they hold. Nothing is asked "
        "of a model. Exit code 1 where there are errors, as opposed to warnings.",
    )
    add_data(command)
    command.add_argument("--split", help="one split of the data set, such as test")
    add_json(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Check and print."""
    data = read_data(arguments, arguments.split)
    problems = check(data)
    errors = [problem for problem in problems if problem.kind in ERRORS]
    if arguments.json:
        found = [{**asdict(each), "severity": _severity(each)} for each in problems]
        emit({**contents(data), "problems": found, "errors": len(errors)})
    else:
        for problem in problems:
            say(f"{_severity(problem)}: {problem}{_named(problem)}")
        say(summary(data, len(errors), len(problems) - len(errors)))
    return FAILED if errors else 0


def contents(data: Dataset) -> dict[str, Any]:
    """What a data set holds, in numbers; of a grade, how many candidates have it."""
    grades = Counter(grade for query in data for grade in query.relevance)
    known = sorted(grade for grade in grades if grade is not None)
    return {
        "dataset": data.name,
        "queries": len(data),
        "documents": sum(len(query.documents) for query in data),
        "labelled": sum(query.judged for query in data),
        "splits": dict(Counter(query.split for query in data if query.split)),
        "grades": {f"{grade:g}": grades[grade] for grade in known},
        "unjudged": grades[None],
    }


def summary(data: Dataset, errors: int, warnings: int) -> str:
    """One line on all of it."""
    held = contents(data)
    grades = [f"{grade}: {many:,}" for grade, many in held["grades"].items()]
    if held["unjudged"]:
        grades.append(f"unjudged: {held['unjudged']:,}")
    splits = [f"{name}: {many:,}" for name, many in held["splits"].items()]
    parts = [
        f"{count(held['queries'], 'query')} ({held['labelled']} labelled), "
        f"{count(held['documents'], 'document')}",
        f"splits {', '.join(splits) or 'none'}",
        f"grades {', '.join(grades) or 'none'}",
        f"{count(errors, 'error')}, {count(warnings, 'warning')}",
    ]
    return f"{data.name}: " + "; ".join(parts)


def _severity(problem: Problem) -> str:
    return "error" if problem.kind in ERRORS else "warning"


def _named(problem: Problem) -> str:
    """The queries concerned, where there are any."""
    if not problem.queries:
        return ""
    more = ", ..." if len(problem.queries) > NAMED else ""
    return f" [{', '.join(problem.queries[:NAMED])}{more}]"
