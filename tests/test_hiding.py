"""Keys in errors: of the error, of what led to it, in texts, attributes and containers."""

import logging

import dspy
import pytest

from dspy_rerank.hiding import Blotting, blot, secrets_of, without

CANARY = "sk-canary-1234567890abcdef"


class Answered(Exception):
    """As clients raise it: with the provider's answer, in several forms."""

    def __init__(self, said):
        super().__init__(said, {"body": [said]})
        self.message, self.response, self.status, self.body = said, object(), 401, {"error": said}


class Stubborn(Exception):
    """Says what it says, whatever is changed about it."""

    def __str__(self):
        return CANARY


@pytest.fixture
def lm():
    return dspy.LM("openai/m", api_key=CANARY)


def raised(error, cause):
    try:
        try:
            raise cause
        except Exception as first:
            raise error from first
    except Exception as second:
        return second


def everything(error):
    found = [error]
    for each in found:
        found += [e for e in (each.__cause__, each.__context__) if e is not None and e not in found]
    return [f"{e} {e!r} {e.args} {vars(e)}" for e in found]


def test_a_key_is_blotted_out_of_an_error_and_of_what_led_to_it(lm):
    error = raised(ValueError(f"refused: {CANARY}"), Answered(f"Bearer {CANARY} is wrong"))
    assert blot(error, lm)
    assert not [text for text in everything(error) if CANARY in text]
    assert str(error) == "refused: ***"
    assert (error.__cause__.message, error.__cause__.status) == ("Bearer *** is wrong", 401)
    assert error.__cause__.body == {"error": "Bearer *** is wrong"}


def test_what_cannot_be_blotted_out_is_cut_off(lm):
    error = raised(ValueError("refused"), Stubborn())
    assert blot(error, lm)
    assert (error.__cause__, error.__context__) == (None, None)


def test_an_error_without_keys_stays_as_it_is(lm):
    cause = Answered("no such model")
    error = raised(ValueError("refused"), cause)
    response = cause.response
    assert not blot(error, lm)
    assert error.__cause__ is cause
    assert cause.response is response


def test_errors_that_refer_to_each_other_come_to_an_end(lm):
    first, second = ValueError(CANARY), ValueError("b")
    first.__context__, second.__context__ = second, first
    assert blot(second, lm)
    assert CANARY not in "".join(everything(second))


def test_errors_in_a_group_are_reached(lm):
    group = ExceptionGroup("several", [ValueError(CANARY)])
    assert blot(group, lm)
    assert CANARY not in repr(group)


def test_keys_are_those_of_parameters_at_any_depth_of_engines_and_of_the_environment(monkeypatch):
    class Engine:
        def secrets(self):
            return ["engine-key"]

        def complete(self, request):
            raise NotImplementedError

    monkeypatch.setenv("SOMEONES_API_KEY", "variable-key")
    headers = {"Authorization": "Bearer header-key", "X-Trace": "trace-1"}
    plain = dspy.LM("openai/m", api_key="own-key", extra_headers=headers, max_tokens=100)
    assert {"own-key", "header-key", "variable-key"} <= set(secrets_of(plain))
    assert not {"trace-1", "100"} & set(secrets_of(plain))
    assert "engine-key" in secrets_of(dspy.LM("x/m", engine=Engine()))


@pytest.mark.parametrize("short", ["", "none", "x"])
def test_short_values_are_no_keys(short):
    assert short not in secrets_of(dspy.LM("openai/m", api_key=short))
    assert without("none of x", [""]) == "none of x"


def test_what_a_library_logs_passes_without_keys(caplog):
    logger = logging.getLogger("tests.hiding.library")
    logger.addFilter(Blotting(lambda: [CANARY, "none"]))
    try:
        raise ValueError(f"refused: {CANARY}")
    except ValueError:
        logger.exception("key %s, none of %d", CANARY, 7)
    (record,) = caplog.records
    assert record.getMessage() == "key ***, none of 7"
    assert "refused: ***" in caplog.text
    assert CANARY not in caplog.text
