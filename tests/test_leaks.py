"""Queries that a program was compiled on are said so where it is measured on them again."""

import json
import random
import warnings

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank import datasets
from dspy_rerank.cli import main
from dspy_rerank.leaks import KEY, Seen, seen
from dspy_rerank.optimizers import JudgeCompiler, RerankerSearch, WeightCompiler
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, proposer, skilled

TRAIN, VALIDATION, TEST = labelled(8), labelled(4, seed=1), labelled(5, seed=2)


def student():
    return dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))


def searched(program=None, train=TRAIN, validation=VALIDATION, **options):
    search = RerankerSearch(trials=2, demos=(), instructions=[MAGIC], lm=LM, **options)
    return search.compile(program or student(), trainset=train, valset=validation)


LM = scripted_lm(skilled)
COMPILED = searched()


def union(*sets):
    """One set of several, with ids of their own."""
    examples = [dict(example) for data in sets for example in data.to_examples()]
    return datasets.from_examples([{**e, "query_id": None} for e in examples])


def warned(program, data):
    """What evaluating warns of, and the row of the program."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = dr.evaluate(program, data, lm=LM)
    mine = [each for each in caught if "was compiled on" in str(each.message)]
    assert all(each.category is UserWarning and each.filename == __file__ for each in mine)
    return [str(each.message) for each in mine], found.rows[-1]


def test_queries_it_was_compiled_on_are_counted_by_split():
    said, row = warned(COMPILED, union(TRAIN, VALIDATION, TEST))
    assert row.seen == Seen(train=8, validation=4)
    assert said == [
        "reranker was compiled on 12 of these 17 queries (8 in training, 4 in validation), which "
        "may flatter its figures: measure it on queries that it has not seen"
    ]


@pytest.mark.parametrize("program", [COMPILED, student()], ids=["compiled", "not compiled"])
def test_queries_it_has_never_seen_are_silent(program):
    said, row = warned(program, TEST if program is COMPILED else TRAIN)
    assert (said, row.seen) == ([], Seen())


def test_the_warning_comes_before_anything_is_asked():
    lm = scripted_lm(skilled)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="8 of these 8 queries"):
            dr.evaluate(COMPILED, TRAIN, lm=lm)
    assert lm.engine.prompts == []


def again(example, **changes):
    return dspy.Example(**{**dict(example), **changes}).with_inputs("query", "documents")


def shuffled(example):
    pairs = list(zip(example.documents, example.relevance, strict=True))
    random.Random(1).shuffle(pairs)
    return again(example, documents=[d for d, _ in pairs], relevance=[g for _, g in pairs])


@pytest.mark.parametrize(
    ("change", "changed"),
    [
        (lambda e: again(e, query=f"  {e.query.upper()} "), 0),
        (lambda e: again(e, query_id=f"other {e.query_id}"), 0),
        (lambda e: again(e, relevance=[0] * len(e.relevance)), 0),
        (shuffled, 0),
        (lambda e: again(e, documents=e.documents[:3], relevance=e.relevance[:3]), 8),
        (lambda e: dspy.Example(**dict(e), why="x").with_inputs("query", "documents", "why"), 8),
    ],
    ids=["case and spacing", "id", "labels", "order of candidates", "fewer candidates", "inputs"],
)
def test_a_query_is_known_by_its_text_and_told_from_its_other_candidates(change, changed):
    data = datasets.from_examples([change(e) for e in reversed(TRAIN.to_examples())])
    found = seen(COMPILED, data)
    assert (found.train, found.changed) == (8, changed)
    assert ("8 with other candidates now" in found.words("it", 8)) is bool(changed)


def test_a_saved_program_knows_them_too_and_its_bytes_depend_on_nothing_else(tmp_path):
    first = dr.save(COMPILED, tmp_path / "a.json")
    second = dr.save(searched(), tmp_path / "b.json")
    assert first.read_bytes() == second.read_bytes()
    assert seen(dr.load(first), TRAIN) == Seen(train=8)
    assert seen(dr.Consensus(dr.load(first)), TRAIN) == Seen(train=8)


def test_the_order_of_the_queries_does_not_matter():
    turned = datasets.from_examples(reversed(TRAIN.to_examples()))
    assert set(turned.fingerprints) == set(TRAIN.fingerprints)
    assert searched(train=turned).card["train"][KEY] == COMPILED.card["train"][KEY]


def test_a_query_takes_17_bytes():
    size = len(json.dumps(COMPILED.card["train"][KEY]))
    assert size == 17 * len(TRAIN) + 1
    assert len(set(TRAIN.fingerprints)) == len(TRAIN)


@pytest.mark.parametrize("card", [
    {}, {"train": {"queries": 8, "fingerprint": "x"}}, {"train": [1], "judge": "x"},
    {"train": {KEY: 3}},
])  # fmt: skip
def test_cards_that_say_nothing_of_it_are_silent(card, tmp_path):
    program = student()
    program.card = card
    loaded = dr.load(dr.save(program, tmp_path / "old.json"))
    assert warned(loaded, TRAIN)[0] == []


def by_judge(program, train, validation):
    optimizer = JudgeCompiler(dspy.LabeledFewShot, {"k": 2}, lm=LM, per_query=2)
    return optimizer.compile(program, trainset=train, valset=validation)


def by_weights(program, train, validation):
    return WeightCompiler(lm=LM).compile(program, trainset=train, valset=validation)


@pytest.mark.parametrize(
    ("compiler", "known"),
    [
        (lambda *given: searched(*given), Seen(train=8, validation=4)),
        (by_judge, Seen(train=8, validation=4)),
        (by_weights, Seen(train=12)),
    ],
    ids=["search", "judge", "weights"],
)
def test_what_is_compiled_again_knows_what_it_was_compiled_on_before(compiler, known):
    assert seen(compiler(student(), TRAIN, VALIDATION), union(TRAIN, VALIDATION)) == known
    twice = compiler(COMPILED, labelled(8, seed=3), labelled(4, seed=4))
    assert seen(twice, union(TRAIN, VALIDATION, TEST)) == Seen(earlier=12)
    assert warned(twice, TRAIN)[0][0].startswith(
        "reranker was compiled on 8 of these 8 queries (8 in earlier compiling)"
    )


def test_two_steps_of_a_recipe_know_their_queries_once():
    recipe = dr.optimizers.Recipe(
        "both", judge={"optimizer": "COPRO", "options": {"breadth": 2, "depth": 1}, "per_query": 2},
        search={"trials": 2, "demos": (), "instructions": []},
    )  # fmt: skip
    made = recipe.compile(
        student(), trainset=TRAIN, valset=VALIDATION, lm=LM, reflection_lm=scripted_lm(proposer)
    )
    assert "judge" in made.card
    assert "earlier" not in made.card
    assert seen(made, union(TRAIN, VALIDATION, TEST)) == Seen(train=8, validation=4)


@pytest.fixture
def files(tmp_path):
    """The compiled program, one that is not, and labels of all queries."""
    rows = [
        {"query": q.text, "documents": [d.text for d in q.documents], "relevance": q.relevance}
        for data in (TRAIN, TEST)
        for q in data
    ]
    path = tmp_path / "labels.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    plain, made = tmp_path / "plain.json", tmp_path / "made.json"
    return str(dr.save(student(), plain)), str(dr.save(COMPILED, made)), str(path)


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_the_command_line_says_it_in_a_line_and_in_json(command, files, capsys):
    plain, made, labels = files
    programs = ["--program", made] if command == "evaluate" else [plain, made]
    data = [labels, *programs] if command == "evaluate" else [*programs, labels]
    with dspy.context(lm=LM), warnings.catch_warnings():
        warnings.simplefilter("error")
        assert main([command, *data, "--json"]) == 0
    printed = capsys.readouterr()
    row = json.loads(printed.out)["rows"][-1]
    assert row["seen"] == {"train": 8, "validation": 0, "earlier": 0, "changed": 0}
    assert printed.err.strip() == (
        f"dspy-rerank: {made} was compiled on 8 of these 13 queries (8 in training), which "
        "may flatter its figures: measure it on queries that it has not seen"
    )
