"""Google-style docstrings as Markdown."""

import re
from collections.abc import Iterator

SECTION = re.compile(r"^(Args|Attributes|Returns|Yields|Raises|Example|Examples|Note):$")
ENTRY = re.compile(r"^(\*{0,2}[\w.]+): (.*)$")


def markdown(docstring: str) -> str:
    """The whole docstring: prose, sections as lists, examples as indented code."""
    return "\n\n".join(part for part in _parts(docstring) if part)


def summary(docstring: str) -> str:
    """Its first paragraph, on one line."""
    return _inline(" ".join(docstring.partition("\n\n")[0].split()))


def _parts(docstring: str) -> Iterator[str]:
    for block in docstring.split("\n\n"):
        lines = block.splitlines()
        heading = SECTION.match(lines[0]) if lines else None
        if heading:
            yield f"**{heading[1]}**"
            yield _section(lines[1:])
        elif lines and lines[0].startswith(">>>"):
            yield "\n".join("    " + line.split("  # doctest:")[0] for line in lines)
        elif any(line.startswith(("- ", "* ", "    ")) for line in lines):
            yield _inline(block)
        else:
            yield _inline(" ".join(lines))


def _section(lines: list[str]) -> str:
    """The entries of a section; text that is no entry stays a paragraph."""
    entries: list[str] = []
    for line in lines:
        text = line[4:]
        if entries and text.startswith(" "):
            entries[-1] += " " + text.strip()
        elif found := ENTRY.match(text):
            entries.append(f"- `{found[1]}`: {found[2]}")
        elif entries and not entries[-1].startswith("- "):
            entries[-1] += " " + text.strip()
        else:
            entries.append(text.strip())
    return "\n".join(_inline(entry) for entry in entries)


def _inline(text: str) -> str:
    """Roles and double backticks as code, code left as it is."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", text)
    return re.sub(r"``([^`]+)``", r"`\1`", text)
