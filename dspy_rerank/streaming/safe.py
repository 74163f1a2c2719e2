"""Files that a kill or a power cut leaves whole."""

import os
from contextlib import suppress
from pathlib import Path
from typing import IO

import orjson

from ..errors import InputError

BLOCK = 1 << 16


def repair(file: IO[bytes]) -> None:
    """Take off a last line that is torn; end one that lacks nothing but its end."""
    size = file.seek(0, os.SEEK_END)
    begin, tail = size, b""
    while begin > 0:
        step = min(BLOCK, begin)
        file.seek(begin - step)
        tail = file.read(step) + tail
        begin -= step
        if b"\n" in tail:
            begin += tail.rindex(b"\n") + 1
            tail = tail[tail.rindex(b"\n") + 1 :]
            break
    if not tail:
        return
    try:
        orjson.loads(tail)
        file.write(b"\n")
    except orjson.JSONDecodeError:
        file.truncate(begin)
    os.fsync(file.fileno())


def lock(file: IO[bytes], path: Path) -> None:
    """Hold the file for as long as it is open; where the system has no such lock, nothing."""
    with suppress(ImportError):
        import fcntl

        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"{path}: another process writes to it; wait until it ends") from None


class whole:  # noqa: N801  (a context manager, named as what it gives)
    """A file that takes its name once it is whole and safe on disk."""

    def __init__(self, part: Path, target: Path):
        self._part, self._target = part, target

    def __enter__(self) -> IO[bytes]:
        self._file = open(self._part, "wb")
        return self._file

    def __exit__(self, kind: object, *error: object) -> None:
        with self._file:
            self._file.flush()
            os.fsync(self._file.fileno())
        if kind is None:
            self._part.replace(self._target)
            sync_folder(self._target)
        else:
            self._part.unlink()


def sync_folder(path: Path) -> None:
    """Make a file's name as safe on disk as its content, where the system can."""
    with suppress(OSError):
        folder = os.open(path.absolute().parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
