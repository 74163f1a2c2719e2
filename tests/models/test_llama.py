"""The wrapper around llama.cpp, as far as it goes without a model."""

import importlib.util
import os

import pytest
from dspy import lm15

from dspy_rerank import models
from dspy_rerank.errors import MissingExtraError
from dspy_rerank.models._llama import Token, _checked, _yielding_threads

TOO_LONG = {"code": 400, "type": "exceed_context_size_error", "message": "too long"}


def test_a_missing_extra_is_reported_with_the_line_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not models.available()
    with pytest.raises(MissingExtraError, match=r"pip install 'dspy-rerank\[local\]'"):
        models.local()


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (TOO_LONG, lm15.ContextLengthError),
        ({"code": 400, "message": "bad grammar"}, lm15.InvalidRequestError),
        ({"code": 500, "message": "broken"}, lm15.ServerError),
    ],
)
def test_errors_are_raised_in_dspys_terms(
    error: dict[str, object], expected: type[lm15.LM15Error]
) -> None:
    with pytest.raises(expected, match=str(error["message"])):
        _checked({"error": error})


def test_a_part_of_a_character_is_not_whole() -> None:
    assert Token(1, "é".encode()).whole
    assert not Token(1, "é".encode()[:1]).whole
    assert Token(1, "\ufffd".encode()).whole


def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_WAIT_POLICY", raising=False)
    with _yielding_threads():
        assert os.environ["OMP_WAIT_POLICY"] == "passive"
    assert "OMP_WAIT_POLICY" not in os.environ
    monkeypatch.setenv("OMP_WAIT_POLICY", "active")
    with _yielding_threads():
        assert os.environ["OMP_WAIT_POLICY"] == "active"
    assert os.environ["OMP_WAIT_POLICY"] == "active"
