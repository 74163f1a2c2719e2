"""Test collections: queries, corpus, qrels and a run in a folder, as TREC and BEIR lay them out."""

from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from ..errors import DataError
from ..trec import Qrels, Run, numbered_lines, read_qrels, read_run
from ..types import Document
from ._dataset import Dataset
from ._query import Query, above_zero
from ._values import read_id, read_objects, read_text


class Entry(NamedTuple):
    """A query or a document of a collection."""

    id: str
    text: str
    split: str = ""


def is_collection(folder: Path) -> bool:
    """Whether a folder holds a test collection, its run perhaps aside."""
    return bool(table_of(folder, "queries") and table_of(folder, "corpus") and _qrels_files(folder))


def read_collection(folder: str | Path, *, run: str | Path | None = None) -> Dataset:
    """Read ``queries`` and ``corpus`` (.jsonl or .tsv), ``qrels`` and a run of first results.

    The queries are those with judgments, as in trec_eval; one that the run lacks has no documents.
    In .jsonl, a line has ``id`` or ``_id``, ``text`` and perhaps ``title`` and ``split``; the text
    of a document is its title, a line break, and its text. In .tsv, a line is an id and a text.
    Judgments are ``qrels.txt`` (or .tsv), or one file a split in the folder ``qrels``.

    Args:
        folder: Where the files are.
        run: The run, by path or by its name in the folder; the only ``*.run`` there by default.

    Raises:
        DataError: A file is missing or cannot be read, or the files do not fit each other.
    """
    root = Path(folder)
    ranked = read_run(run_file(root, run))
    judged = {path: read_qrels(path) for path in _qrels_files(root)}
    qrels = {query_id: grades for part in judged.values() for query_id, grades in part.items()}
    asked = _asked(root, judged)
    _check_fit(root, qrels, asked, ranked)
    corpus = _corpus(root, {name for query in asked for name, _ in ranked.get(query.id, ())})
    queries = (_query(entry, ranked.get(entry.id, ()), qrels[entry.id], corpus) for entry in asked)
    return Dataset(root.name, tuple(queries))


def _query(
    entry: Entry,
    ranking: Collection[tuple[str, float]],
    grades: Mapping[str, int],
    corpus: Mapping[str, str],
) -> Query:
    """One query with its ranking."""
    names = [name for name, _ in ranking]
    return Query(
        id=entry.id,
        text=entry.text,
        documents=tuple(Document(corpus[name], id=name, score=score) for name, score in ranking),
        relevance=tuple(grades.get(name) for name in names),
        ideal=above_zero(grade for name, grade in grades.items() if name not in names),
        split=entry.split,
        judged=True,
    )


def _asked(root: Path, judged: Mapping[Path, Qrels]) -> list[Entry]:
    """The queries with judgments; where qrels have a file a split, that is their split."""
    split_files = judged if len(judged) > 1 or all(p.parent != root for p in judged) else {}
    splits = {query_id: path.stem for path in split_files for query_id in judged[path]}
    known = {query_id for qrels in judged.values() for query_id in qrels}
    found = entries(_needed(root, "queries"))
    return [e._replace(split=splits.get(e.id, e.split)) for e in found if e.id in known]


def _check_fit(root: Path, qrels: Qrels, asked: Collection[Entry], ranked: Run) -> None:
    """Raise unless the files speak of the same queries."""
    missing = sorted(qrels.keys() - {entry.id for entry in asked})
    if missing:
        raise DataError(
            f"{root}: expected a text for every judged query, got none for {missing[:5]}."
        )
    if not qrels.keys() & ranked.keys():
        raise DataError(f"{root}: expected a run of the judged queries, got one of other queries.")


def _corpus(root: Path, wanted: Collection[str]) -> dict[str, str]:
    """Texts of the documents that are ranked; a corpus may be too large to keep."""
    path = _needed(root, "corpus")
    texts = {entry.id: entry.text for entry in entries(path) if entry.id in wanted}
    missing = sorted(set(wanted) - texts.keys())
    if missing:
        raise DataError(f"{path}: expected every document of the run, got none of {missing[:5]}.")
    return texts


def entries(path: Path) -> Iterator[Entry]:
    """The queries or documents of a table."""
    return _entries_jsonl(path) if path.suffix == ".jsonl" else _entries_tsv(path)


def _entries_jsonl(path: Path) -> Iterator[Entry]:
    """One JSON object a line."""
    for where, record in read_objects(path):
        name = read_id(record.get("id", record.get("_id")))
        if name is None:
            raise DataError(f"{where}: expected 'id' or '_id', got only {', '.join(record)}.")
        title, text = record.get("title"), read_text(record, "text", where)
        yield Entry(name, f"{title}\n{text}" if title else text, str(record.get("split") or ""))


def _entries_tsv(path: Path) -> Iterator[Entry]:
    """An id, a tab and a text a line."""
    for number, line in numbered_lines(path):
        name, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{path}, line {number}: expected id, tab, text; got {line[:80]!r}.")
        yield Entry(name.strip(), text)


def table_of(root: Path, stem: str) -> Path | None:
    """The file of queries or documents."""
    paths = (root / f"{stem}{suffix}" for suffix in (".jsonl", ".tsv"))
    return next((path for path in paths if path.is_file()), None)


def _needed(root: Path, stem: str) -> Path:
    """The file of queries or documents, which has to be there."""
    path = table_of(root, stem)
    if path is None:
        raise DataError(f"{root}: expected {stem}.jsonl or {stem}.tsv, got neither.")
    return path


def _qrels_files(root: Path) -> list[Path]:
    """The files of judgments."""
    single = [root / "qrels.txt", root / "qrels.tsv"]
    return [p for p in single if p.is_file()][:1] or sorted((root / "qrels").glob("*.t[sx][vt]"))


def run_file(root: Path, run: str | Path | None) -> Path:
    """The run that is asked for, or the only one."""
    if run is not None:
        return root / run if (root / run).is_file() else Path(run)
    found = sorted([*root.glob("*.run"), *root.glob("run.t*")])
    if len(found) != 1:
        names = [path.name for path in found] or "none"
        raise DataError(f"{root}: expected one run (*.run, run.txt), got {names}; choose by run=.")
    return found[0]
