"""``dspy-rerank serve``: programs behind the HTTP API of Cohere and Jina."""

import argparse
import gc
import sys
from dataclasses import fields, replace
from typing import Any

import dspy

from .. import server
from ..cache import keep_in_memory
from ..defaults import default_reranker
from ..errors import InputError
from ..named import reranker_named
from ..server.access import LOOPBACK_NAMES, check_host, keys_from
from ..server.programs import Program, read_name
from ._app import positive
from ._common import add_json, add_model, configured, model
from ._rerankers import add_named, program_and_model
from ._show import emit, say

KEPT = 20_000
"""Answers in memory, some 200 MiB."""

KEY_VARIABLE = "DSPY_RERANK_API_KEY"


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser(
        "serve",
        help="serve programs over HTTP, for clients of Cohere and Jina",
        description="Serve programs at /v1/rerank and /v2/rerank; the request's model names one, "
        "the first is the default. Without a program the built-in reranker is served.",
    )
    command.add_argument("programs", nargs="*", metavar="FILE", help="saved program, called by its "
                         "file's name without the ending")  # fmt: skip
    command.add_argument(
        "--program", action="append", default=[], metavar="NAME=FILE", dest="named",
        help="a saved program under another name, such as the one that a client asks for",
    )  # fmt: skip
    command.add_argument("--host", default="127.0.0.1", help="default: this machine only")
    command.add_argument("--port", type=_port, default=8787, help="default: 8787; 0 for any")
    command.add_argument(
        "--api-key-env", default=KEY_VARIABLE, metavar="NAME",
        help=f"environment variable with the API key, or keys by commas (default: {KEY_VARIABLE})",
    )  # fmt: skip
    _add_limits(command)
    add_named(command)
    add_model(command)
    add_json(command)
    command.set_defaults(command=run)


def _add_limits(command: argparse.ArgumentParser) -> None:
    own = server.Limits()
    limits = command.add_argument_group("limits")
    for name, what in (
        ("documents", "documents of one request"),
        ("body-bytes", "bytes of one request"),
        ("query-characters", "characters of one query"),
        ("at-once", "rankings that one program runs at the same time"),
        ("queue", "requests that wait for one program; further ones get 429"),
        ("calls", "questions to the model for one request (default: no limit)"),
    ):
        default = getattr(own, name.replace("-", "_"))
        shown = "" if default is None else f" (default: {default})"
        kind = _natural if name == "queue" else positive
        limits.add_argument(f"--{name}", type=kind, default=default, metavar="N", help=what + shown)
    limits.add_argument("--seconds", type=_seconds, default=own.seconds, metavar="S",
                        help=f"seconds for one request (default: {own.seconds:g})")  # fmt: skip
    limits.add_argument("--upload-seconds", type=_seconds, default=own.upload_seconds, metavar="S",
                        help=f"seconds for a request to arrive (default: {own.upload_seconds:g})")  # fmt: skip # noqa: E501


def run(arguments: argparse.Namespace) -> int:
    """Serve until a signal."""
    server.require_extra()
    access = server.Access.of(keys_from(arguments.api_key_env))
    check_host(arguments.host, access, arguments.api_key_env)
    if access.open:
        access = replace(access, hosts=(*LOOPBACK_NAMES, arguments.host.strip("[]").lower()))
    limits = server.Limits(**{f.name: getattr(arguments, f.name) for f in fields(server.Limits)})
    programs = _programs(arguments)
    app = server.create_app(programs, limits=limits, access=access)
    keep_in_memory(KEPT)
    gc.collect()
    gc.freeze()  # what is imported and loaded stays, and need not be looked through again
    _serve(app, arguments, programs, access.open)
    return 0


def _serve(
    app: Any, arguments: argparse.Namespace, programs: list[Program], everyone: bool
) -> None:
    from ..server import logs

    def listening(url: str) -> None:
        names = [program.name for program in programs]
        if arguments.json:
            emit({"url": url, "programs": names, "key": not everyone})
        else:
            keys = "without a key" if everyone else "with a key"
            say(f"serving {', '.join(names)} at {url} {keys}; Ctrl-C stops")
        sys.stdout.flush()

    logs.configure()
    server.run(app, host=arguments.host, port=arguments.port, listening=listening)


def _programs(arguments: argparse.Namespace) -> list[Program]:
    """The programs that the arguments name, each with a model that can answer it."""
    configured(arguments)
    found = [read_name(text) for text in arguments.programs]
    found += [_named(text) for text in arguments.named]
    named = arguments.sorter or arguments.judge
    if found and named:
        raise InputError("a saved program has its sorter and judge; give programs or --sorter and "
                         "--judge")  # fmt: skip
    if not found:
        lm = model(arguments)
        own = reranker_named(arguments.sorter, arguments.judge) if named else default_reranker(lm)
        return [_checked(Program("default", own, lm))]
    return [_checked(_loaded(name, path, arguments)) for name, path in found]


def _named(text: str) -> tuple[str, str]:
    name, equals, path = text.partition("=")
    if not equals or not path:
        raise InputError(f"--program {text}: expected NAME=FILE")
    return name, path


def _loaded(name: str, path: str, arguments: argparse.Namespace) -> Program:
    """A saved program; ``--lm`` goes before its own model, as in every command."""
    reranker, lm = program_and_model(path, arguments)
    return Program(name, reranker, model(arguments) if lm is None else lm)


def _checked(program: Program) -> Program:
    """The program, once it is clear that its model can do what it asks."""
    with dspy.context(lm=program.lm or dspy.settings.lm):
        program.reranker.judge.ready()
    return program


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port, 0 to 65535")
    return int(text)


def _natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number of at least 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value
