"""Why a request is not answered with a ranking, in the form that clients expect."""

from collections.abc import Mapping


class RefusedError(Exception):
    """A request that ends in an error.

    Args:
        status: HTTP status.
        message: What came, what was expected, what to do; never a passage, a query or a key.
        headers: Further headers of the answer.
        reason: One or two words for logs and metrics.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        headers: Mapping[str, str] | None = None,
        reason: str = "invalid",
    ):
        super().__init__(message)
        self.status = status
        self.message = message
        self.headers = dict(headers or {})
        self.reason = reason


def invalid(message: str) -> RefusedError:
    """A request that cannot be used as it is: 400, in Cohere's words."""
    return RefusedError(400, f"invalid request: {message}")


def body_of(message: str, request_id: str) -> dict[str, str]:
    """An error's body: ``message`` is what Cohere's clients read, ``detail`` what Jina's read."""
    return {"id": request_id, "message": message, "detail": message}
