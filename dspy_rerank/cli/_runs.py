"""Rankings that were made before, out of a TREC run or a file of results, and their values."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..datasets import Dataset, Grade
from ..errors import InputError
from ..evaluation import Row
from ..metrics import score_order
from ..streaming import read_results
from ..trec import read_qrels, read_run

PROGRAM = ".json"
RESULTS = frozenset({".jsonl", ".ndjson"})
DATA = RESULTS | {".csv", ".parquet", ".pq"}


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known of one query: grades by document id, and those of no candidate."""

    grades: Mapping[str, Grade]
    ideal: Sequence[float] = ()


@dataclass(frozen=True, slots=True)
class Labelled:
    """Labels by query id, with the data set that they come from, if that is more than qrels.

    Attributes:
        name: Of the data.
        labels: By query id.
        data: ``None`` for qrels.
        left: Ids of queries without labels, which are left out.
    """

    name: str
    labels: Mapping[str, Labels]
    data: Dataset | None = None
    left: tuple[str, ...] = ()


def is_program(path: str) -> bool:
    """Whether a file is a saved program, by its ending."""
    return Path(path).suffix.lower() == PROGRAM


def of_dataset(data: Dataset) -> Labelled:
    """The labels of a data set; a document without id goes by its position, as in runs."""
    labels = {
        query.id: Labels(
            {_name(d.id, i): g for i, (d, g) in enumerate(zip(query.documents, query.relevance, strict=True))},  # noqa: E501
            query.ideal,
        )
        for query in data
    }  # fmt: skip
    return Labelled(data.name, labels, data)


def of_qrels(path: str) -> Labelled:
    """The labels of TREC qrels."""
    return Labelled(path, {query: Labels(grades) for query, grades in read_qrels(path).items()})


def looks_like_qrels(path: str) -> bool:
    """Whether a file is qrels rather than a data set: a ``.tsv`` tells by its first line."""
    file = Path(path)
    if not file.is_file() or file.suffix.lower() in DATA:
        return False
    with open(file, encoding="utf-8-sig", errors="replace") as lines:
        first = lines.readline().rstrip("\n")
    return len(first.split()) in (3, 4) and not first.startswith("query\t")


def run_of(path: str) -> dict[str, list[str]]:
    """Document ids by query id, best first.

    Raises:
        DataError: The file is neither a run nor a file of results.
        InputError: It holds no ranking.
    """
    if not Path(path).is_file():
        raise InputError(f"{path}: no such file; expected a saved program (.json), results of "
                         "rerank --out (.jsonl) or a TREC run")  # fmt: skip
    if Path(path).suffix.lower() in RESULTS:
        rows = (row for row in read_results(path) if "ranking" in row)
        found = {
            str(row["id"]): [_name(i["id"], i["index"]) for i in row["ranking"]] for row in rows
        }
    else:
        found = {name: [doc for doc, _ in ranked] for name, ranked in read_run(path).items()}
    if not found:
        raise InputError(f"{path}: no rankings; expected at least one")
    return found


def run_row(
    name: str, run: Mapping[str, list[str]], labelled: Labelled, metrics: Sequence[str]
) -> Row:
    """A run measured against labels; a query that it lacks counts 0.

    Raises:
        InputError: It has none of the labelled queries.
    """
    if not run.keys() & labelled.labels.keys():
        raise InputError(f"{name}: ranks none of the queries of {labelled.name}; "
                         f"it has {list(run)[:3]}, labelled are {list(labelled.labels)[:3]}")  # fmt: skip # noqa: E501
    pairs = [(run.get(query, []), labels) for query, labels in labelled.labels.items()]
    return Row(
        name, {m: tuple(_value(m, ranked, known) for ranked, known in pairs) for m in metrics}
    )


def _value(metric: str, ranked: Sequence[str], labels: Labels) -> float:
    """Of a document that comes twice only the first place counts."""
    shown = list(dict.fromkeys(ranked))
    rest = [grade for name, grade in labels.grades.items() if name not in set(shown)]
    ideal = [grade for grade in (*rest, *labels.ideal) if grade is not None and grade > 0]
    return score_order(metric, [labels.grades.get(n) for n in shown], range(len(shown)), ideal)


def _name(identifier: Any, position: int) -> str:
    return str(position) if identifier is None else str(identifier)
