"""What happens to a request before its body is read, and to its answer before it leaves.

Everything here costs nothing, so that a request without a key, of a wrong type, too large or too
many is refused before anything is spent on it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, MutableMapping
from time import monotonic
from typing import Any
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.responses import JSONResponse

from .access import Access
from .limits import Limits
from .metrics import Metrics
from .refusals import RefusedError, body_of
from .service import Service

logger = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

RERANK = ("/v1/rerank", "/v2/rerank")
ROUTES = (*RERANK, "/health", "/ready", "/metrics", "/programs", "/openapi.json", "/")
ASSETS = ("/show.js", "/page.js", "/page.css")
OPEN = ("/health", "/ready", "/openapi.json", "/", *ASSETS)
"""Paths that need no key, but for ``/ready`` where it is to ask the models."""
FACTS = "dspy_rerank"
MISTAKE = RefusedError(500, "a mistake of this service's; its log has the id", reason="mistake")
SAFE = {
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}


class Front:
    """ASGI middleware around the whole application.

    Args:
        app: The application.
        service: For its places.
        access: Who may ask.
        metrics: Where answers are counted.
    """

    def __init__(self, app: Any, service: Service, access: Access, metrics: Metrics):
        self.app = app
        self.service = service
        self.access = access
        self.metrics = metrics

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Answer one request, or refuse it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        begun = monotonic()
        facts = scope[FACTS] = _facts(scope)
        try:
            await self._answer(scope, receive, _decorated(send, facts))
        finally:
            facts["seconds"] = round(monotonic() - begun, 4)
            facts.setdefault("status", 499)
            self.metrics.answered(facts)
            _log(facts)

    async def _answer(self, scope: Message, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
            if scope["path"] not in RERANK or scope["method"] != "POST":
                return await self.app(scope, receive, send)
            limits = self.service.limits
            _check_body(headers, limits)
            with self.service.entrance.inside_of():
                await self.app(scope, _bounded(receive, limits), send)
        except RefusedError as refusal:
            await refused(scope, refusal)(scope, receive, send)
        except Exception:
            logger.exception("a mistake of this service's")
            if "status" in scope[FACTS]:
                raise
            await refused(scope, MISTAKE)(scope, receive, send)

    def _check(self, scope: Message, headers: Headers) -> None:
        if not self.access.answers_to(headers.get("host", "")):
            raise RefusedError(
                421, "this service answers to local names only: without a key it is for this "
                "machine alone", reason="host",
            )  # fmt: skip
        if not _is_open(scope) and not self.access.admits(headers.get("authorization", "")):
            raise RefusedError(
                401, "no valid api key: send one as Authorization: Bearer KEY", reason="key",
                headers={"WWW-Authenticate": "Bearer"},
            )  # fmt: skip


def _is_open(scope: Message) -> bool:
    """Whether a request needs no key: it holds nothing of anyone's, and costs nothing."""
    if scope["path"] == "/ready":
        return QueryParams(scope["query_string"]).get("ask") != "1"
    return scope["path"] in OPEN


def refused(scope: Message, refusal: RefusedError) -> JSONResponse:
    """A refusal as a response."""
    facts = scope[FACTS]
    facts["reason"] = refusal.reason
    return JSONResponse(
        body_of(refusal.message, facts["id"]), refusal.status, headers=refusal.headers
    )


def _facts(scope: Message) -> dict[str, Any]:
    """What is logged and counted; of a path only whether it is one of ours."""
    known = scope["path"] in ROUTES or scope["path"] in ASSETS
    return {
        "id": str(uuid4()),
        "method": scope["method"] if scope["method"].isalpha() else "other",
        "route": scope["path"] if known else "other",
    }


def _decorated(send: Send, facts: dict[str, Any]) -> Send:
    """Adds safe headers and the request's id, and notes the status."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            facts["status"] = message["status"]
            headers = MutableHeaders(scope=message)
            headers["x-request-id"] = facts["id"]
            for name, value in SAFE.items():
                headers.setdefault(name, value)
        await send(message)

    return sending


def _check_body(headers: Headers, limits: Limits) -> None:
    """Refuse what is no JSON or says of itself that it is too long.

    A browser sends JSON to another origin only after asking, which is never granted.
    """
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedError(
            415, "the body must be sent as content-type: application/json", reason="content type"
        )
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise RefusedError(415, "a compressed body is not read", reason="content type")
    length = headers.get("content-length", "0")
    if length.isdecimal() and int(length[:20]) > limits.body_bytes:
        raise too_large(limits)


def too_large(limits: Limits) -> RefusedError:
    """413."""
    return RefusedError(
        413, f"the body is larger than {limits.body_bytes} bytes; send fewer or shorter documents",
        reason="too large",
    )  # fmt: skip


def _bounded(receive: Receive, limits: Limits) -> Receive:
    """Counts the bytes of a body as they come, and the time that it takes to come."""
    read, whole = 0, False
    latest = monotonic() + limits.upload_seconds

    async def receiving() -> Message:
        nonlocal read, whole
        if whole:
            return await receive()
        try:
            async with asyncio.timeout(latest - monotonic()):
                message = await receive()
        except TimeoutError:
            raise RefusedError(
                408, f"the body did not arrive within {limits.upload_seconds:g} s",
                headers={"Connection": "close"}, reason="slow upload",
            ) from None  # fmt: skip
        read += len(message.get("body", b""))
        whole = not message.get("more_body", False)
        if read > limits.body_bytes:
            raise too_large(limits)
        return message

    return receiving


def _log(facts: dict[str, Any]) -> None:
    quiet = facts["route"] in ("/health", "/ready", "/metrics") and facts["status"] < 400
    level = logging.DEBUG if quiet else logging.INFO
    logger.log(level, "request", extra={"facts": facts})
