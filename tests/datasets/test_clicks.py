"""Click logs: grades by inverse propensity, and what refutes a propensity."""

import random

import pytest

from dspy_rerank.datasets import check, from_clicks, load
from dspy_rerank.errors import DataError

PROPENSITIES = {1: 0.9, 2: 0.5, 3: 0.2}


def row(query="q", document="a", position=1, click=0, **more):
    return {"query": query, "document": document, "position": position, "click": click, **more}


def logged(queries, truth, seed=0, times=4000):
    """What people who look by ``PROPENSITIES`` click on, results always in the same order."""
    rng = random.Random(seed)
    for q in range(queries):
        for _ in range(times):
            for position, (document, rate) in enumerate(truth.items(), 1):
                looked = rng.random() < PROPENSITIES[position]
                yield row(f"q{q}", document, position, int(looked and rng.random() < rate))


def test_the_bias_of_positions_is_taken_out():
    truth = {"first": 0.3, "second": 0.6, "third": 0.9}
    (query,) = from_clicks(logged(1, truth), PROPENSITIES)
    assert [document.text for document in query.documents] == ["first", "second", "third"]
    assert query.relevance == pytest.approx(list(truth.values()), abs=0.06)
    rates = [q["click"] for q in logged(1, truth)]
    assert sum(rates[0::3]) > sum(rates[2::3])


def test_a_sequence_of_propensities_starts_at_position_1_and_rows_may_bring_their_own():
    rows = [row(click=1), row(document="b", position=2, click=1)]
    (query,) = from_clicks(rows, [1.0, 0.5])
    assert query.relevance == (1, 2)
    own = [row(click=1, propensity=0.5), row(document="b", position=2, propensity=1.0)]
    assert from_clicks(own)[0].relevance == (2, 0)


def test_a_lucky_click_far_down_is_bounded():
    rows = [row(click=int(time == 0), propensity=0.01) for time in range(100)]
    assert from_clicks(rows)[0].relevance == (pytest.approx(0.01 / 0.05),)


def test_documents_that_were_rarely_shown_have_no_grade():
    rows = [*[row()] * 9, row(document="b", position=2)]
    assert from_clicks(rows, PROPENSITIES, least=2)[0].relevance == (0, None)


def test_documents_come_in_the_order_of_their_mean_position():
    rows = [row(document="a", position=3), row(document="a", position=2), row(document="b")]
    assert [d.text for d in from_clicks(rows, PROPENSITIES)[0].documents] == ["b", "a"]


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        ([{"query": "q"}], "row 1 has no 'document'; it has query"),
        ([row(click=2)], "expected 0 or 1 as click"),
        ([row(position=0)], "expected a position from 1"),
        ([row(position=1.5)], "expected a position from 1"),
        ([row(position=7)], "no propensity for position 7"),
        ([row(document=3)], "expected a text or an object"),
        ({"query": "q"}, "expected rows"),
        ([row(click=1, document=str(i), position=3) for i in range(50)],
         "100.0% of 50 results at position 3 were clicked, but only 20.0% are looked at"),
    ],
)  # fmt: skip
def test_a_log_that_cannot_be_read_or_refutes_its_propensities_says_so(rows, says):
    with pytest.raises(DataError, match=says):
        from_clicks(rows, PROPENSITIES)


@pytest.mark.parametrize("bad", [0.0, -1.0, 1.5, float("nan")])
def test_a_propensity_is_a_probability(bad):
    with pytest.raises(DataError, match="above 0 and up to 1"):
        from_clicks([row()], {1: bad})


def test_a_table_of_clicks_is_read_checked_and_split(tmp_path):
    path = tmp_path / "log.csv"
    lines = ["query,id,document,position,click,propensity"]
    for q in range(4):
        lines += [f"q{q},d1,one,1,1,0.9", f"q{q},d2,two,2,0,0.5"]
    path.write_text("\n".join(lines) + "\n")
    data = load(path)
    assert [query.relevance for query in data] == [(pytest.approx(1 / 0.9, abs=1e-5), 0)] * 4
    assert data[0].documents[0].id == "d1"
    assert check(data) == ()
    assert len(data.split(0.5, 0.5)[0]) == 2


def test_a_table_with_neither_grades_nor_clicks_says_what_is_expected(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("query,document,click\nq,a,1\n")
    with pytest.raises(DataError, match="click, position and propensity"):
        load(path)
