"""What a long run says of itself, on a terminal and in a log."""

from dataclasses import replace
from types import SimpleNamespace

import dspy
import pytest

import dspy_rerank as dr
from dspy_rerank.cli._progress import EVERY, Lines, progress, run_progress
from dspy_rerank.cli._show import unlogged
from dspy_rerank.cli.compiling import Live
from dspy_rerank.optimizers import RerankerSearch
from dspy_rerank.optimizers.counting import counting
from dspy_rerank.testing import ScriptedEngine, scripted_lm
from tests.optimizers.builders import labelled, skilled


def test_a_log_has_a_line_a_minute_and_none_for_a_short_run(capsys):
    now = [0.0]
    lines = Lines(lambda: now[0])
    for done, seconds in enumerate([EVERY - 1, EVERY, 2 * EVERY - 1, 2 * EVERY]):
        now[0] = seconds
        lines("compiling", done, 40 if done < 3 else None, " (7 new calls)")
        lines("uncompiled", done, 9)
    assert capsys.readouterr().err.splitlines() == [
        "compiling (7 new calls): 1 of 40", "uncompiled: 1 of 9",
        "compiling (7 new calls)", "uncompiled: 3 of 9",
    ]  # fmt: skip


@pytest.mark.parametrize("closed", [True, False], ids=["closed", "none"])
def test_a_log_that_nobody_reads_any_more_stops_no_run(closed, monkeypatch, tmp_path):
    stream = open(tmp_path / "log", "w", encoding="utf-8")
    stream.close()
    monkeypatch.setattr("sys.stderr", stream if closed else None)
    monkeypatch.setattr("dspy_rerank.cli._progress.EVERY", 0.0)
    Lines()("compiling", 1, 2)


def test_once_test_queries_are_ranked_compiling_is_silent():
    told = []
    live = Live(lambda *said: told.append(said[:2]))
    live.measured("uncompiled", 1, 9)
    live.called(SimpleNamespace(failed=0, usage=dr.types.Usage(calls=3)))
    assert told == [("uncompiled", 1)]


def test_a_run_of_many_queries_says_in_a_log_how_far_it_is(capsys, monkeypatch):
    monkeypatch.setattr("dspy_rerank.cli._progress.EVERY", 0.0)
    summary = SimpleNamespace(
        done=3, skipped=0, failed=0, degraded=0, unknowns=0, usage=dr.types.Usage(calls=9)
    )
    with run_progress(lambda: 12) as report:
        assert report is not None
        report(summary)  # pyright: ignore[reportArgumentType]
    said = capsys.readouterr().err
    assert said.startswith("ranking (")
    assert "9 calls" in said
    assert said.endswith("left): 3 of 12\n")


def test_calls_that_a_cache_answers_and_those_under_way_are_not_told_as_new():
    told = []
    live = Live(lambda *said: told.append(said[3]))
    used = dr.types.Usage(calls=5, cached_calls=4)
    live.called(SimpleNamespace(calls=13, failed=0, usage=used))
    live.called(SimpleNamespace(calls=13, failed=1, usage=used))
    live.called(SimpleNamespace(calls=13, failed=0, usage=replace(used, cost=0.0123)))
    assert told == [" (1 new call)", " (2 new calls)", " (1 new call, $0.0123)"]


def test_quiet_is_quiet(capsys, monkeypatch):
    monkeypatch.setattr("dspy_rerank.cli._progress.EVERY", 0.0)
    with progress(quiet=True) as tell, run_progress(lambda: 12, quiet=True) as report:
        tell("compiling", 1, 2)
    assert report is None
    assert capsys.readouterr() == ("", "")


def test_compiling_tells_of_every_call_and_of_settings_that_take_none():
    told = []
    live = Live(lambda *said: told.append(said))
    lm = scripted_lm(skilled)
    with counting(tell=live.called):
        RerankerSearch(trials=6, demos=(), lm=lm, progress=live.tried).compile(
            dr.ScoreSort(dr.PointwiseJudge()), trainset=labelled(4), valset=labelled(4, seed=1)
        )
    calls = len(lm.engine.prompts)
    assert told[0][:3] == ("compiling", 0, None)
    assert len(told) == calls + 6
    what, done, trials, note = told[-1]
    assert (what, done, trials) == ("compiling", 6, 6)
    assert note.startswith(" (best ")
    assert note.endswith(f", {calls} new calls)")


class Cut(ScriptedEngine):
    """A model whose answers reach their limit."""

    def complete(self, request):
        """An answer that ends where it must."""
        return replace(super().complete(request), finish_reason="length")


def test_answers_that_were_cut_short_are_not_logged_one_by_one(caplog):
    lm = dspy.LM("scripted/model", engine=Cut("2"), cache=False)
    with unlogged(), caplog.at_level("WARNING"):
        lm("1 + 1?")
    assert "truncated" not in caplog.text
    lm("1 + 2?")
    assert "truncated" in caplog.text
