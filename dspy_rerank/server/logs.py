"""One JSON object a line on standard error, with nothing in it that a request has brought.

Of other loggers (DSPy's, the provider's client's) only the fixed part of a message is kept: what
is filled in may quote a prompt, and so may an exception's words.
"""

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from typing import IO, Any

LOGGER = "dspy_rerank.server"


class JsonLines(logging.Formatter):
    """Formats records as JSON; facts come in ``extra={"facts": {...}}``."""

    def format(self, record: logging.LogRecord) -> str:
        """One line."""
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.msg if isinstance(record.msg, str) else type(record.msg).__name__,
            **getattr(record, "facts", {}),
        }
        if record.exc_info and record.exc_info[0]:
            line["error"] = record.exc_info[0].__name__
            line["where"] = _where(record.exc_info[2])
        return json.dumps(line, default=str)


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
