"""TREC topics: queries as the organisers of test collections hand them out."""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

from ..errors import DataError
from ..trec import numbered_lines
from ._trec import Entry

_TOPIC = re.compile(r"<top(?:ic)?\b(?P<head>[^>]*)>(?P<body>.*?)</top(?:ic)?>", re.S | re.I)
_NUMBER = re.compile(r"<num>\s*(?:Number:)?\s*(?P<id>[^\s<]+)", re.I)
_ATTRIBUTE = re.compile(r"""\b(?:number|num|id)\s*=\s*["']?(?P<id>[^\s"'>]+)""", re.I)
_FIELDS = ("title", "query", "question")
_LABEL = re.compile(r"^\s*(?:topic|title|query)\s*:", re.I)
_CODED = re.compile(r"^(?P<id>[^\s:]+)\s*(?:\t|:)\s*(?P<text>.*\S)\s*$")


def read_topics(path: str | Path) -> Iterator[Entry]:
    """Queries with their ids: TREC's tagged topics, old style or XML, or a line each.

    Of a tagged topic the text is its ``title``, else its ``query`` or ``question``; descriptions
    and narratives are left out. Lines are an id, a tab or colon, and the text.

    Raises:
        DataError: The file holds no topics, or one lacks its number or its title.
    """
    lines = numbered_lines(path)
    first = next(lines, None)
    if first is None:
        raise DataError(f"{path}: is empty; expected topics")
    if first[1].lstrip().startswith("<"):
        yield from _tagged(Path(path))
        return
    yield _coded(first[1], f"{path}, line {first[0]}")
    for number, line in lines:
        yield _coded(line, f"{path}, line {number}")


def _coded(line: str, where: str) -> Entry:
    found = _CODED.match(line)
    if found is None:
        raise DataError(f"{where}: expected id, tab or colon, text; got {line[:80]!r}")
    return Entry(found["id"], found["text"])


def _tagged(path: Path) -> Iterator[Entry]:
    """A file of topics is small, even where its collection is not."""
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    topics = list(_TOPIC.finditer(text))
    if not topics:
        raise DataError(f"{path}: expected <top> or <topic> elements, got none")
    for place, topic in enumerate(topics, start=1):
        number = _NUMBER.search(topic["body"]) or _ATTRIBUTE.search(topic["head"])
        title = next((t for t in (_field(topic["body"], n) for n in _FIELDS) if t), None)
        if number is None or title is None:
            lacks = "number" if number is None else "title"
            raise DataError(f"{path}, topic {place}: expected a {lacks}, got none")
        yield Entry(number["id"], title)


def _field(body: str, name: str) -> str:
    """The text of a field, which old topics do not close."""
    found = re.search(rf"<{name}>(.*?)(?=<\w|</|\Z)", body, re.S | re.I)
    return "" if found is None else " ".join(unescape(_LABEL.sub("", found[1])).split())
