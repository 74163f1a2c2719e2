"""One process of a search that several share; run as a script by the tests of storages.

Arguments: storage, file to note every paid prompt in, and JSON options of the search; ``die`` is
the number of prompts after which the process is killed as by ``kill -9``, ``meet`` the number of
processes that wait for each other before they search, and ``follow`` makes one wait until another
has paid for something; that one is not killed before it is followed.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

import dspy_rerank as dr
from dspy_rerank.optimizers import RerankerSearch
from dspy_rerank.testing import scripted_lm
from tests.optimizers.builders import MAGIC, labelled, skilled


def until(condition):
    """Wait for another process: the start of an interpreter takes its time."""
    late = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < late, "the other process never came"
        time.sleep(0.01)


def meet(notes, processes):
    """Wait until so many processes are here."""
    Path(f"{notes}.{os.getpid()}").touch()
    until(lambda: len(list(Path(notes).parent.glob(f"{Path(notes).name}.*"))) >= processes)


def main(storage, notes, options):
    die, latency = options.pop("die", None), options.pop("latency", 0.0)
    together, followed = options.pop("meet", 1), Path(f"{notes}-followed")
    meet(notes, together)
    if options.pop("follow", False):
        until(Path(notes).exists)
        followed.touch()
    asked = []

    def answer(prompt):
        asked.append(prompt)
        with Path(notes).open("a") as stream:
            stream.write(json.dumps(prompt) + "\n")
        if die is not None and len(asked) > die:
            until(lambda: together == 1 or followed.exists())
            os.kill(os.getpid(), signal.SIGKILL)
        return skilled(prompt)

    search = RerankerSearch(
        instructions=[MAGIC], demos=(2,), storage=storage, lm=scripted_lm(answer, latency=latency),
        **options,
    )  # fmt: skip
    program = search.compile(
        dr.ScoreSort(dr.PointwiseJudge(), concurrency=1),
        trainset=labelled(8),
        valset=labelled(4, seed=1),
    )
    sys.stdout.write(json.dumps(program.card))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], json.loads(sys.argv[3]))
