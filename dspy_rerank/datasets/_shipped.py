"""The labelled sets that come with the project, found by name."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
ROOTS = (_PACKAGE / "shipped", _PACKAGE.parents[1] / "datasets")
"""Where the sets lie: inside an installed wheel, or at the top of a clone."""


def shipped_names() -> tuple[str, ...]:
    """Names that `dspy_rerank.datasets.load` knows without a path."""
    files = (path for root in ROOTS for path in root.glob("*/queries.jsonl"))
    return tuple(sorted({path.parent.name for path in files}))


def shipped_folder(name: str) -> Path | None:
    """The folder of a set that comes with the project."""
    if name not in shipped_names():
        return None
    return next(root / name for root in ROOTS if (root / name / "queries.jsonl").is_file())
