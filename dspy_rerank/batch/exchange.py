"""Requests to the provider and answers back, each step so that doing it again does no harm.

A batch is planned before anybody hears of it, with a tag of its own. Before it is created it is
marked as ``creating``; whoever finds that mark later looks the tag up at the provider, and creates
the batch only if it is not there. A kill between any two steps buys nothing twice.
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from . import lines
from .provider import ENDED, Provider, Remote
from .rows import Batch, Request
from .store import Store

MOST_REQUESTS = 50_000
"""OpenAI's limit for a file."""
MOST_BYTES = 200_000_000


class Exchange:
    """Sends requests of a job, and takes answers in.

    Args:
        store: The job's state.
        provider: Whoever answers.
        folder: For files on their way.
        attempts: At an answer to each request, at most.
    """

    def __init__(self, store: Store, provider: Provider, folder: Path, attempts: int):
        self.store, self.provider = store, provider
        self.folder, self.attempts = folder, attempts

    def plan(self, requests: int = MOST_REQUESTS, size: int = MOST_BYTES) -> None:
        """Put all requests that wait into batches of the next round, all at once."""
        chunks = list(chunked(self.store.waiting(), requests, size))
        number, round_ = self.store.count(
            "SELECT coalesce(max(number), 0), coalesce(max(round), 0) FROM batches"
        )
        with self.store.together():
            for place, keys in enumerate(chunks, 1):
                tag = uuid.uuid4().hex
                self.store.plan(number + place, round_ + 1, tag, keys, time.time())

    def send(self) -> None:
        """Create the batches that are planned, or perhaps created already."""
        for batch in self.store.batches("planned", "creating"):
            remote = self._found(batch) or self._created(batch)
            self.store.mark(batch.number, state="open", remote=remote.id)

    def _found(self, batch: Batch) -> Remote | None:
        sent = batch.state == "creating"
        return self.provider.find(batch.tag, batch.begun) if sent else None

    def _created(self, batch: Batch) -> Remote:
        file = batch.file or self._uploaded(batch)
        self.store.mark(batch.number, state="creating", file=file)
        return self.provider.create(file, batch.tag)

    def _uploaded(self, batch: Batch) -> str:
        path = self.folder / f"requests-{batch.number:05}.jsonl"
        lines.write(path, self.store.inside(batch.number))
        file = self.provider.upload(path)
        path.unlink()
        return file

    def fetch(self) -> None:
        """Take in what ended batches brought.

        Raises:
            ModelError: The provider cannot be reached. What was taken in stays.
        """
        for batch in self.store.batches("open"):
            remote = self.provider.retrieve(batch.remote or "")
            if remote is None:
                self._end(batch, Remote("", "expired", note="the provider has no such batch"), [])
            elif remote.status in ENDED:
                self._end(batch, remote, self._downloaded(batch, remote))

    def _downloaded(self, batch: Batch, remote: Remote) -> list[Path]:
        paths = [
            self.folder / f"answers-{batch.number:05}-{n}.jsonl" for n in range(len(remote.files))
        ]
        for file, path in zip(remote.files, paths, strict=True):
            self.provider.download(file, path)
        return paths

    def _end(self, batch: Batch, remote: Remote, paths: list[Path]) -> None:
        """Answers, failures and the end of the batch in one step."""
        if remote.status == "failed" and not paths:
            self._refuse(batch, remote.note or "it gave no reason")
            return
        store = self.store
        with store.together():
            for path in paths:
                self._take(batch.number, path)
            reason = {"status": 503, "message": _missing(remote)}
            for request in list(store.inside(batch.number)):
                store.fail(batch.number, request.key, reason, self.attempts)
            store.note(batch.number, "ended", f"{remote.status} {remote.note}".strip())
        for path in paths:
            path.unlink(missing_ok=True)

    def _take(self, number: int, path: Path) -> None:
        """The answers of one file; what may go better another time is no answer yet."""
        for found in lines.read(path, self.provider.target.price):
            status = found.answer["status"]
            if status == 200 or status in lines.LASTING:
                self.store.answer(number, [found])
            else:
                self.store.fail(number, found.key, found.answer, self.attempts)

    def _refuse(self, batch: Batch, why: str) -> None:
        with self.store.together():
            self.store.release(batch.number)
            self.store.note(batch.number, "refused", why)


def chunked(requests: Iterator[Request], most: int, size: int) -> Iterator[list[str]]:
    """Keys of requests in order, at most so many, and so many bytes, a file."""
    keys: list[str] = []
    held = 0
    for request in requests:
        more = lines.size(request)
        if keys and (len(keys) == most or held + more > size):
            yield keys
            keys, held = [], 0
        keys.append(request.key)
        held += more
    if keys:
        yield keys


def _missing(remote: Remote) -> str:
    said = f": {remote.note}" if remote.note else ""
    return f"the batch is {remote.status} and has no answer to this request{said}"
