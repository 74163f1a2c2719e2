"""What pictures show, of rankings that are ordinary, empty, tied, degraded and oddly named."""

import re
import subprocess
import sys

import pytest

import dspy_rerank as dr
from dspy_rerank import seeing
from dspy_rerank.calibration import reliability
from dspy_rerank.errors import InputError, MissingExtraError
from dspy_rerank.ranking import assemble
from dspy_rerank.seeing.frontier import front, spread

pytest.importorskip("matplotlib")

TRIALS = [
    {"variant": "own", "prior": 0.0, "value": 0.5, "calls": 10, "calls_per_query": 5.0},
    {"variant": "own", "prior": 0.3, "value": 0.7, "calls": 0, "calls_per_query": 5.0},
    {"variant": "title", "prior": 0.3, "value": 0.6, "calls": 10, "calls_per_query": 2.0},
]
CARD = {"trials": TRIALS, "cost": "calls", "metric": "nDCG@10", "chosen": TRIALS[1]}


def made(texts, order, **fields):
    return assemble(
        fields.pop("query", "query"), [dr.Document(text) for text in texts], order, **fields
    )


def words(picture):
    """Every text of a picture, in the order drawn."""
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.to_svg())


def test_a_move_is_told_in_numbers_and_arrows():
    shown = words(made(["a", "b", "c"], [2, 0, 1], scores=[1.0, 0.5, 2.0]).plot())
    assert [text for text in shown if "▲" in text or "▼" in text] == ["▲ 2", "▼ 1", "▼ 1"]
    assert "3 documents; 3 moved; 0 calls; confidence unknown" in shown


def test_scores_and_confidences_have_a_scale_only_where_they_are_known():
    bare = words(made(["a", "b"], [0, 1]).plot())
    full = words(made(["a", "b"], [0, 1], scores=[2, 1], confidences={0: 0.9, 1: 0.6}).plot())
    assert not {"score", "confidence"} & set(bare)
    assert {"score", "confidence"} <= set(full)


def test_a_document_without_score_or_confidence_says_so():
    shown = words(made(["a", "b"], [0, 1], scores=[2, None], confidences={1: 0.6}).plot())
    assert {"none", "unknown"} <= set(shown)


def test_a_degraded_ranking_says_why():
    ranking = made(["a"], [0], degraded=True, reasons=("the model failed",))
    assert "DEGRADED: the model failed" in words(ranking.plot())
    assert "DEGRADED: the model failed" in words(ranking.replay().plot())


def test_the_first_documents_are_shown_with_where_they_came_from():
    ranking = made([f"text {i}" for i in range(100)], range(99, -1, -1))
    shown = words(ranking.plot())
    assert (
        "the first 30 of 100 documents; 100 moved; 0 calls; confidence unknown; no scores" in shown
    )
    assert "text 70" in shown
    assert "text 69" not in shown
    assert "▲ 99" in shown
    assert "text 0" in words(ranking.plot(None))


def test_an_empty_ranking_has_a_picture():
    assert "no documents" in words(made(["a"], []).plot())
    assert "no documents" in words(made(["a"], []).replay().plot())


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("$x^2$ and $open", "$x^2$ and $open"),
        ("a\nb\tc\x07d", "a b cd"),
        ("turn\u202eed", "turned"),
        ("<script>&", "&lt;script&gt;&amp;"),
        ("lone \ud800 surrogate", "lone surrogate"),
        ("   ", "(blank)"),
        ("שלום עולם", "שלום עולם"),
    ],
)
def test_strange_texts_are_shown_as_plain_ones(text, said):
    assert said in words(made([text, "other"], [1, 0]).plot())


def test_a_long_query_takes_two_lines_at_most():
    titles = [t for t in words(made(["a"], [0], query="word " * 200).plot()) if "word" in t]
    assert len(titles) == 2
    assert titles[-1].endswith("…")


def test_the_same_figure_gives_the_same_bytes():
    picture = made(["a", "b"], [1, 0], scores=[1, 2]).plot()
    again = made(["a", "b"], [1, 0], scores=[1, 2]).plot()
    assert picture.to_svg() == again.to_svg()
    assert picture.to_png() == again.to_png()


