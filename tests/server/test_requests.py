"""Reading requests: what is refused, and that a refusal never quotes what came."""

import json

import pytest

from dspy_rerank.server.limits import Limits
from dspy_rerank.server.refusals import RefusedError
from dspy_rerank.server.requests import read_request, texts_of


def read(value, **limits):
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return read_request(raw, Limits(**limits))


def refused(value, **limits):
    with pytest.raises(RefusedError) as error:
        texts_of(read(value, **limits))
    assert error.value.status == 400
    return error.value.message


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"\xff\xfe", b'{"query": "\xe9"}', b"[" * 200_000, b'{"x": ' + b"9" * 9999 + b"}"],
)  # fmt: skip
def test_what_is_no_json_is_refused(raw):
    assert "not JSON" in refused(raw)


@pytest.mark.parametrize("value", [[], "x", 1, None, True])
def test_what_is_no_object_is_refused(value):
    assert "expected an object" in refused(value)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({"text": "a", "x": nested(40)}, "nested deeper"),
        ({"text": "a", "x": float("nan")}, "not finite"),
        ({"text": "a", "x": float("inf")}, "not finite"),
        ({"text": "a", "x\ud800": 1}, "surrogate"),
        ("a \udc00", "surrogate"),
        ({"text": None}, "no field 'text'"),
        ({}, "no field 'text'"),
    ],
)
def test_documents_that_cannot_be_sent_on_are_refused_by_their_place(document, said):
    message = refused({"query": "q", "documents": ["fine", document]})
    assert "documents[1]" in message
    assert said in message


def test_a_query_with_half_a_character_is_refused():
    assert "query has half of a surrogate pair" in refused({"query": "\ud800", "documents": ["a"]})


def test_limits_are_named():
    documents = ["a", "b", "c"]
    assert "3 documents; at most 2" in refused({"query": "q", "documents": documents}, documents=2)
    assert "query has 9 characters" in refused({"query": "q" * 9, "documents": ["a"]}, query_characters=8)  # fmt: skip # noqa: E501


def test_more_values_than_can_be_read_in_time_are_refused():
    document = {"text": "a", "x": list(range(100_000))}
    assert "more than 100000 values" in refused({"query": "q", "documents": [document]})


def test_one_document_may_have_very_many_characters():
    assert texts_of(read({"query": "q", "documents": ["é" * 500_000]})) == ["é" * 500_000]


def test_a_refusal_quotes_nothing():
    secret = "secret"
    for body in (
        {"query": {secret: secret}, "documents": [secret]},
        {"query": secret, "documents": [{"no": secret}, [secret]]},
        {"query": secret, "documents": [secret], "top_n": secret},
        {"query": secret, "documents": [secret], "inputs": {"x": {secret: secret}}},
    ):
        assert secret not in refused(body)


def test_nul_blank_and_equal_documents_are_documents():
    request = read({"query": "q", "documents": ["a\0b", "", "", {"text": " "}]})
    assert texts_of(request) == ["a\0b", "", "", " "]


def test_a_surrogate_pair_is_a_character():
    assert texts_of(read(b'{"query": "q", "documents": ["\\ud83d\\ude00"]}')) == ["\U0001f600"]


def test_one_field_is_its_text_and_several_are_yaml():
    document = {"title": "Größe: 1", "body": "a\nb", "text": "t", "tags": ["x", {"y": 1}]}
    body = {"query": "q", "documents": [document]}
    assert texts_of(read({**body, "rank_fields": ["title"]})) == ["Größe: 1"]
    assert texts_of(read({**body, "rank_fields": ["title", "missing"]})) == ["title: 'Größe: 1'\n"]
    assert texts_of(read({**body, "rank_fields": ["tags", "title"]})) == [
        "tags:\n- x\n- y: 1\ntitle: 'Größe: 1'\n"
    ]
    assert texts_of(read(body)) == ["t"]
