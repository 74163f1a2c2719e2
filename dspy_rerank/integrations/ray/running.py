"""A run over a data set: every query once, on as many workers as there is room for."""

import json
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import dspy

from ...errors import InputError, ModelError, ProgramError, RerankError
from ...options import at_least
from ...streaming import Summary
from ...streaming.running import GIVE_UP
from ...streaming.safe import lock
from .. import _source
from .._extras import needs
from . import rates
from .job import Job, Model
from .parts import BAD, GOOD, Parts
from .ranker import RECEIPT, Ranker, of_receipt
from .reading import dataset_of

with needs("ray", "dspy_rerank.integrations.ray"):
    import ray
    from ray.exceptions import RayError

BATCH = 64
COUNTS = ("ranked", "degraded", "failed", "skipped", "bad_before", "unknowns", "unread")
"""Numbers of queries in a summary, which add up."""


def rerank(
    source: Any,
    out: str | Path,
    reranker: _source.Source = None,
    *,
    lm: Model = None,
    models: str | Path | None = None,
    top_k: int | None = None,
    inputs: Sequence[str] = (),
    workers: int | None = None,
    cpus: float = 0.5,
    batch: int = BATCH,
    queries_at_once: int | None = None,
    retry_failed: bool = False,
    give_up: int = GIVE_UP,
    report: Callable[[Summary], None] | None = None,
) -> Summary:
    """Rank every query of a data set that the folder of results lacks.

    Cut off at any point, by an error, an interrupt or a kill, of a worker or of all, it can be
    run again and goes on: a query that was reported is not ranked again, one that was not is.
    What a query is, its content decides: id, query, documents, further inputs and ``top_k``.

    Ray is what ``ray.init`` or ``RAY_ADDRESS`` says, else one that is started on this machine.

    Args:
        source: A Ray dataset; or a file or folder, by path or address, of Parquet with the columns
            ``query`` and ``documents`` (and ``id``), or of JSON Lines with such keys. A row
            without an id goes by a digest of its content.
        out: A folder, made where it is not there: ``ranked/*.parquet`` and ``failed/*.parquet``.
            On a cluster, one that every machine sees, or an address such as ``s3://...``.
        reranker: The path of a saved program, its content, a reranker that can be saved, or
            ``None`` for the default of the model.
        lm: A model's name, an alias, or a function without arguments that makes a model, called
            once in each worker; ``None`` takes the alias that was saved with the program. Keys
            come from the workers' environment, never from here.
        models: The path of a LiteLLM configuration with the aliases, on every machine. Its
            ``rpm`` and ``tpm`` hold for all workers together, and so do
            ``max_parallel_requests``, which are dealt out evenly.
        top_k: Of queries that do not bring their own; ``None`` is all.
        inputs: Keys or columns to take as further inputs of the judge.
        workers: Actors that rank; ``None`` is one for each CPU of the cluster.
        cpus: CPUs that a worker reserves; reading needs a part of one, too.
        batch: Queries that become one part, at most: what is written and reported at once, and
            what a killed worker has to begin again.
        queries_at_once: Rankings under way in a worker; ``None`` is as many as questions.
        retry_failed: Rank those queries again, and only those, that failed or are degraded.
        give_up: Queries without a good ranking after which a run ends that has no good one since.
        report: Called after each batch whose results are safe, with all counts so far.

    Returns:
        Counts of this run.

    Raises:
        InputError: The folder belongs to another program or run, or a value cannot be used.
        DataError: The source cannot be read.
        ProgramError: The program cannot be loaded.
        ModelError: ``give_up`` queries have no good ranking; they are written.
        dspy.LMError: A wrong key or configuration.
    """
    for name, value in (("batch", batch), ("give_up", give_up), ("workers", workers or 1)):
        at_least(name, value, 1)
    _connect()
    size = workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
    parts = Parts(str(out))
    with _held(parts):
        job = Job(
            _content(reranker), _checked(lm), None if models is None else str(models), top_k,
            queries_at_once, tuple(inputs), size, parts.place, parts.next_run(), retry_failed,
        )  # fmt: skip
        shared = rates.started()
        parts.claim(_asked(job))
        dataset = _ranked(dataset_of(source), job, shared, parts, batch, cpus)
        summary = followed(dataset, give_up, report)
        if retry_failed:
            parts.settle(job.run)
    return summary


