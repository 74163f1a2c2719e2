"""``dspy-rerank serve``: what is served, and what is refused in one line."""

import json
import subprocess
import sys

import dspy
import httpx
import pytest

import dspy_rerank as dr
from dspy_rerank import models, server
from dspy_rerank.cli import main
from dspy_rerank.testing import scripted_lm

KEY = "a-key-of-enough-characters"


@pytest.fixture
def served(monkeypatch):
    """What would have been served, instead of serving it."""
    calls = []

    def run(app, *, host, port, listening):
        calls.append({"app": app, "host": host, "port": port})
        listening(f"http://{host}:{port}")

    monkeypatch.setattr(server, "run", run)
    monkeypatch.setattr("dspy_rerank.server.logs.configure", lambda: None)
    monkeypatch.delenv("DSPY_RERANK_API_KEY", raising=False)
    yield calls
    models.aliases.forget()


@pytest.fixture
def files(tmp_path):
    """Two saved programs."""
    for name in ("a", "b"):
        dr.save(dr.ScoreSort(dr.PointwiseJudge(evidence="generate")), tmp_path / f"{name}.json")
    dspy.configure(lm=scripted_lm("2", model="scripted/x"))
    return tmp_path


def names(call):
    return list(call["app"].state.service.programs)


def test_programs_are_called_by_their_files_or_by_the_name_given(served, files, capsys):
    code = main(["serve", f"{files}/a.json", "--program", f"rerank-v3.5={files}/b.json"])
    assert code == 0
    assert names(served[0]) == ["a", "rerank-v3.5"]
    assert capsys.readouterr().out == (
        "serving a, rerank-v3.5 at http://127.0.0.1:8787 without a key; Ctrl-C stops\n"
    )


def test_json_says_where_for_programs(served, files, capsys, monkeypatch):
    monkeypatch.setenv("DSPY_RERANK_API_KEY", KEY)
    assert main(["serve", f"{files}/a.json", "--port", "0", "--host", "0.0.0.0", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "url": "http://0.0.0.0:0", "programs": ["a"], "key": True,
    }  # fmt: skip


def test_without_a_program_the_default_reranker_is_served(served, files):
    assert main(["serve"]) == 0
    program = served[0]["app"].state.service.programs.default
    assert program.name == "default"
    assert isinstance(program.reranker, dr.TopDown)
    assert program.model == "scripted/x"


def test_a_model_of_a_configuration_answers(served, files, tmp_path):
    config = tmp_path / "litellm.yaml"
    config.write_text(
        "model_list:\n- model_name: judge\n  litellm_params:\n"
        "    model: openai/some-model\n    api_base: http://127.0.0.1:9/v1\n"
    )
    assert main(["serve", f"{files}/a.json", "--config", str(config), "--lm", "judge"]) == 0
    assert "some-model" in served[0]["app"].state.service.programs.default.model


def test_limits_reach_the_service(served, files):
    options = ["--documents", "7", "--seconds", "1.5", "--queue", "0", "--calls", "9"]
    assert main(["serve", f"{files}/a.json", *options]) == 0
    limits = served[0]["app"].state.service.limits
    assert (limits.documents, limits.seconds, limits.queue, limits.calls) == (7, 1.5, 0, 9)


REFUSED = [
    (["nowhere.json"], "nowhere.json: there is no such file"),
    (["a.json", "a.json"], "two programs are called 'a'"),
    (["--program", "a.json"], "expected NAME=FILE"),
    (["--program", "../x=a.json"], "a program cannot be called '../x'"),
    (["--program", "=a.json"], "a program cannot be called ''"),
    (["a.json", "--host", "0.0.0.0"], "needs an API key: set the environment variable"),
    (["a.json", "--lm", "nope", "--config", "nowhere.yaml"], "nowhere.yaml"),
]


@pytest.mark.parametrize(("arguments", "said"), REFUSED)
def test_bad_input_is_one_line_and_code_2(served, files, capsys, monkeypatch, arguments, said):
    monkeypatch.chdir(files)
    assert main(["serve", *arguments]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert served == []


@pytest.mark.parametrize(
    "arguments",
    [["--port", "99999"], ["--port", "x"], ["--documents", "0"], ["--seconds", "-1"],
     ["--queue", "-1"], ["--seconds", "nan"]],
)  # fmt: skip
def test_bad_numbers_are_refused(served, capsys, arguments):
    with pytest.raises(SystemExit) as end:
        main(["serve", *arguments])
    assert end.value.code == 2


def test_a_short_key_is_refused_and_not_shown(served, files, capsys, monkeypatch):
    monkeypatch.setenv("MY_KEY", "hunter2")
    assert main(["serve", f"{files}/a.json", "--api-key-env", "MY_KEY"]) == 2
    error = capsys.readouterr().err
    assert "fewer than 16 characters" in error
    assert "hunter2" not in error


def test_without_the_extra_one_line_says_what_to_install(files):
    code = (
        "import sys\n"
        "sys.modules['uvicorn'] = None\n"
        "from dspy_rerank.cli import main\n"
        f"sys.exit(main(['serve', {str(files / 'a.json')!r}]))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "dspy-rerank: serving needs uvicorn: pip install 'dspy-rerank[serve]'\n"


def test_other_commands_do_not_import_the_service():
    code = (
        "import sys\n"
        "import dspy_rerank.cli._app as app\n"
        "app.parser()\n"
        "print(sorted({'fastapi', 'uvicorn', 'starlette', 'prometheus_client'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.local_model
def test_the_command_serves_the_embedded_model_and_ends_at_a_signal():
    if not models.available():
        pytest.skip("the embedded model is not installed")
    command = [sys.executable, "-m", "dspy_rerank.cli", "serve", "--port", "0", "--json"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None
        url = json.loads(running.stdout.readline())["url"]
        documents = ["Bananas are yellow.", "Paris is the capital of France."]
        body = {"query": "What is the capital of France?", "documents": documents}
        answer = httpx.post(f"{url}/v2/rerank", json=body, timeout=120).json()
        running.terminate()
        _, log = running.communicate(timeout=60)
    finally:
        running.kill()
    assert [result["index"] for result in answer["results"]] == [1, 0]
    assert answer["meta"]["dspy_rerank"]["relevance_score"] == "likelihood"
    assert running.returncode == 0
    assert all("Bananas" not in line for line in log.splitlines())
