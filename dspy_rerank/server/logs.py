"""One JSON object a line on standard error, with nothing in it that a request has brought.

Of this package's own loggers the whole message is kept, with exceptions by their class and keys
blotted out. Of others (DSPy's, the provider's client's) only the fixed part is: what is filled in
may quote a prompt, and so may an exception's words.
"""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import IO, Any

from ..hiding import secrets_of, without

PACKAGE = "dspy_rerank"
LOGGER = f"{PACKAGE}.server"


class JsonLines(logging.Formatter):
    """Formats records as JSON; facts come in ``extra={"facts": {...}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _event(record),
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
            line["where"] = _where(record.exc_info[2])
        return json.dumps(line, default=str)


def _event(record: logging.LogRecord) -> str:
    """What a record says, as far as it can be kept."""
    if not isinstance(record.msg, str):
        return type(record.msg).__name__
    if record.name.partition(".")[0] != PACKAGE or not isinstance(record.args, tuple):
        return record.msg
    filled = tuple(type(a).__name__ if isinstance(a, BaseException) else a for a in record.args)
    return without(record.msg % filled if filled else record.msg, secrets_of(None))


def _where(trace: Any) -> list[str]:
    """The last places of a traceback, without the words of the exception."""
    steps = traceback.extract_tb(trace)[-5:]
    return [f"{step.filename.rsplit('/', 1)[-1]}:{step.lineno} {step.name}" for step in steps]


def configure(level: int = logging.INFO, stream: IO[str] | None = None) -> None:
    """Send all logging of this process through :class:`JsonLines`; others from warnings up."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger(LOGGER).setLevel(level)
    for name in list(logging.root.manager.loggerDict):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True