def _connect() -> None:
    if not ray.is_initialized():
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init(log_to_driver=False)


@contextmanager
def _held(parts: Parts) -> Iterator[None]:
    """The folder, for one run at a time where the system can lock it."""
    parts.make()
    if not parts.local:
        yield
        return
    path = Path(parts.place) / "_lock"
    with open(path, "ab") as file:
        lock(file, path)
        yield


def _content(reranker: _source.Source) -> Any:
    """A program as JSON values: workers on other machines do not see the file."""
    written = _source.written(reranker)
    if not isinstance(written, str):
        return written
    try:
        return json.loads(Path(written).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProgramError(f"{written}: there is no such file") from None
    except (ValueError, OSError) as error:
        raise ProgramError(f"{written} is not a saved program: {error}") from None


def _checked(lm: Any) -> Any:
    if lm is None or isinstance(lm, str) or (callable(lm) and not hasattr(lm, "model")):
        return lm
    raise InputError(
        f"lm is a {type(lm).__name__} object, which may hold keys and does not travel; give its "
        "name, an alias with models='litellm.yaml', or a function that makes it"
    )


def _asked(job: Job) -> str:
    """The identity of the program, as a worker sees it: what is wrong shows before the run."""
    remote = ray.remote(num_cpus=0)(Job.identity)
    with _plainly():
        return ray.get(remote.remote(job))


def _ranked(source: Any, job: Job, shared: Any, parts: Parts, batch: int, cpus: float) -> Any:
    """The data set of receipts; nothing runs yet."""
    keys = [ray.put(parts.keys(kind)) for kind in (GOOD, BAD)]
    return source.repartition(target_num_rows_per_block=batch).map_batches(
        Ranker,
        fn_constructor_args=(job, shared, *keys),
        batch_size=batch,
        batch_format="pyarrow",
        compute=ray.data.ActorPoolStrategy(size=job.workers),
        num_cpus=cpus,
    )


def followed(dataset: Any, give_up: int, report: Callable[[Summary], None] | None) -> Summary:
    """Receipts as they come, counted and reported."""
    total, in_a_row = Summary(), 0
    with _plainly(), closing(iter(dataset.iter_rows())) as rows:  # so that workers end with it
        for row in rows:
            one = of_receipt(row[RECEIPT])
            _add(total, one)
            if report is not None:
                report(total)
            in_a_row = 0 if one.ranked else in_a_row + one.degraded + one.failed
            if in_a_row >= give_up:
                raise ModelError(
                    f"{in_a_row} queries in a row have no good ranking, because: "
                    f"{'; '.join(one.reasons)}. All are written; mend the cause and run again "
                    "with retry_failed=True"
                )
    return total


def _add(total: Summary, one: Summary) -> None:
    """Count a batch."""
    for name in COUNTS:
        setattr(total, name, getattr(total, name) + getattr(one, name))
    total.usage = total.usage + one.usage
    total.spent = total.usage.cost or 0.0
    new = [reason for reason in one.reasons if reason not in total.reasons]
    total.reasons += new[: max(0, 3 - len(total.reasons))]


@contextmanager
def _plainly() -> Iterator[None]:
    """An error of a worker as the error it was, without Ray around it."""
    try:
        yield
    except RayError as error:
        cause = _cause(error)
        if cause is None:
            raise
        raise cause from None


def _cause(error: BaseException | None) -> BaseException | None:
    while error is not None:
        if isinstance(error, RerankError | dspy.LMError) and not isinstance(error, RayError):
            return error
        error = getattr(error, "cause", None) or error.__cause__
    return None
