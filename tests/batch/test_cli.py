"""``dspy-rerank batch``: what it says, and how it refuses."""

import json

import pytest

import dspy_rerank as dr
from dspy_rerank.cli import main
from tests.batch.data import PRICE
from tests.batch.running import as_run, live
from tests.batch.server import BatchServer


@pytest.fixture
def program(tmp_path):
    return str(dr.save(dr.TopDown(dr.ListwiseJudge(), window=4), tmp_path / "p.json"))


def arguments(tmp_path, few, path, *more):
    return ["batch", "submit", str(few), "--lm", "judge", "--config", str(path),
            "--state", str(tmp_path / "s"), *more]  # fmt: skip


def test_a_job_from_submission_to_a_run(tmp_path, few, config, grades, program, capsys):
    with BatchServer(grades, looks=2) as server:
        path = config(server, **PRICE)
        assert main(arguments(tmp_path, few, path, "--program", program)) == 0
        assert "0 of 2 queries ranked" in capsys.readouterr().out
        assert main(["batch", "status", "--state", str(tmp_path / "s"), "--json"]) == 0
        status = json.loads(capsys.readouterr().out)
        assert (status["open"], status["ready"], status["finished"]) == (1, 0, False)
        out = tmp_path / "run.trec"
        collect = ["batch", "collect", "--state", str(tmp_path / "s"), "--out", str(out)]
        assert main(collect) == 0
        assert "next: dspy-rerank batch collect" in capsys.readouterr().out
        assert not out.exists()
        assert main([*collect, "--wait", "--every", "0"]) == 0
        said = capsys.readouterr().out
        assert "2 of 2 queries ranked" in said
        assert f"written to {out}" in said
        assert out.read_text() == as_run(live(few, path, dr.load(program)))


def test_the_same_submission_again_sends_nothing_more(tmp_path, few, config, grades, capsys):
    with BatchServer(grades, looks=9) as server:
        path = config(server)
        for _ in range(3):
            assert main(arguments(tmp_path, few, path)) == 0
        assert len(server.batches) == 1


def test_a_round_beyond_the_limit_is_refused_with_2(tmp_path, few, config, grades, capsys):
    with BatchServer(grades) as server:
        path = config(server, **PRICE)
        assert main(arguments(tmp_path, few, path, "--max-cost", "0.0001")) == 2
        assert "Nothing was sent; allow more with --max-cost" in capsys.readouterr().err
        collect = ["batch", "collect", "--state", str(tmp_path / "s"), "--max-cost", "1"]
        assert main(collect) == 0
        assert len(server.batches) == 1


def test_degraded_queries_are_told(tmp_path, few, config, grades, capsys):
    lost = {"response": None, "error": {"message": "lost in the fire"}}
    with BatchServer(grades, line=lambda body, before: lost) as server:
        assert main(arguments(tmp_path, few, config(server), "--attempts", "1")) == 0
        collect = ["batch", "collect", "--state", str(tmp_path / "s"), "--wait", "--every", "0"]
        assert main(collect) == 0
        said = capsys.readouterr()
    assert "2 of them degraded" in said.out
    assert "lost in the fire" in said.err


def test_a_provider_that_refuses_ends_with_1(tmp_path, few, config, grades, capsys):
    said = (403, {"error": {"message": "not for you"}})
    with BatchServer(grades, reply=lambda number, what: said) as server:
        assert main(arguments(tmp_path, few, config(server))) == 1
    assert "not for you" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--lm", "nobody"], "there is no model 'nobody'; aliases are: judge"),
        (["--lm", "anthropic/claude"], "providers that do: openai, azure"),
        (["--program", "nothing.json"], "there is no such file"),
    ],
)
def test_bad_input_ends_with_2(tmp_path, few, config, grades, capsys, more, why):
    with BatchServer(grades) as server:
        assert main(arguments(tmp_path, few, config(server), *more)) == 2
        assert server.log == []
    assert why in capsys.readouterr().err
    assert not (tmp_path / "s" / "job.sqlite").exists()


def test_a_missing_file_or_job_ends_with_2(tmp_path, capsys):
    submit = ["batch", "submit", str(tmp_path / "no"), "--lm", "openai/m", "--state", "s"]
    assert main(submit) == 2
    assert "no such file" in capsys.readouterr().err
    assert main(["batch", "status", "--state", str(tmp_path)]) == 2
    assert "no batch job is here" in capsys.readouterr().err


def test_a_round_whose_upload_failed_is_not_told_as_sent(tmp_path, few, config, grades, capsys):
    down = [True]

    def reply(number, asked):
        return (401, {"error": {"message": "no"}}) if down[0] else None

    with BatchServer(grades, reply=reply) as server:
        assert main(arguments(tmp_path, few, config(server))) != 0
        capsys.readouterr()
        status = ["batch", "status", "--state", str(tmp_path / "s")]
        assert main([*status, "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert (told["batches"], told["unsent"], told["open"], told["rounds"]) == (0, 1, 0, 0)
        assert main(status) == 0
        assert "round 0; batches: 0 sent, 1 not sent yet, 0 open" in capsys.readouterr().out
        down[0] = False
        assert main(["batch", "collect", "--state", str(tmp_path / "s")]) == 0
        assert "round 1; batches: 1 sent, " in capsys.readouterr().out
