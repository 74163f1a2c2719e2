"""What one request, and all of them together, may take."""

from dataclasses import dataclass

from ..errors import InputError
from ..options import at_least


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of the service.

    Attributes:
        documents: Of one request.
        body_bytes: Of one request.
        query_characters: Of one request's query, which is never cut for the model.
        seconds: For waiting and ranking together; a ranking that runs out of it stops asking and
            answers with the best order so far, flagged.
        upload_seconds: For a request's head, and again for its body, to arrive.
        at_once: Rankings that one program runs at the same time. Each has at most as many
            questions in flight as the program's ``concurrency``.
        queue: Requests that may wait for one program; further ones are told to come back (429).
        calls: Questions that one request may ask, ``None`` for as many as its program wants.
    """

    documents: int = 1000
    body_bytes: int = 8 * 2**20
    query_characters: int = 16_384
    seconds: float = 60.0
    upload_seconds: float = 20.0
    at_once: int = 16
    queue: int = 256
    calls: int | None = None

    def __post_init__(self) -> None:
        for name in ("documents", "body_bytes", "query_characters", "at_once"):
            at_least(name, getattr(self, name), 1)
        at_least("queue", self.queue, 0)
        if self.calls is not None:
            at_least("calls", self.calls, 1)
        for name in ("seconds", "upload_seconds"):
            value = getattr(self, name)
            if not isinstance(value, int | float) or not 0 < value < float("inf"):
                raise InputError(f"{name}={value!r}; expected a number of seconds above 0")
