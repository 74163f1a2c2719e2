"""``dspy-rerank batch``: rank many queries through a provider's batch API."""

import argparse
from pathlib import Path
from typing import Any

from .. import batch
from ..batch.exchange import MOST_BYTES, MOST_REQUESTS
from ..errors import InputError
from ._app import positive
from ._common import add_json, writable
from ._progress import progress
from ._show import complain, emit, say


def add_to(commands: Any) -> None:
    """Register the commands."""
    parent = commands.add_parser(
        "batch",
        help="rank many queries through a provider's batch API",
        description="Rank a file of queries through a provider's batch API, a round of all queries "
        "at a time. Every command may be cut off at any time and run again.",
    )
    steps = parent.add_subparsers(title="steps", required=True, metavar="STEP")
    _add_submit(steps)
    status = steps.add_parser("status", help="how far a job is; changes nothing")
    _add_state(status)
    status.set_defaults(command=_status)
    _add_collect(steps)


def _add_submit(steps: Any) -> None:
    submit = steps.add_parser("submit", help="begin a job and send its first round")
    submit.add_argument("queries", help="JSON Lines: query, documents, and perhaps id, inputs")
    submit.add_argument("--program", metavar="FILE", help="a saved program (default: TopDown)")
    submit.add_argument("--lm", required=True, metavar="NAME", help="an alias, or provider/model")
    submit.add_argument("--top-k", type=positive, metavar="K")
    submit.add_argument(
        "--attempts", type=positive, default=3, metavar="N",
        help="at an answer, before its query is degraded (default: 3)",
    )  # fmt: skip
    submit.add_argument(
        "--file-requests", type=positive, default=MOST_REQUESTS, metavar="N",
        help=f"requests in one file (default: {MOST_REQUESTS})",
    )  # fmt: skip
    submit.add_argument(
        "--file-bytes", type=positive, default=MOST_BYTES, metavar="N",
        help=f"bytes of one file (default: {MOST_BYTES})",
    )  # fmt: skip
    _add_state(submit)
    _add_cost(submit)
    submit.set_defaults(command=_submit)


def _add_collect(steps: Any) -> None:
    collect = steps.add_parser(
        "collect", help="take in answers and send the next round, until all queries are ranked"
    )
    _add_state(collect)
    _add_cost(collect)
    collect.add_argument("--wait", action="store_true", help="until all queries are ranked")
    collect.add_argument(
        "--every", type=_seconds, default=60.0, metavar="S", help="seconds between two looks"
    )
    collect.add_argument(
        "--out", metavar="FILE", help="where rankings go once all are there: .jsonl, or a TREC run"
    )
    collect.set_defaults(command=_collect)


def _add_state(command: argparse.ArgumentParser) -> None:
    command.add_argument("--state", required=True, metavar="FOLDER", help="the job's folder")
    command.add_argument("--config", metavar="FILE", help="LiteLLM proxy configuration")
    add_json(command)


def _add_cost(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-cost", type=_dollars, metavar="USD",
        help="for the whole job; a round that may cost more than is left is not sent",
    )  # fmt: skip


def _submit(arguments: argparse.Namespace) -> int:
    _readable(arguments.queries)
    job = batch.begin(
        arguments.state, arguments.queries, arguments.program, lm=arguments.lm,
        config=arguments.config, top_k=arguments.top_k, attempts=arguments.attempts,
        max_cost=arguments.max_cost, requests=arguments.file_requests, size=arguments.file_bytes,
    )  # fmt: skip
    with job:
        _show(job.advance(max_cost=arguments.max_cost), arguments)
    return 0


def _status(arguments: argparse.Namespace) -> int:
    with batch.resume(arguments.state, config=arguments.config) as job:
        _show(job.status(ask=True), arguments)
    return 0


def _collect(arguments: argparse.Namespace) -> int:
    out = None if arguments.out is None else writable(arguments.out)
    with batch.resume(arguments.state, config=arguments.config) as job:
        status = (
            _waited(job, arguments) if arguments.wait else job.advance(max_cost=arguments.max_cost)
        )
        if out is not None and status.finished:
            job.write(out)
        _show(status, arguments, out)
        for reason in job.reasons()[:3]:
            complain(f"degraded: {reason}")
    return 0


def _waited(job: batch.Job, arguments: argparse.Namespace) -> batch.Status:
    with progress(arguments.json) as bars:

        def show(status: batch.Status) -> None:
            bars("requests answered", status.answered, status.requests)
            bars("queries ranked", status.ranked, status.queries)

        return job.wait(every=arguments.every, max_cost=arguments.max_cost, progress=show)


def _show(status: batch.Status, arguments: argparse.Namespace, out: Path | None = None) -> None:
    written = None if out is None or not status.finished else str(out)
    if arguments.json:
        emit({**status.to_dict(), "out": written})
        return
    say(str(status))
    if written:
        say(f"written to {written}")
    elif status.finished:
        say(f"all are ranked; write them: dspy-rerank batch collect --state {status.state} --out F")
    else:
        say(f"next: dspy-rerank batch collect --state {status.state} --wait --out run.trec")


def _readable(path: str) -> None:
    if not Path(path).is_file():
        raise InputError(f"{path}: {'not a file' if Path(path).exists() else 'no such file'}")


def _dollars(text: str) -> float:
    return _number(text, "US dollars")


def _seconds(text: str) -> float:
    return _number(text, "seconds")


def _number(text: str, what: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1e9:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of {what}")
    return value
