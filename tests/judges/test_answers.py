"""Answers are read, not guessed: every kind of answer a model gives, and any text at all."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_rerank.judges.answers import (
    read_choice,
    read_grade,
    read_order,
    read_preference,
    read_yes_no,
)
from dspy_rerank.judges.labels import letters, numbers
from dspy_rerank.judges.unwrap import unwrap
from dspy_rerank.types import Judgment

HERE = Path(__file__).parent
SHARED = Path(os.environ.get("DSPY_RERANK_CASES", HERE.parents[2] / "shared" / "cases"))
FAMILIES = {"numbers": numbers, "letters": letters}
FIELDS = {
    "listwise": "ranking",
    "pairwise": "winner",
    "setwise": "best",
    "pointwise": "relevance",
    "yes_no": "relevant",
}


def load(path: Path) -> list[Any]:
    """Each case once a label family, as pytest parameters."""
    cases = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return [
        pytest.param(case, family, id=f"{case['kind']}-{case['desc']}-{family}")
        for case in cases
        for family in FAMILIES
        if case.get("labels", family) == family
    ]


def read(kind: str, raw: str, labels: tuple[str, ...]) -> Judgment:
    """What a judge of a kind makes of a completion."""
    text = unwrap(raw, FIELDS[kind]) or ""
    readers = {
        "listwise": lambda: read_order(text, labels),
        "pairwise": lambda: read_preference(text, labels),
        "setwise": lambda: read_choice(text, labels),
        "pointwise": lambda: read_grade(text, 0, 3),
        "yes_no": lambda: read_yes_no(text),
    }
    return readers[kind]()


def check(case: dict[str, Any], family: str) -> None:
    labels = FAMILIES[family](case["n"])
    raw = re.sub(r"\{(\d+)\}", lambda m: labels[int(m[1]) - 1], case["raw"])
    judgment = read(case["kind"], raw, labels)
    got = {
        "status": judgment.status,
        "order": [place + 1 for place in judgment.ranked],
        "best": None if judgment.best is None else judgment.best + 1,
        "tie": judgment.tie,
        "score": judgment.score,
    }
    wanted = case["expect"]
    assert {name: got[name] for name in wanted} == wanted, (raw, judgment.reason)
    assert judgment.reason or judgment.status == "ok"


@pytest.mark.parametrize(("case", "family"), load(HERE / "cases_answers.json"))
def test_case(case: dict[str, Any], family: str) -> None:
    """Our own cases come out as written, whichever labels were shown."""
    check(case, family)


@pytest.mark.skipif(not (SHARED / "answers.json").exists(), reason=f"no cases in {SHARED}")
@pytest.mark.parametrize(("case", "family"), load(SHARED / "answers.json"))
def test_shared_case(case: dict[str, Any], family: str) -> None:
    """The contract kept outside of the repository holds."""
    check(case, family)
