"""Many rankings of 50 candidates on two local Ray workers, against two processes without Ray.

A scripted model in each process answers at once, so what is measured is our own work and Ray's.
Each ranking is one question, a window of all 50. Before and after the run on Ray, two processes
that have nothing to do with each other rank the same queries, half each, and write lines without
waiting for the disk. Two thirds into the run one worker is killed with -9.

    python benchmarks/ray_data.py                       # 100,000 rankings
    python benchmarks/ray_data.py --rankings 20000 --alone 4000

The file is not named ray.py: scripts beside it would import it in place of Ray.
"""

import argparse
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_AUTH_MODE="disabled")
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import dspy
import pyarrow as pa
import pyarrow.parquet as pq

import dspy_rerank as dr
from dspy_rerank.integrations import ray as on_ray
from dspy_rerank.streaming import Summary
from dspy_rerank.testing import scripted_lm

CANDIDATES = 50
GROUP = 500
WORKERS = 2


class Forgetful(list[str]):
    """Keeps no prompt."""

    def append(self, _: str) -> None:
        """Forget it."""


def model(log: Path) -> dspy.LM:
    """Turns the order round, and notes each query that it was asked about, by process."""
    asked = os.open(log / f"{os.getpid()}.asked", os.O_CREAT | os.O_APPEND | os.O_WRONLY)

    def say(prompt: str) -> str:
        os.write(asked, re.findall(r"query-(\d+)", prompt)[-1].encode() + b"\n")
        labels = {int(label) for label in re.findall(r"\[(\d+)\]", prompt)}
        return " > ".join(f"[{label}]" for label in sorted(labels, reverse=True))

    lm = scripted_lm(say)
    lm.engine.prompts = Forgetful()
    return lm


def program() -> Any:
    return dr.TopDown(dr.ListwiseJudge(), window=CANDIDATES)


def write_queries(path: Path, count: int) -> None:
    """A Parquet file of distinct queries, each with candidates of its own."""
    schema = pa.schema(
        [("id", pa.string()), ("query", pa.string()), ("documents", pa.list_(pa.string()))]
    )
    with pq.ParquetWriter(path, schema) as writer:
        for begin in range(0, count, GROUP):
            rows = [row(number) for number in range(begin, min(begin + GROUP, count))]
            writer.write_table(pa.Table.from_pylist(rows, schema))


def row(number: int) -> dict[str, Any]:
    texts = [f"Passage {place} of {number} says a little about it." for place in range(CANDIDATES)]
    return {"id": str(number), "query": f"What is query-{number} about?", "documents": texts}


def alone(path: Path, part: int, count: int, log: Path) -> None:
    """One process without Ray: its share of the first queries, results as plain lines."""
    dspy.configure_cache(enable_disk_cache=False, enable_memory_cache=False)
    results = dr.stream(program(), share(path, part, count), lm=model(log))
    begun, done = 0.0, 0
    with open(log / f"{os.getpid()}.jsonl", "w", encoding="utf-8") as file:
        for result in results:
            begun = begun or time.time()
            assert result.ranking is not None
            file.write(json.dumps(result.ranking.to_dict()["ranking"]) + "\n")
            done += 1
    print(json.dumps({"begun": begun, "ended": time.time(), "done": done}))


