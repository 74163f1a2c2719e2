"""Answers are read, not guessed: every kind of answer a model gives, and any text at all."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_rerank.reading.answers import (
    read_choice,
    read_grade,
    read_order,
    read_preference,
    read_yes_no,
)
from dspy_rerank.reading.labels import letters, numbers
from dspy_rerank.reading.unwrap import unwrap
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


HOSTILE = [
    "[", "]", "(", "[1]", "[1] ", "[1] > ", "[1],a", "a [1] > [2] ", "1. ", "1.[", "A\n", "A - ",
    "A. ", " ", "\n", "- ", "*", "answer: ", "answer is ", "the best ", "none of the ", "score ",
    "1/", "1 - ", "yes, ", ", but ", "rank [1] [2] x ", "passage ", "\ud800", "(a,", "x;",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
@pytest.mark.parametrize("kind", FIELDS)
def test_hostile_text_is_read_in_linear_time(kind: str, unit: str) -> None:
    """100 kB of anything comes back: quadratic patterns took minutes here."""
    text = f"[2] {unit * (100_000 // len(unit))}!x"
    assert isinstance(read(kind, text, letters(9)), Judgment)


PIECES = [
    *HOSTILE, "[2]", "[3]", "B", "C", "2", "3", " > ", ", ", "; ", " = ", "Ranking: ", "none",
    "[]", "Passage ", "tie", "left", "is more relevant", "not ", "because ", "Score: ", "/3", "%",
    ".5", "<think>", "</think>", '{"ranking": ', "}", "```json\n", "[[ ## ranking ## ]]\n", "9",
]  # fmt: skip
TEXTS = st.one_of(
    st.text(),
    st.text(alphabet="[](){}<>,.;:=-*/#\"'` \n0123ABCabc"),
    st.lists(st.sampled_from(PIECES)).map("".join),
)


@given(text=TEXTS, count=st.integers(1, 12), family=st.sampled_from(sorted(FAMILIES)))
def test_an_order_is_a_permutation_or_nothing(text: str, count: int, family: str) -> None:
    """Whatever the model says, no passage is lost, doubled or made up."""
    judgment = read_order(text, FAMILIES[family](count))
    assert judgment.raw == text
    assert judgment.group == tuple(range(count))
    assert (judgment.order is not None) == (judgment.status in ("ok", "repaired"))
    if judgment.order is not None:
        assert sorted(judgment.order) == list(range(count))


@given(text=TEXTS, count=st.integers(1, 12), family=st.sampled_from(sorted(FAMILIES)))
def test_a_choice_was_shown_or_is_nothing(text: str, count: int, family: str) -> None:
    """A choice is one of the places shown, and says nothing else."""
    judgment = read_choice(text, FAMILIES[family](count))
    assert (judgment.best is not None) == (judgment.status == "ok")
    assert judgment.best is None or judgment.best in judgment.group
    assert not judgment.tie


@given(text=TEXTS, family=st.sampled_from(sorted(FAMILIES)))
def test_a_preference_has_a_winner_or_is_a_tie(text: str, family: str) -> None:
    """A known preference is exactly one of left, right and tie."""
    judgment = read_preference(text, FAMILIES[family](2))
    assert (judgment.status == "ok") == (judgment.tie or judgment.best is not None)
    assert judgment.best in (0, 1, None)
    assert not (judgment.tie and judgment.best is not None)


@given(text=TEXTS, low=st.integers(-2, 1), high=st.integers(2, 10))
def test_a_grade_is_on_the_scale(text: str, low: int, high: int) -> None:
    """A known grade is a finite number of the scale."""
    judgment = read_grade(text, low, high)
    assert (judgment.score is not None) == (judgment.status == "ok")
    assert judgment.score is None or low <= judgment.score <= high
    assert read_yes_no(text).score in (0.0, 1.0, None)


@given(order=st.permutations(range(12)), family=st.sampled_from(sorted(FAMILIES)), data=st.data())
def test_an_order_as_written_is_the_order_read(order: list[int], family: str, data: Any) -> None:
    """Every clear way of writing an order is read as that order."""
    labels = FAMILIES[family](12)
    ids = [labels[place] for place in order]
    text = data.draw(
        st.sampled_from(
            [
                " > ".join(f"[{label}]" for label in ids),
                " > ".join(ids),
                ", ".join(ids),
                json.dumps(ids),
                "\n".join(f"{i + 1}. Passage [{label}]" for i, label in enumerate(ids)),
                "\n".join(f"- {label}" for label in ids),
            ]
        )
    )
    judgment = read_order(text, labels)
    assert (judgment.status, judgment.order) == ("ok", tuple(order))


def test_labels_that_were_shown_come_before_the_other_family() -> None:
    """Only ids that cannot be mistaken are taken from the family that was not shown."""
    assert read_order("[B, A]", numbers(2)).order == (1, 0)
    assert read_choice("28", letters(30)).best == 27
    assert read_choice("AB", numbers(30)).best == 27


def test_reasons_are_short_and_say_what_came() -> None:
    """A reason quotes only the beginning of the answer."""
    judgment = read_order("lorem ipsum " * 1000, numbers(3))
    assert "lorem ipsum" in judgment.reason
    assert len(judgment.reason) < 100
    assert read_choice("", numbers(3)).reason == "the answer is empty"
    assert "7" in read_choice("[7]", numbers(3)).reason
    assert "99" in read_grade("99", 0, 3).reason
