"""A service in a process of its own, for tests that send it signals: its port is argument 1."""

import asyncio
import sys

import dspy_rerank as dr
from dspy_rerank.server import Program, create_app, logs, run


async def after_the_signal(query, passages):
    """The number at the end of a passage, once the process has been told to end."""
    while not app.state.service.draining:
        await asyncio.sleep(0.01)
    return float(passages[0].split()[-1])


def listening(url):
    sys.stdout.write(url + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    program = Program("p", dr.ScoreSort(dr.FunctionJudge(after_the_signal, "pointwise")))
    app = create_app([program])
    logs.configure()
    run(app, port=int(sys.argv[1]), listening=listening)
