"""The pages of docs/: their Python runs, their commands parse, their links lead somewhere."""

import importlib
import re
import shlex
import sys
import tomllib
from pathlib import Path

import pytest

import dspy_rerank as dr
from dspy_rerank.cli._app import parser
from dspy_rerank.models import aliases
from dspy_rerank.testing import scripted_lm
from dspy_rerank.testing.oracles import answer_to
from tests.batch.conftest import one_authority  # noqa: F401  (clients start faster with it)
from tests.batch.data import KEY, PRICE, grade, lines
from tests.batch.server import BatchServer
from tests.judges.test_deciding import Decisions

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.glob("*.md"))
TEXTS = [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "optimizers" / "README.md"]


def read(path):
    return path.read_text(encoding="utf-8")


def blocks(page, language="python"):
    return re.findall(rf"^```{language}\n(.*?)^```", read(page), re.DOTALL | re.MULTILINE)


def sections(page):
    """The blocks before the first heading of level two, and those of each section."""
    first, *rest = re.split(r"^## ", read(page), flags=re.MULTILINE)
    found = [re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.M) for part in rest]
    names = [part.partition("\n")[0] for part in rest]
    setup = re.findall(r"^```python\n(.*?)^```", first, re.DOTALL | re.MULTILINE)
    return setup, {name: part for name, part in zip(names, found, strict=True) if part}


def run(codes, where, namespace):
    for code in codes:
        exec(compile(code, where, "exec"), namespace)
    return namespace


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty folder to run in, and no aliases left behind."""
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    aliases.forget()


@pytest.fixture
def generated():
    """Imports a script of docs/."""
    sys.path.insert(0, str(DOCS))
    yield importlib.import_module
    sys.path.remove(str(DOCS))
    for path in DOCS.glob("_*.py"):
        sys.modules.pop(path.stem, None)


class SharedWords(dict):
    """The grade of any passage: how many words it shares with a question, up to three."""

    def __init__(self, question):
        super().__init__()
        self.words = set(re.findall(r"\w+", question.lower()))

    def __missing__(self, passage):
        return min(3, len(self.words & set(re.findall(r"\w+", passage.lower()))) // 2)


class Saved(Decisions):
    """A decision client whose settings can be written."""

    def dump_state(self):
        return {"model": self.model}


# What runs


def test_every_page_with_python_is_run_by_some_test():
    tests = [read(path) for path in Path(__file__).parent.rglob("test_*.py")]
    for page in PAGES:
        assert not blocks(page) or any(f'"{page.name}"' in test for test in tests), page.name


COMING = DOCS / "coming-from.md"


@pytest.mark.parametrize("name", sections(COMING)[1])
def test_coming_from_another_reranker(name, here, monkeypatch, capsys):
    """A chat model that is right, in the place of the one that is named."""
    if name == "JevRerank":
        pytest.importorskip("llama_index.core", reason="pip install 'dspy-rerank[llama-index]'")
    grades = SharedWords("How do I restore a deleted file?")
    lm = scripted_lm(lambda prompt: answer_to(prompt, grades))
    monkeypatch.setattr(dr.models, "get", lambda name: lm)
    setup, parts = sections(COMING)
    found = run([*setup, *parts[name]], f"{COMING.name}, {name}", {})
    shown = capsys.readouterr().out + (read(here / "run.txt") if name == "RankLLM" else "")
    first = {"RankLLM": "q1 Q0 d1 1", "Cohere": "1 "}.get(name, "restore a deleted file")
    assert first in shown.splitlines()[0]
    if name == "RankGPT":
        assert shown.splitlines()[-1] == "2 2"
        assert found["ranking"].indices == [1, 0, 2]


def test_ours_is_no_longer_than_theirs_by_more_than_a_few_lines():
    for name, part in sections(COMING)[1].items():
        theirs = re.split(rf"^## {name}$", read(COMING), flags=re.MULTILINE)[1].split("## ")[0]
        code = re.findall(r"^```py\n(.*?)^```", theirs, re.DOTALL | re.MULTILINE)
        compile(code[0], f"theirs, {name}", "exec")
        assert len(part[0].splitlines()) <= max(10, len(code[0].splitlines())), name


def test_methods_choose_what_the_table_says(here, capsys):
    found = run(blocks(DOCS / "methods.md"), "methods.md", {})
    shown = capsys.readouterr().out.splitlines()
    points = " | ".join(f"{value:.1f}" for value in found["choice"].ndcg)
    row = f"3 rounds, 160 reads | `{found['choice'].name}` | 8 | 3 | 160 | {points} |"
    assert shown[0].startswith("TopDown() 8")
    assert row in read(DOCS / "methods.md")


def test_batch_jobs_run_against_a_provider(here, monkeypatch):
    monkeypatch.setenv("BATCH_KEY", KEY)
    monkeypatch.setattr("dspy_rerank.batch.job.time.sleep", lambda seconds: None)
    (here / "queries.jsonl").write_text(lines(2, documents=6))
    grades = {f"query {q} passage {d}": grade(q, d) for q in range(2) for d in range(6)}
    names = {"dr": dr, "reranker": dr.TopDown(dr.ListwiseJudge())}
    with BatchServer(grades) as server:
        price = "".join(f"\n      {name}: {value:f}" for name, value in PRICE.items())
        (here / "litellm.yaml").write_text(
            "model_list:\n  - model_name: judge\n    litellm_params:\n      model: openai/m\n"
            f"      api_base: {server.base_url}\n      api_key: os.environ/BATCH_KEY{price}\n"
        )
        run(blocks(DOCS / "batch.md"), "batch.md", names)
        assert dr.batch.resume("job").status().ranked == 2
    best = {q: max(range(6), key=lambda d: grade(q, d)) for q in range(2)}
    firsts = [line.split()[2] for line in read(here / "run.trec").splitlines() if " 1 " in line]
    assert firsts == [f"d{q}-{d}" for q, d in best.items()]


def test_decision_models_run_on_a_decision_client(here, monkeypatch, capsys):
    """The configuration is the page's own; the client behind it answers by shared words."""

    def answer(inputs, question):
        known = SharedWords(inputs["query"])[inputs["passage"]]
        masses = {level: 0.1 + (level == known) for level in range(4)}
        total = sum(masses.values())
        return {"probabilities": {k: v / total for k, v in masses.items()}, "confidence": 0.5}

    monkeypatch.setenv("TYPESAFE_API_KEY", "no key")
    (yaml,) = blocks(DOCS / "decision-models.md", "yaml")
    (here / "litellm.yaml").write_text(yaml)
    monkeypatch.setattr(dr.models, "get", lambda name: Saved(answer))
    run(blocks(DOCS / "decision-models.md"), "decision-models.md", {})
    assert dr.load("reranker.json").card["optimizer"] == "ReAnchor"
    assert capsys.readouterr().out.startswith("{")


