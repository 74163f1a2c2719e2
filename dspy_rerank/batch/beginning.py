"""Beginning a job, and finding one again. Nothing is sent by either."""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from itertools import zip_longest
from pathlib import Path
from typing import Any

from ..datasets._values import read_objects
from ..errors import DataError, InputError
from ..judges import ListwiseJudge
from ..options import at_least
from ..program import from_dict, load, to_dict
from ..sorters import Reranker, TopDown
from .job import Job, Limits
from .lock import locked
from .replay import check
from .rows import Query
from .store import Store
from .target import target_of


def begin(
    folder: str | Path,
    queries: str | Path | Iterable[Mapping[str, Any]],
    program: str | Path | Reranker | None = None,
    *,
    lm: Any,
    config: str | Path | None = None,
    top_k: int | None = None,
    classes: Iterable[type] = (),
    **limits: Any,
) -> Job:
    """A job for these queries; where the folder has it already, that one as it stands.

    Nothing is sent before :meth:`Job.advance` or :meth:`Job.wait`.

    Args:
        folder: Holds the state; is made.
        queries: A JSON Lines file or mappings, each with ``query`` and ``documents`` (texts, or
            objects with ``text`` and perhaps ``id``), and perhaps ``id`` (else its number from
            1), ``inputs`` (an object) and ``top_k``.
        program: A saved program or a reranker that can be saved; ``None`` is `TopDown`.
        lm: An alias of ``config``, a name such as ``openai/gpt-4o-mini``, or a `dspy.LM`.
        config: A LiteLLM configuration.
        top_k: Of queries that do not bring their own.
        classes: Judges and sorters of the caller's own that the program may name.
        limits: See :class:`Limits`.

    Raises:
        InputError: The folder has another job, or the model takes no batches.
        DataError: A query cannot be used; the message names the line.
        ProgramError: The program cannot be read or saved.
    """
    place, allowed = Path(folder), Limits(**limits)
    if top_k is not None:
        at_least("top_k", top_k, 1)
    made = load(program, classes=classes) if isinstance(program, str | Path) else program
    described = to_dict(made or TopDown(ListwiseJudge()))
    target = target_of(lm, config)
    settings = {
        "program": described, "top_k": top_k, "lm": lm if isinstance(lm, str) else None,
        "config": None if config is None else str(Path(config).resolve()),
        "target": target.identity,
    }  # fmt: skip
    place.mkdir(parents=True, exist_ok=True)
    with locked(place):
        if not Store.there(place):
            more = {"limits": asdict(allowed), "capped": allowed.max_cost is not None}
            Store.create(place, {**settings, **more}, _read(queries)).close()
        _same(place, settings, queries)
    return Job(place, target, _own(described, classes))


def resume(
    folder: str | Path,
    *,
    lm: Any = None,
    config: str | Path | None = None,
    classes: Iterable[type] = (),
) -> Job:
    """The job of a folder.

    Args:
        folder: Of the job.
        lm: Needed again where the job was begun with a `dspy.LM`; keys are not written down.
        config: Where the LiteLLM configuration is now, if it has moved.
        classes: As for :func:`begin`.

    Raises:
        InputError: There is no job, or the model is another one now.
    """
    place = Path(folder)
    if not Store.there(place):
        raise InputError(f"{place}: no batch job is here; begin one with batch submit")
    store = Store(place)
    kept = {n: store.setting(n) for n in ("program", "lm", "config", "target")}
    store.close()
    named = lm if lm is not None else kept["lm"]
    if named is None:
        raise InputError(f"{place}: the job was begun with an LM object; pass it again as lm=")
    target = target_of(named, config or kept["config"])
    _same_target(place, kept["target"], target.identity)
    return Job(place, target, _own(kept["program"], classes))


def _own(described: Any, classes: Iterable[type]) -> Reranker:
    """A reranker of the job's own, whose language model it may change."""
    return from_dict(described, classes=classes)


def _read(queries: str | Path | Iterable[Mapping[str, Any]]) -> Iterator[Query]:
    """Queries one by one, each checked.

    Raises:
        DataError: One cannot be used, or has the id of another; or there are none.
    """
    seen: set[bytes] = set()
    for n, (where, record) in enumerate(_records(queries)):
        check(record, where)
        name = str(n + 1) if record.get("id") in (None, "") else str(record["id"])
        digest = hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=16).digest()
        if digest in seen:
            raise DataError(f"{where}: the id {name!r} was there before; expected each once")
        if name.split() != [name]:
            raise DataError(f"{where}: the id {name!r} holds white space, which no run can carry")
        seen.add(digest)
        yield Query(n, name, record)
    if not seen:
        raise DataError("there are no queries; expected one JSON object a line")


def _records(
    queries: str | Path | Iterable[Mapping[str, Any]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(queries, str | Path):
        yield from read_objects(queries)
        return
    for number, given in enumerate(queries):
        try:
            yield f"query {number}", json.loads(json.dumps(dict(given), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise DataError(f"query {number} cannot be written as JSON: {error}") from None


def _same(place: Path, settings: Mapping[str, Any], queries: Any) -> None:
    """Complain where the folder's job is another one."""
    store = Store(place)
    try:
        for name in ("program", "top_k"):
            if store.setting(name) != json.loads(json.dumps(settings[name])):
                raise InputError(f"{place}: the job here has another {name}; use another folder")
        if isinstance(queries, str | Path):
            _same_queries(place, store, queries)
        kept = store.setting("target")
    finally:
        store.close()
    _same_target(place, kept, settings["target"])


def _same_queries(place: Path, store: Store, queries: str | Path) -> None:
    given = (record for _, record in _records(queries))
    for kept, record in zip_longest(store.records(), given):
        if kept != record:
            raise InputError(f"{place}: the job here has other queries; use another folder")


def _same_target(place: Path, kept: Mapping[str, Any], identity: Mapping[str, Any]) -> None:
    now = json.loads(json.dumps(identity))
    if kept != now:
        changed = [name for name in now if kept.get(name) != now[name]]
        raise InputError(
            f"{place}: the job was begun with another {' and '.join(changed)} of its model: "
            f"{[kept.get(n) for n in changed]}, now {[now[n] for n in changed]}"
        )
