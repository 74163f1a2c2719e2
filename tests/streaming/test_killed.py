"""Runs that are killed or interrupted: nothing that was reported is lost or ranked again."""

import collections
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

PROCESS = Path(__file__).with_name("running_process.py")
COUNT = 120


def command(path, hangs_from=COUNT):
    return [sys.executable, str(PROCESS), str(path), str(COUNT), str(hangs_from)]


def started(path):
    """A run that does not come to its end."""
    given = command(path, hangs_from=COUNT // 2)
    return subprocess.Popen(given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def asked_and_done(lines):
    asked = [line.split()[1] for line in lines if line.startswith("asked")]
    return asked, sum(line.startswith("done") for line in lines)


def written(path):
    return [json.loads(line)["query"] for line in path.read_bytes().split(b"\n")[:-1]]


def stopped_after(path, reported, by):
    """The lines of a process that is sent a signal once so many queries are reported."""
    lines, done = [], 0
    with started(path) as process:
        for line in process.stdout:
            lines.append(line)
            done += line.startswith("done")
            if done == reported:
                process.send_signal(by)
                reported = -1
        return lines, process.wait()


def test_kill_9_loses_and_repeats_nothing_that_was_reported(tmp_path):
    path = tmp_path / "out.jsonl"
    lines, code = stopped_after(path, 30, signal.SIGKILL)
    assert code == -signal.SIGKILL
    _, done = asked_and_done(lines)
    safe = written(path)
    assert 30 <= done <= len(safe) < COUNT
    with path.open("ab") as file:
        file.write(b'{"id": "torn')
    again = subprocess.run(command(path), capture_output=True, text=True, check=True)
    asked, _ = asked_and_done(again.stdout.splitlines())
    assert not set(asked) & set(safe)
    assert len(asked) == COUNT - len(safe)
    counts = collections.Counter(written(path))
    assert counts == {f"query-{number}": 1 for number in range(COUNT)}
    assert f"{len(safe)} done before" in again.stdout


@pytest.mark.skipif(sys.platform == "win32", reason="no interrupt to send")
def test_an_interrupt_leaves_a_whole_file(tmp_path):
    path = tmp_path / "out.jsonl"
    _, code = stopped_after(path, 20, signal.SIGINT)
    assert code != 0
    assert path.read_bytes().endswith(b"\n")
    assert 20 <= len(set(written(path))) < COUNT
