"""Documents of one query out of a file: plain lines, JSON Lines or a table."""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from ..datasets._values import json_problem
from ..documents import as_documents
from ..errors import DocumentTypeError, InputError
from ..types import Document

FORMATS = ("lines", "jsonl", "csv")


def read_documents(path: str, form: str | None, field: str | None) -> Iterator[Any]:
    """Documents from a file, or from standard input when the path is ``-``.

    Raises:
        InputError: A line cannot be read; the message has its number.
    """
    if path == "-":
        yield from _read(sys.stdin, "standard input", form, field)
        return
    if not Path(path).is_file():
        raise InputError(f"{path}: {'not a file' if Path(path).exists() else 'no such file'}")
    try:
        with open(path, encoding="utf-8-sig", newline="") as stream:
            yield from _read(stream, path, form or _by_ending(path), field)
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 text ({error.reason} at byte {error.start})") from None


def _by_ending(path: str) -> str | None:
    endings = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", ".txt": "lines"}
    return endings.get(Path(path).suffix.lower())


def _read(stream: TextIO, name: str, form: str | None, field: str | None) -> Iterator[Any]:
    if form == "csv":
        yield from _rows(stream, name, field)
        return
    for number, line in enumerate(stream, 1):
        line = line.rstrip("\r\n")
        if not line.strip():
            continue
        if form is None and line.lstrip().startswith(("[{", '["')):
            raise InputError(f"{name}: a JSON array; expected one JSON object a line (JSONL)")
        if form is None:
            form = "jsonl" if line.lstrip().startswith(("{", '"')) else "lines"
        yield line if form == "lines" else _object(line, f"{name}, line {number}", field)


def _object(line: str, where: str, field: str | None) -> Any:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        said = json_problem(error)
        raise InputError(f"{where}: not JSON ({said}); expected one object a line") from None
    if not isinstance(value, dict | str):
        raise InputError(f"{where}: {type(value).__name__}; expected an object or a string")
    return _document(_with_text(value, where, field), where)


def _document(value: Any, where: str) -> Document:
    try:
        (document,) = as_documents([value])
    except DocumentTypeError as error:
        said = str(error).replace("documents[0]", "the document")
        raise InputError(f"{where}: {said}") from None
    return document


def _with_text(value: Any, where: str, field: str | None) -> Any:
    if field is None or isinstance(value, str):
        return value
    if field not in value:
        raise InputError(f"{where}: no field {field!r}; it has {', '.join(map(str, value))}")
    return {**{k: v for k, v in value.items() if k != field}, "text": value[field]}


def _rows(stream: TextIO, name: str, field: str | None) -> Iterator[Any]:
    reader = csv.DictReader(stream)
    columns = reader.fieldnames or []
    wanted = field or next((c for c in ("text", "document", "content") if c in columns), None)
    if wanted is None or wanted not in columns:
        raise InputError(
            f"{name}: no column {wanted or 'text'!r}; it has {', '.join(columns) or 'none'}; "
            "name one with --text"
        )
    for row in reader:
        rest = {k: v for k, v in row.items() if k and k != wanted}
        where = f"{name}, line {reader.line_num}"
        yield _document({**rest, "text": row[wanted] or ""}, where)
