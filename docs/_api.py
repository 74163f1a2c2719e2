"""Writes docs/api.md, the reference of the public names, from their source.

python docs/_api.py
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

from _docstrings import markdown, summary
from _signatures import prefix, signature
from _source import PACKAGE, Found, bases, find, listed

PAGE = Path(__file__).with_name("api.md")
PARTS = ("optimizers", "datasets", "models", "batch", "streaming", "seeing", "server", "testing")
INTEGRATIONS = {
    "llama_index": ["DSPyRerank"],
    "langchain": ["DSPyRerank"],
    "haystack": ["DSPyRanker"],
    "pyterrier": ["DSPyReranker"],
    "retriever": ["RerankedRetriever", "PassageReranker"],
    "opentelemetry": ["instrument", "uninstrument"],
    "mlflow": ["autolog"],
    "ray": ["rerank", "read_ranked", "read_failed", "Parts"],
}
SHARED = {"judges.base": ["SignatureJudge"]}
"""Bases that are no public names of their own but say what all of their kind can do."""
WIDTH = 96
HEAD = """\
# Reference

Every public name with its signature and docstring, written by `python docs/_api.py`. `dr` is
`import dspy_rerank as dr`; the tasks are in the [other pages](README.md).
"""


def page() -> str:
    """The whole page."""
    sections = list(_sections())
    links = _links([name for _, names, _ in sections for name in names])
    contents = [
        f"- **{title}**: " + " · ".join(links[n] for n in names) for title, names, _ in sections
    ]
    texts = [f"## {title}\n\n{body}" for title, _, body in sections]
    return "\n".join([HEAD, *contents]) + "\n\n" + "\n\n".join(texts) + "\n"


def _sections() -> Iterator[tuple[str, list[str], str]]:
    """Title, qualified names and text of each section."""
    names = [name for name in listed(PACKAGE) if _is_defined(PACKAGE, name)]
    yield _section("dspy_rerank", "dr", [(PACKAGE, name) for name in names])
    for part, shared in SHARED.items():
        yield _section(part, f"dspy_rerank.{part}", [(f"{PACKAGE}.{part}", n) for n in shared])
    for part in PARTS:
        where = f"{PACKAGE}.{part}"
        names = [name for name in listed(where) if _is_defined(where, name)]
        yield _section(part, f"dr.{part}", [(where, name) for name in names])
    for part, names in INTEGRATIONS.items():
        where = f"{PACKAGE}.integrations.{part}"
        yield _section(f"integrations.{part}", where, [(where, name) for name in names])
    where = f"{PACKAGE}.errors"
    yield _section("errors", where, [(where, name) for name in _classes(where)])


def _section(title: str, prefix: str, names: list[tuple[str, str]]) -> tuple[str, list[str], str]:
    entries = [_entry(f"{prefix}.{name}", find(where, name)) for where, name in names]
    return title, [f"{prefix}.{name}" for _, name in names], "\n\n".join(entries)


def _is_defined(where: str, name: str) -> bool:
    found = find(where, name)
    return found is not None and found.node is not None


def _classes(where: str) -> list[str]:
    found = find(PACKAGE, where.rpartition(".")[2])
    assert found is not None
    return [node.name for node in found.module.body if isinstance(node, ast.ClassDef)]


def _links(names: list[str]) -> dict[str, str]:
    """Links to headings as GitHub names them: a heading that is there already gets a number."""
    anchors = [name.lower().replace(".", "") for name in names]
    seen = [anchors[:place].count(anchor) for place, anchor in enumerate(anchors)]
    numbered = [f"{a}-{n}" if n else a for a, n in zip(anchors, seen, strict=True)]
    parts = zip(names, numbered, strict=True)
    return {name: f"[{name.rpartition('.')[2]}](#{anchor})" for name, anchor in parts}


def _entry(name: str, found: Found | None) -> str:
    """Heading, signature, docstring and, of a class, its methods in a line each."""
    if found is None or found.node is None:
        raise LookupError(f"{name} has no definition")
    short = name.rpartition(".")[2]
    parts = [f"### {name}", _code(signature(short, found)), markdown(_doc(found))]
    methods = "\n".join(_methods(found))
    parts += ["**Methods and properties**" if methods else "", methods, _bases(found)]
    return "\n\n".join(part for part in parts if part)


def _code(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def _bases(found: Found) -> str:
    """The named bases that have an entry of their own."""
    known = {*listed(PACKAGE), *(name for names in SHARED.values() for name in names)}
    named = [name for name, _ in bases(found) if name in known or name.endswith("Error")]
    return f"Is a `{'`, `'.join(named)}`." if named else ""


def _doc(found: Found) -> str:
    """The docstring; of an assignment, the text that follows it."""
    node = found.node
    if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return ast.get_docstring(node) or ""
    body = list(found.module.body)
    after = body[body.index(node) + 1 : body.index(node) + 2] if node else []
    text = after and isinstance(after[0], ast.Expr) and ast.literal_eval(after[0].value)
    return text if isinstance(text, str) else ""


def _methods(found: Found) -> Iterator[str]:
    """Public methods and properties of a class, and of bases that have no entry."""
    node = found.node
    if not isinstance(node, ast.ClassDef):
        return
    for member in node.body:
        if isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef) and _is_public(member):
            yield _method(member)
    documented = {*listed(PACKAGE), *(name for names in SHARED.values() for name in names)}
    for name, base in bases(found):
        if name not in documented:
            yield from _methods(base)


def _is_public(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    hidden = node.name.startswith("_") or "overload" in marks or marks[:1] == ["field_serializer"]
    return not hidden and bool(ast.get_docstring(node))


def _method(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    marks = [ast.unparse(mark) for mark in node.decorator_list]
    is_property = any("property" in mark for mark in marks)
    arguments = [a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]]
    shown = [name for name in arguments if name not in {"self", "cls"}]
    call = "" if is_property else f"({', '.join(shown)})"
    return f"- `{prefix(node)}{node.name}{call}`: {summary(ast.get_docstring(node) or '')}"


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE}: {len(page().splitlines())} lines\n")


if __name__ == "__main__":
    main()
