"""How hard to try, and text and structures that come from nobody who means well.

``DSPY_RERANK_FUZZ=20000`` tries so many examples of each, in a new order each time.
"""

import json
import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

TRIED = int(os.environ.get("DSPY_RERANK_FUZZ", "0"))
SLOW = (HealthCheck.too_slow, HealthCheck.function_scoped_fixture, HealthCheck.data_too_large)


def tried(examples):
    """Settings for so many examples, always the same ones unless more are asked for."""
    return settings(
        max_examples=TRIED or examples, derandomize=not TRIED, deadline=None, database=None,
        suppress_health_check=SLOW,
    )  # fmt: skip


def outcome(errors, fn, *args):
    """What a function returns, and ``None``; or ``None``, and which of some errors it raised."""
    try:
        return fn(*args), None
    except errors as error:
        return None, error


BITS = st.sampled_from([
    "[1]", "[2] > [1] > [3]", "[3] > [9] > [1]", "[[ ## ranking ## ]]", "[[ ## winner ## ]]",
    "[[ ## completed ## ]]", "<think>", "</think>", "<|channel|>final<|message|>", "```json", "```",
    "{", "}", "[", "]", '"ranking":', '"error":', '{"best": "A"}', "A", "B", "Tie", "None", "3",
    "2.5", "10/10", "-1", "1e400", "NaN", "A > B", "Passage [2]", "Answer:", "Relevance: 2", ">",
    "Rate limit reached, retry in 20 s (429)", "The best is", "not", "because", "\\boxed{2}",
    "１", "٣", "²", "\n", "\u2028", " ", ",", ":", "\x00", "\ud800",
    "<ranking>", "</ranking>", "**", "> ",
])  # fmt: skip
ANSWERS = st.one_of(
    st.text(max_size=120),
    st.lists(BITS, max_size=14).map("".join),
    st.lists(BITS | st.text(max_size=6), max_size=14).map(" ".join),
)
"""What a model may write."""

ODD_STRINGS = st.sampled_from([
    "", "../../etc/passwd", "/etc/passwd", "os.system", "__import__('os')", "\x00", "\ud800",
    "a" * 9999, "os.environ/HOME", "ChatAdapter", "PointwiseJudge", "nan", "-1", "1e999", "{0}",
    "${x}", "Panel",
])  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.just(10**400), st.text(max_size=12),
    ODD_STRINGS,
)  # fmt: skip
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=8) | ODD_STRINGS, inner, max_size=3)
    ),
    max_leaves=8,
)
"""Any value a JSON or YAML file may hold."""


@st.composite
def edited(draw, content):
    """JSON values with one to three of them replaced, dropped or renamed."""
    content = json.loads(json.dumps(content))
    for _ in range(draw(st.integers(1, 3))):
        places = list(_places(content))
        if not places:
            break
        holder, key = draw(st.sampled_from(places))
        action = draw(st.sampled_from(["replace", "replace", "replace", "drop", "rename", "copy"]))
        if action == "replace":
            holder[key] = draw(VALUES)
        elif action == "copy":
            other, name = draw(st.sampled_from(places))
            holder[key] = json.loads(json.dumps(other[name]))
        else:
            value = holder.pop(key)
            if action == "rename" and isinstance(holder, dict):
                holder[draw(st.text(max_size=8) | ODD_STRINGS)] = value
    return content


def _places(value):
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in list(inside):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)
