"""One process of a search that several share; run as a script by the tests of storages.

Arguments: storage, file to note every paid prompt in, and JSON options of the search; ``die`` is
the number of prompts after which the process is killed as by ``kill -9``, and ``meet`` the number
of processes that wait for each other before they search.
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


def meet(notes, processes):
    """Wait until so many processes are here, since the start of an interpreter takes its time."""
    Path(f"{notes}.{os.getpid()}").touch()
    until = time.monotonic() + 120
    while len(list(Path(notes).parent.glob(f"{Path(notes).name}.*"))) < processes:
        assert time.monotonic() < until, "the other process never came"
        time.sleep(0.01)


def main(storage, notes, options):
    die, latency = options.pop("die", None), options.pop("latency", 0.0)
    meet(notes, options.pop("meet", 1))
    asked = []

    def answer(prompt):
        asked.append(prompt)
        with Path(notes).open("a") as stream:
            stream.write(json.dumps(prompt) + "\n")
        if die is not None and len(asked) > die:
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
