"""Imports go one way, and importing the package stays light."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "dspy_rerank"
FOUNDATION = {"types", "errors"}
PURE = FOUNDATION | {"aggregate", "_newton", "_luce"}
ALLOWED = {
    "types": set(),
    "errors": set(),
    "_luce": {"_newton"},
    "aggregate": FOUNDATION | {"_newton", "_luce"},
    "trec": FOUNDATION,
    "metrics": FOUNDATION | {"trec"},
    "stats": FOUNDATION,
    "certainty": FOUNDATION,
    "calibration": FOUNDATION,
    "capability": set(),
    "reading": FOUNDATION | {"reading"},
    "documents": FOUNDATION,
    "datasets": FOUNDATION | {"datasets", "trec", "documents"},
    "sorters/plans": PURE | {"sorters/plans"},
    "judges": FOUNDATION
    | {"judges", "reading", "adapters", "background", "calls", "capability", "options", "certainty"}
    | {"calibration", "settings", "context", "reserving"},
    "together": {"errors"},
    "engine": FOUNDATION | {"budget", "judges", "options", "together"},
}


def room(path):
    """The name under which a module's layer is known."""
    inside = path.relative_to(PACKAGE).with_suffix("")
    parts = inside.parts
    return "/".join(parts[:2]) if parts[:2] == ("sorters", "plans") else parts[0]


def imported(path):
    """Every module of the package that a file imports."""
    tree = ast.parse(path.read_text())
    here = ["dspy_rerank", *path.relative_to(PACKAGE).parent.parts]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            base = here[: len(here) - node.level + 1] if node.level else []
            module = [*base, *(node.module or "").split(".")] if node.module else base
            names = [[*module, alias.name] for alias in node.names]
            if module[:1] == ["dspy_rerank"]:
                yield from names
        elif isinstance(node, ast.Import):
            yield from (a.name.split(".") for a in node.names if a.name.startswith("dspy_rerank"))


def layer(module):
    """The room that an imported module is in."""
    parts = module[1:]
    return "/".join(parts[:2]) if parts[:2] == ["sorters", "plans"] else parts[0] if parts else ""


@pytest.mark.parametrize("name", ALLOWED)
def test_a_layer_knows_only_those_below(name):
    files = [path for path in PACKAGE.rglob("*.py") if room(path) == name]
    assert files
    for path in files:
        used = {layer(module) for module in imported(path)} - {name, ""}
        assert used <= ALLOWED[name], f"{path.name} imports {used - ALLOWED[name]}"


def test_the_core_knows_no_optimizers_datasets_or_command_line():
    outer = {"optimizers", "cli", "server", "integrations", "datasets", "models", "batch"}
    outer |= {"streaming", "planning"}
    lazy = {"binding", "defaults", "evaluation", "program", "__init__"}
    for path in PACKAGE.rglob("*.py"):
        if room(path) in outer | lazy:
            continue
        used = {layer(module) for module in imported(path)}
        assert not used & outer, path


def test_plans_hold_no_language_model():
    for path in (PACKAGE / "sorters" / "plans").glob("*.py"):
        assert "dspy" not in path.read_text().replace("dspy_rerank", ""), path


def test_importing_is_light():
    code = (
        "import sys, dspy_rerank as dr\n"
        "heavy = {'litellm', 'optuna', 'xllamacpp', 'pandas', 'ir_measures', 'rich'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "assert all(hasattr(dr, name) for name in dr.__all__)\n"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_files_and_functions_stay_small():
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text()
        assert len(source.splitlines()) <= 300, path
        for node in ast.walk(ast.parse(source)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = [n for n in node.body if not isinstance(n, ast.Expr)] or node.body
                length = (node.end_lineno or 0) - body[0].lineno + 1
                assert length <= 40, f"{path}: {node.name} is {length} lines"


def test_no_folder_shadows_hugging_face_datasets():
    assert not (PACKAGE.parent / "datasets" / "__init__.py").exists()
