"""Paid answers in a file of JSON lines, so that a killed search does not buy them again."""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..memo import Memo
from ..types import Judgment

logger = logging.getLogger(__name__)


class KeptAnswers(dict[str, Memo]):
    """A store for :func:`dspy_rerank.memo.remembering` that is written to a file as it fills.

    Every answer is one line, appended in one write, so that several processes may share a file
    and a line cut short by a crash costs that one answer only.

    Args:
        path: The file; made when the first answer comes.

    Attributes:
        by: Number of the trial that pays for what comes next.
    """

    def __init__(self, path: str | Path):
        super().__init__()
        self.path = Path(path)
        self.by = -1
        self._paid: dict[int, int] = {}
        self._read = 0
        self.refresh()

    def setdefault(self, key: str, default: Memo | None = None) -> Memo:  # pyright: ignore[reportIncompatibleMethodOverride]
        """The memo of one list of passages, whose entries are written to the file."""
        if key not in self:
            self[key] = _KeptMemo(self, key)
        return self[key]

    def refresh(self) -> None:
        """Read what this and other processes have written since the last time."""
        if not self.path.exists():
            return
        with self.path.open("rb") as stream:
            stream.seek(self._read)
            content = stream.read()
        whole = content[: content.rfind(b"\n") + 1]
        self._read += len(whole)
        for line in whole.splitlines():
            self._take(line)

    def paid_by(self, trial: int) -> int:
        """How many answers a trial has paid for, by the file."""
        return self._paid.get(trial, 0)

    def _take(self, line: bytes) -> None:
        try:
            entry = json.loads(line)
            memo = self.setdefault(entry["memo"])
            judgment = _judgment(entry["judgment"])
            dict.__setitem__(memo, tuple(entry["key"]), judgment)
            self._paid[entry["by"]] = self._paid.get(entry["by"], 0) + 1
        except (ValueError, KeyError, TypeError):
            if line.strip():
                logger.warning("%s: a line cannot be read and is left out", self.path)

    def append(self, memo: str, key: tuple[int, ...], judgment: Judgment) -> None:
        """Write one answer to the file."""
        entry = {"memo": memo, "key": key, "by": self.by, "judgment": asdict(judgment)}
        line = json.dumps(entry, ensure_ascii=True) + "\n"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        end = os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_RDWR, 0o644)
        try:
            os.write(end, (b"" if _ends_whole(end) else b"\n") + line.encode())
        finally:
            os.close(end)


class _KeptMemo(dict[tuple[int, ...], Judgment]):
    """The answers about one list of passages; those that cannot be read stay in memory."""

    def __init__(self, store: KeptAnswers, name: str):
        super().__init__()
        self._store = store
        self._name = name

    def __setitem__(self, key: tuple[int, ...], judgment: Judgment) -> None:
        if judgment.known and not (key in self and self[key].known):
            self._store.append(self._name, key, judgment)
        super().__setitem__(key, judgment)


def _ends_whole(end: int) -> bool:
    """Whether a file is empty or its last line is complete."""
    size = os.fstat(end).st_size
    return size == 0 or os.pread(end, 1, size - 1) == b"\n"


def _judgment(values: Mapping[str, Any]) -> Judgment:
    read: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in values.items()}
    return Judgment(**read)
