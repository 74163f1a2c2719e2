"""Queries with known grades, and a configuration that leads to the fake provider."""

from pathlib import Path

import certifi
import pytest
import yaml

from dspy_rerank import models
from tests.batch.data import KEY, grade, lines


@pytest.fixture(scope="session", autouse=True)
def one_authority(tmp_path_factory):
    """Clients read all known certificates at every call, a quarter of a second on a busy machine;
    nothing here is encrypted, so one of them will do."""
    first = Path(certifi.where()).read_text().partition("-----END CERTIFICATE-----")
    path = tmp_path_factory.mktemp("authority") / "one.pem"
    path.write_text(first[0] + first[1] + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SSL_CERT_FILE", str(path))
        yield


@pytest.fixture
def grades():
    """Grades of 6 queries with 50 candidates each, by passage."""
    return {f"query {q} passage {d}": grade(q, d) for q in range(6) for d in range(50)}


@pytest.fixture
def queries(tmp_path):
    """A file of those queries."""
    path = tmp_path / "queries.jsonl"
    path.write_text(lines(6))
    return path


@pytest.fixture
def few(tmp_path):
    """A file of two of the queries, with six candidates each."""
    path = tmp_path / "few.jsonl"
    path.write_text(lines(2, documents=6))
    return path


@pytest.fixture
def config(tmp_path, monkeypatch):
    """Writes a configuration whose alias ``judge`` is a server's model; the key is a variable."""
    monkeypatch.setenv("BATCH_KEY", KEY)

    def write(server, **info):
        entry = {
            "model_name": "judge",
            "litellm_params": {"model": "openai/m", "api_base": server.base_url,
                               "api_key": "os.environ/BATCH_KEY"},
            "model_info": info,
        }  # fmt: skip
        path = tmp_path / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": [entry]}))
        return path

    yield write
    models.aliases.forget()
