"""Rerankers that a recipe names as tables, and choices that stand for several."""

import pytest

from dspy_rerank.errors import InputError
from dspy_rerank.optimizers.candidates import read_candidates

LISTS = {"sorter": "TopDown", "judge": {"kind": "ListwiseJudge"}}
PAIRS = {"sorter": "MergeSort", "judge": "PairwiseJudge"}


def test_a_table_is_one_reranker():
    found = read_candidates([{**LISTS, "window": 10}])
    assert [*found] == ["TopDown(ListwiseJudge, window=10)"]
    assert found["TopDown(ListwiseJudge, window=10)"].settings["window"] == 10


def test_a_choice_stands_for_one_reranker_with_each_value():
    found = read_candidates([{**LISTS, "window": {"each": [5, 10]}}])
    assert [*found] == ["TopDown(ListwiseJudge, window=5)", "TopDown(ListwiseJudge, window=10)"]
    assert [made.settings["window"] for made in found.values()] == [5, 10]


def test_choices_of_sorter_judge_and_passes_are_combined():
    judge = {"kind": "PairwiseJudge", "swap": {"each": [True, False]}}
    table = {
        "sorter": {"each": ["MergeSort", "HeapSort"]}, "judge": judge, "passes": {"each": [2, 3]},
    }  # fmt: skip
    found = read_candidates([table])
    assert len(found) == 8
    assert found["HeapSort(PairwiseJudge, swap=False, passes=3)"].settings["passes"] == 3
    assert table["judge"] is judge


def test_a_name_of_its_own_is_told_apart_by_the_choice():
    found = read_candidates([{**LISTS, "name": "lists", "rounds": {"each": [2, 3]}}, PAIRS])
    assert [*found] == ["lists, rounds=2", "lists, rounds=3", "MergeSort(PairwiseJudge)"]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ({**LISTS, "window": {"each": []}}, "candidate 1, window: got {'each': []}; expected"),
        ({**LISTS, "window": {"each": 5}}, "window: got {'each': 5}; expected {each = "),
        ({**LISTS, "window": {"each": [5], "step": 2}}, "expected {each = [one, or, more]}"),
        ({**LISTS, "window": {"each": [5, 1]}}, "candidate 1, TopDown: "),
        ({**LISTS, "window": {"each": list(range(2, 103))}}, "stands for 101 rerankers"),
        ({**LISTS, "window": {"each": [5, 5]}}, "two candidates are called"),
        ({**LISTS, "window": {"low": 2, "high": 5}}, "candidate 1, TopDown: "),
    ],
)
def test_a_choice_that_means_nothing_is_refused(table, says):
    with pytest.raises(InputError) as told:
        read_candidates([table])
    assert says in str(told.value)