# What is generated


def test_the_reference_is_up_to_date(generated):
    page = generated("_api").page()
    assert page == read(DOCS / "api.md"), "run: python docs/_api.py"


def test_the_reference_has_every_public_name_with_a_docstring(generated):
    page = generated("_api").page()
    modules = {"dr": dr} | {f"dr.{n}": getattr(dr, n) for n in ("optimizers", "datasets", "models")}
    for prefix, module in (modules | {"dr.testing": dr.testing}).items():
        for name in module.__all__:
            if not isinstance(getattr(module, name), type(dr)):
                entry = page.split(f"\n### {prefix}.{name}\n\n")[1].split("\n### ")[0]
                code, _, said = entry.partition("\n\n")
                assert name in code, name
                assert said.strip(), f"{prefix}.{name} has no docstring"


def test_the_tables_of_methods_are_up_to_date(generated):
    text = read(DOCS / "methods.md")
    assert generated("_methods").page(text) == text, "run: python docs/_methods.py"


# What leads elsewhere


def commands(path):
    """The lines of code that call dspy-rerank, without comments, pipes and what cron needs."""
    for line in read(path).splitlines():
        if (line.startswith("    ") and "dspy-rerank " in line) or line.startswith("dspy-rerank "):
            after = line.partition("dspy-rerank ")[2]
            yield re.split(r"\s(?:#|\||&&|>)\s?", after)[0]


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_commands_have_known_options(path, capsys):
    for command in commands(path):
        try:
            parser().parse_args(shlex.split(command))
        except SystemExit:
            pytest.fail(f"dspy-rerank {command}: {capsys.readouterr().err}")


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_extras_exist(path):
    extras = tomllib.loads(read(ROOT / "pyproject.toml"))["project"]["optional-dependencies"]
    for named in re.findall(r"(?:dspy-rerank|\.)\[([a-z,-]+)\]", read(path)):
        assert set(named.split(",")) <= set(extras), path


def anchors(path):
    """The anchors of a page's headings, as GitHub makes them."""
    found = []
    for heading in re.findall(r"^#+ (.+)$", read(path), re.MULTILINE):
        anchor = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.append(f"{anchor}-{n}" if (n := sum(a == anchor for a in found)) else anchor)
    return set(found)


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    text = re.sub(r"^```.*?^```", "", read(path), flags=re.DOTALL | re.MULTILINE)
    for link in re.findall(r"\]\((?!https?:)([^)\s]*)\)", text):
        file, _, anchor = link.partition("#")
        target = (path.parent / file) if file else path
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_the_index_has_every_page():
    linked = set(re.findall(r"\(([\w-]+\.md)\)", read(DOCS / "README.md")))
    assert linked == {page.name for page in PAGES} - {"README.md"}
