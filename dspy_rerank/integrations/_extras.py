"""A missing extra becomes one line that says what to install."""

from types import TracebackType

from ..errors import MissingExtraError


class needs:  # noqa: N801 (reads as a statement)
    """Around the imports of one extra.

    Args:
        extra: Its name, as in ``pip install 'dspy-rerank[extra]'``.
        what: Who needs it.

    Raises:
        MissingExtraError: An import inside failed; the message has the line that installs it.
    """

    def __init__(self, extra: str, what: str):
        self.extra = extra
        self.what = what

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Turn a failed import into the line to run."""
        if isinstance(error, ImportError):
            raise MissingExtraError(
                f"{self.what} needs an extra: pip install 'dspy-rerank[{self.extra}]' ({error})"
            ) from error
