"""Wrappers come off, the answer stays, and any text at all can be unwrapped."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dspy_rerank.reading.unwrap import thought, unwrap

PEELED = {
    "nothing around it": ("B", "B"),
    "blanks": (" \n B \n", "B"),
    "a reasoning block": ("<think>A?</think>B", "B"),
    "several reasoning blocks": ("<think>A</think>\n<Thinking>C</Thinking>\nB", "B"),
    "reasoning with an attribute": ('<reasoning effort="low">A</reasoning>B', "B"),
    "reasoning in square brackets": ("[THINK]A[/THINK]B", "B"),
    "nested reasoning": ("<think>A <think>C</think> A</think>B", "B"),
    "reasoning that lost its opening": ("A it is, or\n</think>\nB", "B"),
    "reasoning with nothing behind it": ("<think>A</think>", ""),
    "channels": (
        "<|channel|>analysis<|message|>A<|end|><|start|>assistant"
        "<|channel|>final<|message|>B<|return|>",
        "B",
    ),
    "an end-of-sequence token": ("B</s>", "B"),
    "a chat header": ("[[ ## winner ## ]]\nB\n\n[[ ## completed ## ]]", "B"),
    "a chat header on the same line": ("[[ ## winner ## ]] B", "B"),
    "a chat header without blanks": ("[[##winner##]]\nB", "B"),
    "a chat header in capitals": ("[[ ## Winner ## ]]\nB", "B"),
    "other fields": ("[[ ## reasoning ## ]]\nA\n\n[[ ## winner ## ]]\nB\n", "B"),
    "other fields behind": ("[[ ## winner ## ]]\nB\n\n[[ ## reasoning ## ]]\nA", "B"),
    "all headers on one line": ("[[ ## reasoning ## ]] A [[ ## winner ## ]] B", "B"),
    "the last header": ("[[ ## winner ## ]]\nA\n[[ ## winner ## ]]\nB", "B"),
    "a quoted header inside a line": (
        "[[ ## reasoning ## ]]\nPassage C says [[ ## winner ## ]] C\n[[ ## winner ## ]]\nB\n"
        "[[ ## note ## ]]\nIt says [[ ## winner ## ]] C",
        "B",
    ),
    "only the completed header": ("B\n\n[[ ## completed ## ]]", "B"),
    "headers of other fields only": ("[[ ## reasoning ## ]]\nA", ""),
    "a tag": ("<reasoning>A</reasoning><winner>\nB\n</winner>", "B"),
    "a tag without an end": ("<winner>B", "B"),
    "an answer tag": ("I say <answer>B</answer>, so be it", "B"),
    "a fence": ("```\nB\n```", "B"),
    "a fence with a language": ('```json\n{"winner": "B"}\n```', "B"),
    "a fence without an end": ("```text\nB", "B"),
    "a fence on one line": ("```B```", "B"),
    "an object": ('{"winner": "B"}', "B"),
    "an object in prose": ('Sure: {"reasoning": "{A}", "winner": "B"} there.', "B"),
    "an object in an object": ('{"result": {"winner": "B"}}', "B"),
    "a key in capitals": ('{"Winner": "B"}', "B"),
    "the last object": ('{"winner": "A"}\n{"winner": "B"}', "B"),
    "a brace before the object": ('{A} {"winner": "B"}', "B"),
    "a list": ('{"winner": ["B", 1]}', '["B", 1]'),
    "a number": ('{"winner": 2.5}', "2.5"),
    "a truth value": ('{"winner": true}', "true"),
    "no error": ('{"winner": "B", "error": null}', "B"),
    "an object cut off": ('{"winner": "B", "reasoning": "A is', "B"),
    "a list cut off": ('{"winner": ["B", "A', '["B", "A'),
    "an object in Python's spelling": ("{'winner': ['[B]', '[A]'], 'x': 1}", "['[B]', '[A]']"),
    "a box": ("\\boxed{B}", "B"),
    "a heading": ("Winner: B", "B"),
    "a bold heading": ("**Winner:** B", "B"),
    "a heading below reasoning": ("Reasoning: A is vague.\nWinner: B", "B"),
    "a header, a fence and an object": (
        '<think>A</think>[[ ## winner ## ]]\n```json\n{"winner": "B"}\n```\n[[ ## completed ## ]]',
        "B",
    ),
}


@pytest.mark.parametrize(("text", "answer"), PEELED.values(), ids=PEELED.keys())
def test_peels(text: str, answer: str) -> None:
    """The bare answer remains."""
    assert unwrap(text, "winner") == answer


@pytest.mark.parametrize(
    "text",
    [
        "<think>B",
        "<think>A</think><think>B",
        "<THINKING>\nB\n",
        '{"error": {"message": "rate limit"}}',
        '```json\n{"error": "overloaded"}\n```',
        '{"error": "overloaded", "winner": "B"}',
    ],
)
def test_no_answer(text: str) -> None:
    """Reasoning that was cut off and error objects hold no answer."""
    assert unwrap(text, "winner") is None


@pytest.mark.parametrize(
    "text",
    [
        "Winner: A\nWinner: B",
        '{"reasoning": "B"}',
        '{"winner": null}',
        "A [thinking about it] note",
        "see [1], [2]: {x}",
    ],
)
def test_leaves_alone(text: str) -> None:
    """What is no wrapper of this field reaches the reader as it is."""
    assert unwrap(text, "winner") == text


def test_fields_of_several_words() -> None:
    """A heading may spell the field's name with blanks."""
    assert unwrap("Best passage: B", "best_passage") == "B"


