"""The driver of a run on a Ray that is there already; a script for tests that kill it.

Arguments: the queries, the folder of results, and the folder to note questions in. It prints how
many queries are done with each report.
"""

import sys
from pathlib import Path

import ray

sys.path.insert(0, str(Path(__file__).parents[2]))

import dspy_rerank as dr
from dspy_rerank.integrations.ray import rerank
from tests.integrations.ray_models import model_in


def main(source, out, log):
    ray.init(log_to_driver=False)
    ray.data.DataContext.get_current().enable_progress_bars = False
    rerank(
        source, out, dr.TopDown(dr.ListwiseJudge(), error_retries=0), lm=model_in(log), workers=2,
        batch=5, report=tell,
    )  # fmt: skip


def tell(summary):
    sys.stdout.write(f"{summary.done}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
