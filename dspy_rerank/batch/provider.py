"""The provider's files and batches, through LiteLLM; its failures in our terms, without keys."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .. import lite
from ..errors import ModelError
from ..hiding import without
from .target import Target

ENDPOINT: Any = "/v1/chat/completions"
TAG = "dspy_rerank_batch"
"""Under which a batch's metadata holds the tag that we know it by."""
READS = 5
"""How often reading is tried again; creating never is, since it might then happen twice."""
SLACK = 3600.0
"""Seconds by which the provider's clock may be behind ours."""


class UnavailableError(ModelError):
    """The provider cannot be reached, or fails; the same command may work later."""


class Remote(NamedTuple):
    """A batch as the provider sees it.

    Attributes:
        id: Its id there.
        status: ``validating``, ``in_progress``, ``finalizing``, ``cancelling``, or one of `ENDED`.
        files: Ids of the files with answers and with errors, those that there are.
        note: What went wrong with the batch as a whole.
        done: Requests that are done, failed ones included.
        total: Requests that the provider has counted.
    """

    id: str
    status: str
    files: tuple[str, ...] = ()
    note: str = ""
    done: int = 0
    total: int = 0


ENDED = frozenset({"completed", "failed", "expired", "cancelled"})


class Provider:
    """Whoever runs the batches of a job.

    Args:
        target: Of the job.
    """

    def __init__(self, target: Target):
        self.target = target

    def upload(self, path: Path) -> str:
        """Send a file of requests; its id there."""
        litellm = lite.litellm()

        with open(path, "rb") as file:
            made = self._call(
                "the upload", litellm.create_file, READS, file=(path.name, file), purpose="batch"
            )
        return str(made.id)

    def create(self, file: str, tag: str) -> Remote:
        """Have a file worked on.

        Raises:
            ModelError: It was refused, or, where the connection broke, perhaps it was not: see
                :meth:`find`.
        """
        litellm = lite.litellm()

        made = self._call(
            "creating the batch", litellm.create_batch, 0, input_file_id=file, endpoint=ENDPOINT,
            completion_window="24h", metadata={TAG: tag},
        )  # fmt: skip
        return _remote(made)

    def find(self, tag: str, since: float) -> Remote | None:
        """The batch with our tag, if the provider has one that is not older than a time."""
        for made in self._listed(since - SLACK):
            if (getattr(made, "metadata", None) or {}).get(TAG) == tag:
                return _remote(made)
        return None

    def _listed(self, since: float) -> Iterator[Any]:
        """Batches, newest first."""
        litellm = lite.litellm()

        after: str | None = None
        while True:
            page = self._call(
                "listing batches", litellm.list_batches, READS, limit=100,
                **({"after": after} if after else {}),
            )  # fmt: skip
            found = list(page.data)
            yield from found
            old = found and (getattr(found[-1], "created_at", None) or since) < since
            if not found or old or not getattr(page, "has_more", False):
                return
            after = found[-1].id

    def retrieve(self, remote: str) -> Remote | None:
        """A batch; ``None`` where the provider has forgotten it."""
        litellm = lite.litellm()

        try:
            return _remote(
                self._call("asking for the batch", litellm.retrieve_batch, READS, batch_id=remote)
            )
        except UnavailableError:
            raise
        except ModelError as error:
            if getattr(error.__cause__, "status_code", None) == 404:
                return None
            raise

    def download(self, file: str, path: Path) -> None:
        """Write a file of answers to disk, piece by piece."""
        litellm = lite.litellm()

        streams = self.target.provider != "azure"

        def fetch(**given: Any) -> None:
            content: Any = litellm.file_content(file_id=file, stream=streams, **given)
            with open(path, "wb") as out:
                for piece in content.stream_iterator if streams else (content.content,):
                    out.write(piece)

        self._call("fetching answers", fetch, READS)

    def _call(self, what: str, function: Callable[..., Any], tries: int, **given: Any) -> Any:
        from openai import APIConnectionError

        client = {**self.target.client, "max_retries": tries}
        try:
            return function(custom_llm_provider=self.target.provider, **given, **client)
        except Exception as error:
            status = getattr(error, "status_code", None)
            passing = isinstance(error, APIConnectionError | OSError) or (
                isinstance(status, int) and (status in (408, 409, 429) or status >= 500)
            )
            said = without(" ".join(str(error).split())[:500], self.target.secrets)
            kind = UnavailableError if passing else ModelError
            raise kind(f"{what} failed: {said or type(error).__name__}") from _bare(error)


def _bare(error: Exception) -> Exception:
    """An error with its status and without its text, which may hold a key."""
    bare = Exception(type(error).__name__)
    bare.status_code = getattr(error, "status_code", None)  # pyright: ignore[reportAttributeAccessIssue]
    return bare


def _remote(made: Any) -> Remote:
    counts = getattr(made, "request_counts", None)
    files = (getattr(made, "output_file_id", None), getattr(made, "error_file_id", None))
    done = [getattr(counts, name, 0) or 0 for name in ("completed", "failed", "total")]
    return Remote(
        str(made.id), str(made.status), tuple(f for f in files if f), _note(made),
        done[0] + done[1], done[2],
    )  # fmt: skip


def _note(made: Any) -> str:
    errors = getattr(getattr(made, "errors", None), "data", None) or []
    said = dict.fromkeys(str(getattr(e, "message", None) or getattr(e, "code", "")) for e in errors)
    return "; ".join(text for text in said if text)[:500]
