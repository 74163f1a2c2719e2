"""One door to every format: the name or path decides who reads."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import DataError, InputError
from ._csv import read_csv
from ._dataset import Dataset
from ._dl19 import is_dl19, read_dl19
from ._ir_datasets import PREFIX, read_ir_dataset
from ._jsonl import read_jsonl
from ._noveleval import is_noveleval, read_noveleval
from ._parquet import read_parquet
from ._shipped import shipped_folder, shipped_names
from ._trec import is_collection, read_collection


@dataclass(frozen=True, slots=True)
class Options:
    """What a caller may say about how to read."""

    run: str | Path | None = None
    inputs: Sequence[str] = ()

    @property
    def given(self) -> frozenset[str]:
        """Names of the options that were given."""
        options = {"run": self.run, "inputs": self.inputs}
        return frozenset(name for name, value in options.items() if value)


@dataclass(frozen=True, slots=True)
class Format:
    """A format: how to tell it, how to read it, and which options it has a use for."""

    description: str
    matches: Callable[[Path], bool]
    read: Callable[[Path, Options], Dataset]
    options: frozenset[str] = frozenset()


FORMATS = (
    Format(
        "a folder with data.json and qrels.txt (NovelEval)",
        is_noveleval,
        lambda path, _: read_noveleval(path),
    ),
    Format(
        "a folder with bm25_dl19_top100.jsonl and id_rating_19.txt (TREC DL 2019)",
        is_dl19,
        lambda path, _: read_dl19(path),
    ),
    Format(
        "a folder with queries and corpus (.jsonl or .tsv), qrels and a run (TREC, BEIR)",
        is_collection,
        lambda path, options: read_collection(path, run=options.run),
        frozenset({"run"}),
    ),
    Format(
        "a .jsonl file with query, documents and relevance a line",
        lambda path: path.suffix.lower() in {".jsonl", ".ndjson"},
        lambda path, options: read_jsonl(path, inputs=options.inputs),
        frozenset({"inputs"}),
    ),
    Format(
        "a .csv or .tsv file with the columns query, document and relevance",
        lambda path: path.suffix.lower() in {".csv", ".tsv"},
        lambda path, options: read_csv(path, inputs=options.inputs),
        frozenset({"inputs"}),
    ),
    Format(
        "a .parquet file with the keys of the .jsonl or the columns of the .csv file",
        lambda path: path.suffix.lower() in {".parquet", ".pq"},
        lambda path, options: read_parquet(path, inputs=options.inputs),
        frozenset({"inputs"}),
    ),
)


def load(
    source: str | Path,
    split: str | None = None,
    *,
    run: str | Path | None = None,
    depth: int | None = None,
    inputs: Sequence[str] = (),
) -> Dataset:
    """Load labelled queries by the name of a shipped set, or from a file or folder.

    Args:
        source: ``"ostrel"``, ``"ir_datasets:beir/scifact/test"`` where that package is installed,
            or a path; the format is told by the ending or what a folder holds.
        split: Keep one of the splits that the source assigns.
        run: Test collections only: the run of first results, by path or name in the folder.
        depth: Keep so many candidates of each query; grades of the others stay in the ideal.
        inputs: JSON Lines and tables only: keys or columns to take as further inputs of the judge.

    Raises:
        DataError: The source is not there, has no known format or cannot be read, or there is no
            such split.
        InputError: An option makes no sense for the format.
    """
    if str(source).startswith(PREFIX):
        found = read_ir_dataset(str(source), run=run)
    else:
        path = find(source)
        found = _read(path, _format_of(path), Options(run, tuple(inputs)))
    chosen = found if split is None else found.part(split)
    return chosen if depth is None else chosen.cut(depth)


def find(source: str | Path) -> Path:
    """The file or folder that is meant."""
    shipped = shipped_folder(source) if isinstance(source, str) else None
    path = shipped or Path(source).expanduser()
    if not path.exists():
        names = ", ".join(shipped_names()) or "none"
        raise DataError(f"{source}: no such file or folder, nor a shipped set (shipped: {names}).")
    return path


def _format_of(path: Path) -> Format:
    """The first format that matches."""
    found = next((known for known in FORMATS if known.matches(path)), None)
    if found is None:
        known = "".join(f"\n  - {known.description}" for known in FORMATS)
        raise DataError(f"{path}: not a known format of labelled data. Known are:{known}")
    return found


def _read(path: Path, known: Format, options: Options) -> Dataset:
    """The set, if the format has a use for the options."""
    useless = sorted(options.given - known.options)
    if useless:
        raise InputError(f"{path}: {', '.join(useless)} is of no use for {known.description}.")
    return known.read(path, options)
