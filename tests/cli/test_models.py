"""``dspy-rerank models`` over a LiteLLM configuration, with servers on loopback."""

import json
import math
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from dspy_rerank.cli import main
from dspy_rerank.models import aliases

CANARY = "sk-canary-1234567890"
TOP = [{"token": "A", "logprob": math.log(0.9)}, {"token": "B", "logprob": math.log(0.1)}]
ANSWER = {
    "choices": [
        {
            "index": 0,
            "finish_reason": "stop",
            "message": {"role": "assistant", "content": "A"},
            "logprobs": {"content": [{**TOP[0], "top_logprobs": TOP}]},
        }
    ],
    "usage": {"prompt_tokens": 5, "completion_tokens": 1, "total_tokens": 6},
}


@pytest.fixture(autouse=True)
def no_aliases():
    aliases.forget()
    yield
    aliases.forget()


@contextmanager
def server(status, body):
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            content = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()
    http.server_close()


@pytest.fixture
def config(tmp_path):
    broken = {"error": {"message": f"no such key {CANARY}"}}
    with server(200, ANSWER) as good, server(401, broken) as bad:
        entries = [
            ("judge", "openai/m", {"api_base": good, "api_key": CANARY, "rpm": 60}),
            ("wrong", "openai/n", {"api_base": bad, "api_key": CANARY}),
            ("unset", "openai/o", {"api_key": "os.environ/NO_SUCH_KEY_HERE"}),
        ]
        content = [
            {"model_name": name, "litellm_params": {"model": model, **params}}
            for name, model, params in entries
        ]
        path = tmp_path / "litellm.yaml"
        path.write_text(yaml.safe_dump({"model_list": content}))
        yield str(path)


def run(capsys, *arguments):
    code = main(["models", *arguments])
    printed = capsys.readouterr()
    assert CANARY not in printed.out + printed.err
    return code, printed.out, printed.err


def test_aliases_are_listed_without_keys_or_calls(capsys, config):
    code, out, _ = run(capsys, "list", "--config", config, "--json")
    assert code == 0
    rows = {row["alias"]: row for row in json.loads(out)["aliases"]}
    assert list(rows) == ["judge", "wrong", "unset"]
    assert rows["judge"]["models"] == ["openai/m"]
    assert rows["judge"]["rpm"] == 60


def test_a_table_of_aliases(capsys, config):
    code, out, _ = run(capsys, "list", "--config", config)
    assert code == 0
    assert "judge" in out
    assert "openai/m" in out


def test_one_alias_is_listed_alone(capsys, config):
    code, out, _ = run(capsys, "list", "wrong", "--config", config, "--json")
    assert (code, [row["alias"] for row in json.loads(out)["aliases"]]) == (0, ["wrong"])


def test_a_name_that_fits_a_pattern_is_listed_with_its_model(capsys, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("model_list: [{model_name: 'a/*', litellm_params: {model: 'openai/*'}}]")
    code, out, _ = run(capsys, "list", "a/b", "--config", str(path), "--json")
    assert (code, json.loads(out)["aliases"][0]["models"]) == (0, ["openai/b"])


@pytest.mark.parametrize(
    ("options", "says"),
    [((), "expected --config FILE"), (("--config", "CONFIG"), "the file has judge, wrong, unset")],
)
def test_a_name_that_cannot_be_listed_is_refused(capsys, config, options, says):
    given = [config if option == "CONFIG" else option for option in options]
    code, _, err = run(capsys, "list", "nobody", *given)
    assert code != 0
    assert says in err


def test_each_alias_is_checked_and_a_failure_is_the_exit_code(capsys, config):
    code, out, _ = run(capsys, "check", "--config", config)
    assert code == 1
    lines = dict(line.split(": ", 1) for line in out.strip().splitlines())
    assert lines["judge"].startswith("answered 'A'")
    assert lines["wrong"].startswith("FAILED: ")
    assert "401" in lines["wrong"]
    assert "NO_SUCH_KEY_HERE is not set" in lines["unset"]


def test_one_alias_alone(capsys, config):
    code, out, _ = run(capsys, "check", "judge", "--config", config)
    assert code == 0
    assert len(out.strip().splitlines()) == 1


ORDERS = [
    "probe judge --config F --json",
    "probe --config F judge --json",
    "probe --json judge --config F",
    "probe --config F --json judge",
    "--config F probe judge --json",
    "--json probe --config F judge",
    "--json --config F probe judge",
]


@pytest.mark.parametrize("order", ORDERS)
def test_options_may_stand_anywhere(capsys, config, order):
    code, out, _ = run(capsys, *(config if word == "F" else word for word in order.split()))
    assert code == 0
    assert [told["name"] for told in json.loads(out)] == ["judge"]


@pytest.mark.parametrize("action", ["list", "check", "probe"])
def test_what_is_too_much_is_said_with_the_usage_of_models(capsys, action):
    for arguments, extra in (([action, "one", "two"], "two"), ([action, "--nope"], "--nope")):
        with pytest.raises(SystemExit) as stop:
            main(["models", *arguments])
        printed = capsys.readouterr()
        assert (stop.value.code, printed.out) == (2, "")
        assert printed.err.startswith("usage: dspy-rerank models [-h] [--config FILE] [--json]")
        assert printed.err.endswith(f"unrecognized arguments: {extra}\n")


def test_a_probe_tells_what_came_with_the_answer(capsys, config):
    code, out, _ = run(capsys, "probe", "judge", "--config", config, "--json")
    assert code == 0
    (told,) = json.loads(out)
    assert (told["name"], told["logprobs"], told["top"]) == ("judge", True, 2)
    assert told["confidence"] == pytest.approx(0.9)


def test_a_probe_as_a_table(capsys, config):
    code, out, _ = run(capsys, "probe", "judge", "--config", config)
    assert code == 0
    assert "logprobs" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["check", "nobody"], "no alias 'nobody'; the file has judge, wrong, unset"),
        (["list"], "no such file"),
    ],
)
def test_what_is_not_there_is_exit_code_2(capsys, config, arguments, says):
    path = config if arguments[0] == "check" else "/no/such.yaml"
    code, _, err = run(capsys, *arguments, "--config", path)
    assert code == 2
    assert says in err