def test_the_users_own_style_stays_out_and_stays():
    import matplotlib

    with matplotlib.rc_context({"font.size": 30.0}):
        inside = made(["a"], [0]).plot().to_svg()
        assert matplotlib.rcParams["font.size"] == 30.0
    assert inside == made(["a"], [0]).plot().to_svg()


@pytest.mark.parametrize(
    ("name", "start"), [("a.svg", b"<?xml"), ("a.PNG", b"\x89PNG"), ("a.pdf", b"%PDF")]
)
def test_a_picture_is_saved_as_its_ending_says(tmp_path, name, start):
    path = made(["a"], [0]).plot().save(tmp_path / name)
    assert path.read_bytes().startswith(start)


def test_another_ending_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"a\.bmp does not end in one of"):
        made(["a"], [0]).plot().save(tmp_path / "a.bmp")


def test_a_notebook_shows_a_picture():
    data, size = made(["a"], [0]).plot()._repr_png_()
    assert data.startswith(b"\x89PNG")
    assert size["width"] > size["height"]


def test_most_is_checked():
    with pytest.raises(InputError, match="most=0; expected a whole number of at least 1"):
        made(["a"], [0]).plot(0)


def test_without_matplotlib_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError) as caught:
        made(["a"], [0]).plot()
    assert str(caught.value) == "pictures need matplotlib: pip install 'dspy-rerank[plot]'"


def test_matplotlib_is_loaded_by_the_first_picture():
    code = "import sys, dspy_rerank.seeing; print('matplotlib' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"


def test_the_front_keeps_what_nothing_cheaper_matches():
    assert front([(3, 0.9), (1, 0.5), (2, 0.5), (1, 0.4), (4, 0.8)]) == [1, 0]


def test_labels_keep_apart_from_points_and_from_each_other():
    points = [(0.0, 0.0), (0.0, 0.0), (0.05, 0.0), (3.0, 3.0)]
    placed = spread(points, 0.2)
    for i, (x, y) in enumerate(placed):
        others = [*points, *placed[:i], *placed[i + 1 :]]
        assert all(((x - a) ** 2 + (y - b) ** 2) ** 0.5 >= 0.2 for a, b in others)


def test_a_frontier_names_its_points_by_cost():
    picture = seeing.frontier({"dear": (100, 0.9), "cheap": (1, 0.5)}, x="calls", y="nDCG")
    shown = words(picture)
    assert shown.index("cheap") < shown.index("dear")
    assert not any("mathdefault" in text for text in shown)


@pytest.mark.parametrize(
    ("points", "chosen", "said"),
    [
        ({}, None, "no points"),
        ({"a": (1, float("nan"))}, None, "expected two finite numbers"),
        ({"a": (1, 1)}, "b", "chosen 'b' is none of a"),
    ],
)
def test_a_frontier_of_nothing_is_refused(points, chosen, said):
    with pytest.raises(InputError, match=said):
        seeing.frontier(points, x="x", y="y", chosen=chosen)


@pytest.mark.parametrize("wrap", [lambda card: card, lambda card: {"card": card}])
def test_a_card_or_a_report_shows_what_was_tried(wrap):
    shown = words(seeing.pareto(wrap(CARD)))
    assert "3 settings tried: quality against cost" in shown
    assert shown.index("title, prior 0.3") < shown.index("own, prior 0.3")
    assert "best 0.7000 after 10 calls" in words(seeing.learning(wrap(CARD)))


@pytest.mark.parametrize(
    "source", [{}, {"card": {}}, dr.FunctionJudge(lambda q, p: 0, "pointwise")]
)
def test_what_was_not_compiled_has_no_search_to_show(source):
    with pytest.raises(InputError, match="holds no trials"):
        seeing.pareto(source)


def test_trials_without_a_known_cost_are_refused():
    unknown = [{**trial, "calls_per_query": None} for trial in TRIALS]
    with pytest.raises(InputError, match="no trial has a known calls per query"):
        seeing.pareto({**CARD, "trials": unknown})


def test_reliabilities_stand_side_by_side():
    found = reliability([0.9, 0.8, 0.1], [True, False, False])
    shown = words(seeing.reliability({"before": found, "after": found}))
    assert {"before", "after"} <= set(shown)
    assert shown.count("3 answers, 33% right") == 2


def test_no_reliability_is_refused():
    with pytest.raises(InputError, match="no reliabilities"):
        seeing.reliability({})
