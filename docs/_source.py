"""Finds public names in the package's source: nothing is imported, so no extra is needed."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "dspy_rerank"
DEFINED = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Module:
    """A module's dotted name, its syntax tree, and whether it is a package."""

    name: str
    tree: ast.Module
    package: bool

    @property
    def body(self) -> Iterator[ast.stmt]:
        """Statements of the module, and those under its ``if`` and ``with``."""
        for node in self.tree.body:
            yield node
            if isinstance(node, ast.If | ast.With):
                yield from node.body


@dataclass(frozen=True)
class Found:
    """Where a name is defined; ``node`` is ``None`` for a module."""

    module: Module
    node: DEFINED | None


@cache
def module(name: str) -> Module | None:
    """The module of a dotted name, or ``None`` where the package has none."""
    path = ROOT / name.replace(".", "/")
    for file, package in ((path.with_suffix(".py"), False), (path / "__init__.py", True)):
        if file.is_file():
            return Module(name, ast.parse(file.read_text(encoding="utf-8")), package)
    return None


def listed(name: str) -> list[str]:
    """A module's ``__all__``."""
    found = module(name)
    for node in found.body if found else ():
        if isinstance(node, ast.Assign) and _targets(node) == ["__all__"]:
            return ast.literal_eval(node.value)
    raise LookupError(f"{name} has no __all__")


def find(where: str, name: str) -> Found | None:
    """What a name in a module stands for, through any number of imports; ``None``: not ours."""
    home = module(where)
    if home is None:
        return None
    for node in home.body:
        if isinstance(node, DEFINED) and name in _targets(node):
            return Found(home, node)
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if name == (alias.asname or alias.name):
                    return _imported(home, node, alias.name)
    whole = module(f"{where}.{name}")
    return None if whole is None else Found(whole, None)


def bases(found: Found) -> list[tuple[str, Found]]:
    """The base classes that are ours, by name."""
    if not isinstance(found.node, ast.ClassDef):
        return []
    named = [base.id for base in found.node.bases if isinstance(base, ast.Name)]
    known = [(name, find(found.module.name, name)) for name in named]
    return [(name, base) for name, base in known if base is not None]


def _imported(home: Module, node: ast.ImportFrom, name: str) -> Found | None:
    parts = home.name.split(".")
    up = node.level - 1 if home.package else node.level
    base = parts[: len(parts) - up] if node.level else []
    source = ".".join([*base, *filter(None, (node.module or "").split("."))])
    if source == home.name:  # a module beside, or below a package
        whole = module(f"{source}.{name}")
        return None if whole is None else Found(whole, None)
    return find(source, name) if source.split(".")[0] == PACKAGE else None


def _targets(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Assign):
        return [target.id for target in node.targets if isinstance(target, ast.Name)]
    if isinstance(node, ast.AnnAssign):
        return [node.target.id] if isinstance(node.target, ast.Name) else []
    return [node.name] if hasattr(node, "name") else []  # pyright: ignore