def written(folder, **sections):
    entries = [{"model_name": name, "litellm_params": {"model": model, "rpm": 60,
                "max_parallel_requests": 4}} for name, model in
               (("judge", "openai/m"), ("openai/*", "openai/*"))]  # fmt: skip
    path = folder / "litellm.yaml"
    path.write_text(yaml.safe_dump({"model_list": entries, **sections}))
    return str(path)


def test_what_a_file_says_in_vain_is_a_warning_and_no_failure(capsys, tmp_path, caplog):
    config = written(tmp_path, litellm_settings={"callbacks": ["x"]}, guardrails=[])
    code, out, _ = run(capsys, "list", "--config", config, "--json")
    told = json.loads(out)
    assert code == 0
    assert told["unused"] == ["guardrails", "litellm_settings.callbacks"]
    assert "not used here: guardrails, litellm_settings.callbacks" in caplog.text
    assert told["aliases"][0]["at_once"] == 4


def test_patterns_are_listed_but_not_asked(capsys, config, tmp_path):
    content = yaml.safe_load(Path(config).read_text())
    content["model_list"].append({"model_name": "x/*", "litellm_params": {"model": "openai/*"}})
    path = tmp_path / "patterns.yaml"
    path.write_text(yaml.safe_dump(content))
    _, out, _ = run(capsys, "list", "--config", str(path), "--json")
    assert "x/*" in [row["alias"] for row in json.loads(out)["aliases"]]
    _, out, err = run(capsys, "check", "--config", str(path))
    assert "x/*" not in out
    assert "x/* is a pattern, which is not asked" in err


def test_deployments_are_told_apart_by_where_they_are_and_not_by_what_an_address_hides(
    capsys, tmp_path
):
    places = ["http://one:8000/v1", f"https://me:{CANARY}@two/v1?key={CANARY}", "os.environ/URL"]
    entries = [{"model_name": "judge", "litellm_params": {"model": "openai/m", "api_base": place}}
               for place in places]  # fmt: skip
    path = tmp_path / "litellm.yaml"
    path.write_text(yaml.safe_dump({"model_list": entries}))
    _, out, _ = run(capsys, "list", "--config", str(path))
    assert "openai/m (one:8000), openai/m (two), openai/m (os.environ/URL)" in out


def test_a_bad_file_is_one_line_and_exit_code_2(capsys, tmp_path):
    fallbacks = {"fallbacks": [{"judge": ["lost"]}]}
    config = written(tmp_path, litellm_settings=fallbacks)
    for action in ("list", "check", "probe"):
        code, out, err = run(capsys, action, "--config", config)
        assert (code, out) == (2, "")
        assert err.strip().endswith("fallbacks name 'lost', which model_list does not have")
        assert len(err.strip().splitlines()) == 1


def test_a_probe_shows_schema_prompt_cache_and_price(capsys, config):
    code, out, _ = run(capsys, "probe", "judge", "--config", config, "--json")
    (told,) = json.loads(out)
    assert code == 0
    assert told["json_schema"] is False
    assert "cached_tokens" in told
    _, table, _ = run(capsys, "probe", "judge", "--config", config)
    assert "prompt cache" in table
