"""Signatures as they are written in the source, whatever the version of Python that reads it."""

import ast
from collections.abc import Iterator

from _source import Found, bases

WIDTH = 96
Function = ast.FunctionDef | ast.AsyncFunctionDef


def signature(name: str, found: Found) -> str:
    """Of a function, a class (how it is built) or a constant (its definition)."""
    node = found.node
    if isinstance(node, Function):
        return _call(prefix(node) + name, node, node.returns)
    if isinstance(node, ast.ClassDef):
        built = _built(found)
        return f"class {name}" if built is None else _call(f"class {name}", built)
    return "" if node is None else ast.unparse(node)


def prefix(node: Function) -> str:
    """What stands before the name of a function that is awaited."""
    return "async " if isinstance(node, ast.AsyncFunctionDef) else ""


def _call(name: str, node: Function, returns: ast.expr | None = None) -> str:
    """On one line, or with an argument a line where that is too long."""
    arguments = list(_arguments(node.args))
    ends = f" -> {ast.unparse(returns)}" if returns else ""
    line = f"{name}({', '.join(arguments)}){ends}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"{name}(", *(f"    {each}," for each in arguments), f"){ends}"])


def _arguments(args: ast.arguments) -> Iterator[str]:
    plain = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(plain) - len(args.defaults)) + list(args.defaults)
    for arg, default in zip(plain, defaults, strict=True):
        if arg.arg not in {"self", "cls"}:
            yield _argument(arg, default)
    if args.vararg:
        yield "*" + _argument(args.vararg)
    elif args.kwonlyargs:
        yield "*"
    for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True):
        yield _argument(arg, default)
    if args.kwarg:
        yield "**" + _argument(args.kwarg)


def _argument(arg: ast.arg, default: ast.expr | None = None) -> str:
    kind = f": {ast.unparse(arg.annotation)}" if arg.annotation else ""
    return f"{arg.arg}{kind}" + (f" = {ast.unparse(default)}" if default else "")


def _built(found: Found) -> ast.FunctionDef | None:
    """The ``__init__`` that a class has, gets from its fields, or inherits."""
    node = found.node
    if not isinstance(node, ast.ClassDef):
        return None
    for member in node.body:
        if isinstance(member, ast.FunctionDef) and member.name == "__init__":
            return member
    if _has_fields(node):
        return _from_fields(node)
    inherited = (_built(base) for _, base in bases(found))
    return next((init for init in inherited if init is not None), None)


def _has_fields(node: ast.ClassDef) -> bool:
    marks = [ast.unparse(mark) for mark in [*node.decorator_list, *node.bases]]
    return any(mark.split("(")[0] in {"dataclass", "NamedTuple"} for mark in marks)


def _from_fields(node: ast.ClassDef) -> ast.FunctionDef:
    fields = [m for m in node.body if isinstance(m, ast.AnnAssign) and _is_given(m)]
    given = [f"{ast.unparse(m.target)}: {ast.unparse(m.annotation)}{_default(m)}" for m in fields]
    (init,) = ast.parse(f"def __init__(self, {', '.join(given)}): ...").body
    assert isinstance(init, ast.FunctionDef)
    return init


def _is_given(field: ast.AnnAssign) -> bool:
    made = field.value is not None and "init=False" in ast.unparse(field.value)
    return not made and not ast.unparse(field.annotation).startswith("ClassVar")


def _default(field: ast.AnnAssign) -> str:
    """What a field is when it is not given: the call of a factory, or the value."""
    if field.value is None:
        return ""
    value = field.value
    if isinstance(value, ast.Call) and ast.unparse(value.func) == "field":
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in value.keywords}
        factory = options.get("default_factory")
        made = "..." if factory is None or factory.startswith("lambda") else f"{factory}()"
        return f" = {options.get('default', made)}"
    return f" = {ast.unparse(value)}"
