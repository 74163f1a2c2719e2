"""Every Python block of docs/integrations.md runs as written, in each section after the first."""

import re
from pathlib import Path

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank import models
from dspy_rerank.testing import scripted_lm

PAGE = Path(__file__).parents[2] / "docs" / "integrations.md"
NEEDS = {
    "LlamaIndex": "llama_index.core",
    "LangChain": "langchain_classic",
    "Haystack": "haystack",
    "PyTerrier": "pyterrier",
    "DSPy": "dspy",
    "OpenTelemetry": "opentelemetry.sdk",
    "MLflow": "mlflow",
}
FRAMEWORKS = ("LlamaIndex", "LangChain", "Haystack", "PyTerrier")


def blocks(text):
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def sections():
    first, *rest = re.split(r"^## ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    named = {part.partition("\n")[0].strip(): blocks(part) for part in rest}
    return blocks(first), {name: found for name, found in named.items() if found}


def by_shared_words(prompt):
    """Orders the passages of a prompt by the words that they share with the question."""
    shown = dict(re.findall(r"Passage \[(\d+)\]: (.+)", prompt))
    asked = set("How do I restore a deleted file?".lower().split())
    near = {n: -len(asked & set(text.lower().split())) for n, text in shown.items()}
    return " > ".join(f"[{n}]" for n in sorted(near, key=near.__getitem__))


def run(name, capsys):
    pytest.importorskip(NEEDS[name])
    setup, parts = sections()
    namespace = {}
    for block in [*setup, *parts[name]]:
        exec(compile(block, f"{PAGE.name}, {name}", "exec"), namespace)
    return capsys.readouterr().out


@pytest.fixture
def scripted(tmp_path, monkeypatch):
    """A new folder, and a scripted model in the place of the embedded one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(dr.models, "get", lambda name: scripted_lm(by_shared_words))


def test_every_section_with_code_is_tested():
    assert set(sections()[1]) == set(NEEDS)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_reranker_is_added_in_at_most_five_lines(name):
    *_, snippet = sections()[1][name]
    assert "dspy_rerank" in snippet
    assert len([line for line in snippet.splitlines() if line.strip()]) <= 5


@pytest.mark.parametrize("name", [*FRAMEWORKS, "DSPy"])
def test_every_framework_finds_the_best_passage(name, scripted, capsys):
    shown = run(name, capsys).splitlines()
    assert shown[0] == "How to restore a deleted file: open the trash and choose put back."
    if name == "DSPy":
        assert shown[1] == "['retrieve.rerank.reranker.judge.predict', 'answer']"


def test_opentelemetry_shows_the_ranking_and_its_question(scripted, capsys, monkeypatch):
    """In memory: the SDK's console exporter keeps the standard output of its own import."""
    export = pytest.importorskip("opentelemetry.sdk.trace.export")
    memory = pytest.importorskip("opentelemetry.sdk.trace.export.in_memory_span_exporter")
    exporter = memory.InMemorySpanExporter()
    monkeypatch.setattr(export, "ConsoleSpanExporter", lambda: exporter)
    run("OpenTelemetry", capsys)
    spans = exporter.get_finished_spans()
    assert [span.name for span in spans] == ["rerank question", "rerank TopDown"]
    assert "trash" not in "".join(span.to_json() for span in spans)


def test_mlflow_is_switched_on(scripted, capsys):
    mlflow = pytest.importorskip("mlflow")
    run("MLflow", capsys)
    assert [type(c).__name__ for c in dspy.settings.callbacks] == ["RankingCallback"]
    mlflow.dspy.autolog(disable=True)


@pytest.mark.local_model
@pytest.mark.parametrize("name", [*FRAMEWORKS, "DSPy"])
def test_the_embedded_model_does_it_as_written(name, tmp_path, monkeypatch, capsys):
    if not models.available():
        pytest.skip("the embedded model is not installed")
    monkeypatch.chdir(tmp_path)
    assert "trash" in run(name, capsys).splitlines()[0]