def share(path: Path, part: int, count: int) -> Iterator[dict[str, Any]]:
    file = pq.ParquetFile(path)
    for group in range(min(count // GROUP, file.num_row_groups)):
        if group % WORKERS == part:
            for each in file.read_row_group(group).to_pylist():
                yield {"query": each["query"], "documents": each["documents"]}


def side_by_side(path: Path, count: int, folder: Path) -> float:
    """Rankings a second of processes that know nothing of each other, from the first result on."""
    log = Path(tempfile.mkdtemp(dir=folder))
    command = [sys.executable, __file__, "--log", str(log), "--data", str(path)]
    processes = [
        subprocess.Popen(
            [*command, "--part", str(part), "--alone", str(count)],
            stdout=subprocess.PIPE, text=True,
        )
        for part in range(WORKERS)
    ]  # fmt: skip
    said = [json.loads(process.communicate()[0]) for process in processes]
    took = max(one["ended"] for one in said) - min(one["begun"] for one in said)
    return sum(one["done"] for one in said) / took


@dataclass
class Watch:
    """Follows a run: how far it is, how large its workers are; kills one of them on the way."""

    out: Path
    log: Path
    kill_at: int
    begun: float = field(default_factory=time.time)
    times: list[tuple[float, int]] = field(default_factory=list)
    memory: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    killed: int = 0
    killed_at: tuple[float, int] = (0.0, 0)
    safe: set[str] = field(default_factory=set)

    def __call__(self, summary: Summary) -> None:
        """Note one report."""
        self.times.append((time.time(), summary.ranked))
        for pid in self.workers():
            self.memory[pid].append(resident(pid))
        if summary.ranked >= self.kill_at and not self.killed:
            self.killed, self.killed_at = self.workers()[0], self.times[-1]
            self.safe = {row["id"] for row in on_ray.read_ranked(self.out)}
            assert len(self.safe) >= summary.ranked, "reported more than is safe"
            os.kill(self.killed, signal.SIGKILL)

    def workers(self) -> list[int]:
        """Processes that have asked something and are alive."""
        pids = [int(path.stem) for path in self.log.glob("*.asked") if path.stat().st_size]
        return [pid for pid in pids if resident(pid)]

    def rate(self, until: float) -> float:
        """Rankings a second from the first report on, so without the start of Ray."""
        inside = [each for each in self.times if each[0] <= until]
        (first, before), (last, after) = inside[0], inside[-1]
        return (after - before) / (last - first)


def resident(pid: int) -> float:
    """Megabytes of a process in memory, without pages of Ray's store; 0 where it is gone."""
    try:
        _, all_of_it, shared, *_ = map(int, Path(f"/proc/{pid}/statm").read_text().split())
        return (all_of_it - shared) * 4096 / 2**20
    except (OSError, IndexError):
        return 0.0


def on_two_workers(path: Path, folder: Path, count: int, batch: int) -> Watch:
    import ray

    log = folder / "asked"
    log.mkdir()
    ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False,
             object_store_memory=256 << 20)  # fmt: skip
    ray.data.DataContext.get_current().enable_progress_bars = False
    watch = Watch(folder / "out", log, count * 2 // 3)
    summary = on_ray.rerank(
        str(path), watch.out, program(), lm=lambda: model(log), workers=WORKERS, batch=batch,
        report=watch,
    )  # fmt: skip
    print(f"run on Ray: {summary}")
    ray.shutdown()
    return watch


def counted(watch: Watch, count: int) -> dict[str, Any]:
    """What was asked and written, query by query."""
    written = Counter(row["id"] for row in on_ray.read_ranked(watch.out))
    logs = [path.read_text().split() for path in watch.log.glob("*.asked")]
    asked = Counter(number for log in logs for number in log)
    return {
        "queries lost": count - len(written),
        "queries written twice": sum(n > 1 for n in written.values()),
        "safe when the worker was killed": len(watch.safe),
        "of those asked about again": sum(asked[number] > 1 for number in watch.safe),
        "under way in it, asked again": sum(n > 1 for n in asked.values()),
    }


def main(arguments: argparse.Namespace) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder, count = Path(name), arguments.rankings
        path = folder / "queries.parquet"
        write_queries(path, count)
        before = side_by_side(path, arguments.alone, folder)
        watch = on_two_workers(path, folder, count, arguments.batch)
        after = side_by_side(path, arguments.alone, folder)
        single = (before + after) / 2
        until = {"before the kill": watch.killed_at[0], "kill and restart included": time.time()}
        rows = {
            "rankings": f"{count:,} of {CANDIDATES} candidates, {WORKERS} workers",
            "two processes without Ray": f"{before:.1f} and {after:.1f} rankings/s",
            **{f"on Ray, {n}": f"{watch.rate(t):.1f} rankings/s, ratio "
               f"{watch.rate(t) / single:.2f}" for n, t in until.items()},
            "Ray, until the first report": f"{watch.times[0][0] - watch.begun:.0f} s",
            "Ray, whole run": f"{watch.times[-1][0] - watch.begun:.0f} s",
            **{f"worker {pid}{' (killed)' * (pid == watch.killed)}": quarters(seen)
               for pid, seen in watch.memory.items()},
        }  # fmt: skip
        counts = counted(watch, count)
        for title, value in {**rows, **counts}.items():
            print(f"{title:<36}{value}")
        lost = counts["queries lost"] + counts["of those asked about again"]
        return bool(lost + counts["queries written twice"])


def quarters(seen: list[float]) -> str:
    part = max(1, len(seen) // 4)
    first, last = seen[:part], seen[-part:]
    return f"first quarter {sum(first) / part:.1f} MB, last quarter {sum(last) / part:.1f} MB"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rankings", type=int, default=100_000)
    parser.add_argument("--alone", type=int, default=10_000, help="rankings without Ray, each time")
    parser.add_argument("--batch", type=int, default=200)
    parser.add_argument("--part", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--data", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.part is not None:
        alone(given.data, given.part, given.alone, given.log)
        sys.exit(0)
    sys.exit(main(given))
