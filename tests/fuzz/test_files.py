"""Configurations and label files that nobody should have written are read or refused by name."""

import json
import logging
from importlib.util import find_spec

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import dspy_rerank as dr
from dspy_rerank import trec
from dspy_rerank.errors import DataError, InputError
from dspy_rerank.models import aliases
from tests.fuzz.harness import VALUES, edited, outcome, tried

CONFIG = {
    "model_list": [
        {
            "model_name": "judge",
            "litellm_params": {
                "model": "openai/x", "api_key": "os.environ/K", "api_base": "http://127.0.0.1:1/v1",
                "rpm": 60, "input_cost_per_token": 1e-6, "output_cost_per_token": 2e-6,
            },
            "model_info": {"max_input_tokens": 4096, "id": "a"},
        },
        {"model_name": "judge", "litellm_params": {"model": "groq/y", "tpm": 1000, "order": 2}},
        {"model_name": "all/*", "litellm_params": {"model": "openai/*"}},
    ],
    "router_settings": {
        "fallbacks": [{"judge": ["all/x"]}], "model_group_alias": {"j": "judge"},
        "num_retries": 2, "routing_strategy": "simple-shuffle", "cooldown_time": 5,
    },
    "litellm_settings": {"drop_params": True, "context_window_fallbacks": [{"judge": ["j"]}]},
    "environment_variables": {"FUZZ_KEY": "x"},
    "credential_list": [{"credential_name": "c", "credential_values": {"api_key": "k"}}],
}  # fmt: skip
RECORD = {
    "id": "q1", "query": "which?", "split": "test", "criteria": "new",
    "documents": ["one", {"text": "two", "id": "d2", "score": 1.5}, {"text": "three"}],
    "relevance": [0, 1, 3],
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    logging.disable(logging.WARNING)
    yield
    logging.disable(logging.NOTSET)
    aliases.forget()


def config_loads_or_is_refused(path, data):
    path.write_bytes(data)
    found, error = outcome(InputError, dr.models.load, path)
    assert list(found) if error is None else str(path) in str(error)


@tried(200)
@given(content=edited(CONFIG))
def test_an_edited_configuration(content, tmp_path):
    text = yaml.safe_dump(content, allow_unicode=True)
    config_loads_or_is_refused(tmp_path / "litellm.yaml", text.encode("utf-8", "surrogatepass"))


@tried(150)
@given(
    data=st.binary(max_size=80) | st.text(max_size=80).map(lambda t: t.encode("utf-8", "replace"))
)
def test_any_configuration(data, tmp_path):
    config_loads_or_is_refused(tmp_path / "litellm.yaml", data)


BOMB = "a: &a [x, x, x]\n" + "".join(
    f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n"
    for a, b in zip("abcdefghi", "bcdefghij", strict=True)
)


@pytest.mark.parametrize("text", [
    "[" * 5000, "model_list: " + "[" * 3000 + "]" * 3000, "a: &a [*a]", BOMB,
    BOMB + "model_list: *j\n", "model_list: &m [*m]", "!!python/object/apply:os.system [true]",
    "model_list: [{model_name: x, litellm_params: {model: !!python/name:os.system }}]",
    "model_list: [{model_name: x, model_name: y, litellm_params: {model: openai/x}}]",
], ids=range(9))  # fmt: skip
def test_hostile_yaml(text, tmp_path):
    config_loads_or_is_refused(tmp_path / "litellm.yaml", text.encode())


def labels_load_or_are_refused(path, data):
    path.write_bytes(data)
    found, error = outcome((DataError, InputError), dr.datasets.load, path)
    assert error is None or path.stem in str(error)
    for query in found or ():
        assert len(query.documents) == len(query.relevance)


@tried(200)
@given(records=st.lists(edited(RECORD) | VALUES, max_size=3))
def test_edited_json_lines(records, tmp_path):
    lines = "\n".join(json.dumps(record) for record in [RECORD, *records])
    labels_load_or_are_refused(tmp_path / "labels.jsonl", lines.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("relevance", [[0, 10**400, 1], {"d2": 10**400}])
def test_a_grade_that_no_number_can_hold(relevance, tmp_path):
    text = json.dumps({**RECORD, "relevance": relevance})
    labels_load_or_are_refused(tmp_path / "labels.jsonl", text.encode())


def test_a_score_that_no_number_can_hold():
    with pytest.raises(dr.errors.DocumentTypeError, match="score"):
        dr.ScoreSort(dr.PointwiseJudge())("q", [{"text": "a", "score": 10**400}])


CELLS = st.sampled_from(
    ["q", "d", "1", "3.5", "-1", "nan", "1e999", '"', '"a\nb"', ",", "", "\x00"]
)
ROWS = st.lists(st.lists(CELLS | st.text(max_size=5), max_size=4).map(",".join), max_size=5)


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
@tried(120)
@given(rows=ROWS, data=st.binary(max_size=30))
def test_any_table(suffix, rows, data, tmp_path):
    gap = "," if suffix == ".csv" else "\t"
    head = gap.join(["query", "document", "relevance"])
    text = "\n".join([head, *(row.replace(",", gap) for row in rows)])
    path = tmp_path / f"labels{suffix}"
    labels_load_or_are_refused(path, text.encode("utf-8", "surrogatepass") + b"\n" + data)


ARROW = pytest.mark.skipif(find_spec("pyarrow") is None, reason="pyarrow is not installed")
SUFFIXES = [".jsonl", ".csv", ".tsv", pytest.param(".parquet", marks=ARROW)]


@pytest.mark.parametrize("suffix", SUFFIXES)
@tried(80)
@given(data=st.binary(max_size=80))
def test_any_bytes_as_labels(suffix, data, tmp_path):
    labels_load_or_are_refused(tmp_path / f"labels{suffix}", data)


WORDS = st.sampled_from(["q1", "0", "Q0", "d1", "1", "-2", "3.5", "nan", "inf", "1e999", "9" * 400])
LINES = st.lists(
    st.lists(WORDS | st.text(max_size=4), max_size=7).map(" ".join), max_size=5
).map("\n".join)  # fmt: skip


@pytest.mark.parametrize("read", [trec.read_qrels, trec.read_run])
@tried(250)
@given(text=LINES)
def test_any_qrels_and_runs(read, text, tmp_path):
    path = tmp_path / "file.txt"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    found, error = outcome(DataError, read, path)
    assert error is None or "file.txt" in str(error)
    values = [dict(inner).values() for inner in (found or {}).values()]
    assert all(isinstance(value, int | float) for inner in values for value in inner)


@pytest.mark.parametrize("read", [trec.read_qrels, trec.read_run])
def test_a_line_without_an_end(read, tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("q1 0 d1 " + "1" * 200_000)
    with pytest.raises(DataError, match=r"file\.txt"):
        read(path)