@given(text=st.text(), field=st.sampled_from(["winner", "a.b", "best_passage", "("]))
def test_any_text(text: str, field: str) -> None:
    """Nothing raises."""
    assert isinstance(unwrap(text, field), str | None)


WRAPPERS = [
    "<think>", "</think>", "[[ ## winner ## ]]", "<winner>", "</winner>", "```json\n", "```", "}",
    '{"winner": ', '"B"', "[", "]", ",", "\n", "'winner':", "Winner:", '{"error": 1}', "<|end|>",
]  # fmt: skip


@given(st.lists(st.sampled_from(WRAPPERS)).map("".join))
def test_any_mix_of_wrappers(text: str) -> None:
    """Wrappers in any order, open or closed, do not raise either."""
    assert isinstance(unwrap(text, "winner"), str | None)


@given(value=st.one_of(st.text(), st.lists(st.integers()), st.booleans(), st.floats()))
def test_values_of_objects(value: object) -> None:
    """A string comes back as it was, anything else as JSON."""
    plain = isinstance(value, str) and not any(sign in value for sign in "<[`{}\\:=~")
    if plain or not isinstance(value, str):
        wanted = value if isinstance(value, str) else json.dumps(value)
        assert unwrap(json.dumps({"winner": value}), "winner") == wanted.strip()


HOSTILE = [
    "{", "[", '{"a":', '{"winner":[', "'winner':[[x", '"winner": ', "<think>", "<think ", "\n",
    "</think>", "[[ ## ", "[[ ## a", "[[ ## winner ## ]]", "<winner>", "```", "\nwinner: ", " ",
    "\\boxed{",
]  # fmt: skip


@pytest.mark.parametrize("unit", HOSTILE, ids=ascii)
def test_hostile_text_is_unwrapped_in_linear_time(unit: str) -> None:
    """100 kB of anything comes back."""
    assert isinstance(unwrap(unit * (100_000 // len(unit)), "winner"), str | None)


def test_deep_objects() -> None:
    """Nesting beyond what JSON readers take is no error."""
    for depth in (10, 900, 990, 1000, 100_000):
        text = '{"winner": ' + "[" * depth + "]" * depth + "}"
        assert isinstance(unwrap(text, "winner"), str | None)


def test_reasoning_inside_of_a_json_string_is_cut_out_of_the_string():
    raw = '{"ranking": "<think>[3] beats [1]</think>[2] > [1] > [3]"}'
    assert unwrap(raw, "ranking") == "[2] > [1] > [3]"


@pytest.mark.parametrize(
    ("text", "reasoned"),
    [
        ("A", False),
        ("<think>B?</think>A", True),
        ("<think>\n\n</think>\n\nA", False),
        ("<think></think>", False),
        ("<think>B?", True),
        ("B? </think> A", True),
        ("<|channel|>analysis<|message|>B?<|channel|>final<|message|>A", True),
        ('{"winner": "A"}', False),
        ("", False),
    ],
)
def test_whether_a_completion_holds_reasoning(text, reasoned):
    assert thought(text) is reasoned
