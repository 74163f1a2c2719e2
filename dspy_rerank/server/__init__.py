"""The HTTP service: compiled rerankers behind the API of Cohere and Jina.

FastAPI, uvicorn and prometheus-client are imported when a service is built, not before.
"""

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..errors import MissingExtraError
from .access import Access
from .limits import Limits
from .programs import Program, Programs

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["Access", "Limits", "Program", "Programs", "create_app", "require_extra", "run"]


def require_extra() -> None:
    """Complain in one line unless all that serving needs is installed.

    Raises:
        MissingExtraError: It is not; the message has the line that installs it.
    """
    try:
        for name in ("fastapi", "uvicorn", "prometheus_client"):
            import_module(name)
    except ImportError as error:
        raise MissingExtraError(
            f"serving needs {error.name}: pip install 'dspy-rerank[serve]'"
        ) from None


def create_app(
    programs: Sequence[Program], *, limits: Limits | None = None, access: Access | None = None
) -> "FastAPI":
    """The service as an ASGI application, for a server of the caller's own.

    Args:
        programs: What can be asked for by name; the first one answers requests that name none.
        limits: Of every request; the defaults of :class:`Limits` where none are given.
        access: Who may ask; by default everyone, so bind it to the loopback address only.

    Raises:
        InputError: There is no program, or two of one name.
        MissingExtraError: The extra ``serve`` is not installed.
    """
    require_extra()
    from .app import build

    return build(Programs(programs), limits or Limits(), access or Access())


def run(app: "FastAPI", **options: Any) -> None:
    """Serve until a signal; see :func:`dspy_rerank.server.serving.run`."""
    require_extra()
    from .serving import run as serve

    serve(app, **options)
