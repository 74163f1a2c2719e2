"""The routes."""

import json
from collections.abc import Callable
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException

from .. import __version__
from ..background import in_thread
from . import pages
from .access import Access
from .answers import RerankResponse, answer, public_reason
from .checking import Check, wanted
from .front import FACTS, Front, refused
from .limits import Limits
from .metrics import CONTENT_TYPE, Metrics
from .openapi import FAILURES, KEYED, READY, READY_QUERY, document_key, request_body
from .programs import Programs
from .refusals import RefusedError
from .requests import RerankRequest, read_request, texts_of
from .service import ClientGoneError, Service, while_connected


def build(programs: Programs, limits: Limits, access: Access) -> FastAPI:
    """The application; see :func:`dspy_rerank.server.create_app`."""
    service = Service(programs, limits)
    metrics = Metrics(service)
    app = FastAPI(
        title="dspy_rerank", version=__version__, docs_url=None, redoc_url=None,
        redirect_slashes=False,
        description="Reranking behind the API of Cohere (v1 and v2) and Jina.",
    )  # fmt: skip
    app.state.service = service
    for version in ("1", "2"):
        _add_rerank(app, service, metrics, version)
    _add_watching(app, service, metrics)
    pages.add_to(app)
    app.add_exception_handler(RefusedError, _on_refusal)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(ClientGoneError, _on_client_gone)
    app.add_middleware(Front, service=service, access=access, metrics=metrics)
    if not access.open:
        document_key(app)
    return app


class PlainJSON(JSONResponse):
    """JSON that can always be sent: what a model wrote may hold half a surrogate pair."""

    def render(self, content: Any) -> bytes:
        """The body."""
        text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "replace")


def _add_rerank(app: FastAPI, service: Service, metrics: Metrics, version: str) -> None:
    async def rerank(request: Request) -> Response:
        """Rank documents for a query, best first."""
        facts = request.scope[FACTS]
        asked, texts = await in_thread(_read, await request.body(), service.limits)
        program = service.programs.pick(asked.model)
        facts |= {"program": program.name, "documents": len(texts), "top_n": asked.top_n}
        work = service.rank(program, asked, texts)
        ranking, waited = await while_connected(request.receive, work)
        metrics.ranked(program.name, ranking)
        facts |= _spent(ranking, waited)
        said = answer(
            ranking, program, asked, texts, version=version, request_id=facts["id"]
        )  # fmt: skip
        return PlainJSON(said)

    app.add_api_route(
        f"/v{version}/rerank", rerank, methods=["POST"], name=f"rerank_v{version}",
        response_model=None, openapi_extra=request_body(service.limits),
        responses={200: {"model": RerankResponse}, **FAILURES},
    )  # fmt: skip


def _read(raw: bytes, limits: Limits) -> tuple[RerankRequest, list[str]]:
    """Off the event loop, which a large body would hold up."""
    asked = read_request(raw, limits)
    return asked, texts_of(asked)


def _spent(ranking: Any, waited: float) -> dict[str, Any]:
    used = ranking.usage
    return {
        "waited": round(waited, 4),
        "calls": used.calls,
        "cached_calls": used.cached_calls,
        "failed_calls": used.failed_calls,
        "tokens": used.prompt_tokens + used.completion_tokens,
        "cost": used.cost,
        "unknowns": ranking.unknowns,
        "unasked": ranking.unasked,
        "cut_short": ranking.cut_short,
        "degraded": ranking.degraded,
        **({"reasons": list(map(public_reason, ranking.reasons))} if ranking.degraded else {}),
    }


def _add_watching(app: FastAPI, service: Service, metrics: Metrics) -> None:
    def health() -> dict[str, str]:
        """Whether the process is alive."""
        return {"status": "ok"}

    check = Check(service, metrics)

    async def ready(request: Request) -> JSONResponse:
        """Whether requests should be sent here, and how many run and wait for each program.

        With ``ask=1`` each model is asked a question first, at most once in half a minute.
        """
        asks = wanted(request.query_params.get("ask"))
        state = {n: {"running": g.running, "waiting": g.waiting} for n, g in service.gates.items()}
        if service.draining:
            raise RefusedError(
                503, "the service ends after the requests under way", reason="draining"
            )
        if asks:
            await check()
        return JSONResponse({"status": "ready", "programs": state})

    def programs() -> dict[str, Any]:
        """What can be asked for as ``model``; the first one answers requests that name none."""
        return {"programs": [program.described() for program in service.programs.values()]}

    def numbers() -> Response:
        """Counters for Prometheus."""
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    host: dict[int | str, Any] = {421: KEYED[421]}
    _add_get(app, "/health", health, host)
    _add_get(app, "/ready", ready, READY, response_model=None, openapi_extra=READY_QUERY)
    _add_get(app, "/programs", programs, KEYED)
    text: dict[int | str, Any] = {200: {"content": {"text/plain": {"schema": {"type": "string"}}}}}
    _add_get(app, "/metrics", numbers, {**text, **KEYED}, response_class=Response)


def _add_get(
    app: FastAPI,
    path: str,
    endpoint: Callable[..., Any],
    responses: dict[int | str, dict[str, Any]],
    **more: Any,
) -> None:
    """A route for GET, and the same for HEAD, which FastAPI does not add by itself."""
    app.add_api_route(path, endpoint, methods=["GET"], responses=responses, **more)
    app.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False, **more)


def _on_refusal(request: Request, error: Exception) -> Response:
    assert isinstance(error, RefusedError)
    return refused(request.scope, error)


def _on_http_error(request: Request, error: Exception) -> Response:
    """What the framework refuses: unknown paths, methods that a path does not have."""
    assert isinstance(error, HTTPException)
    words = {404: "there is no such path", 405: "the path does not take this method"}
    message = words.get(error.status_code, "the request cannot be answered")
    return refused(
        request.scope,
        RefusedError(error.status_code, message, headers=error.headers, reason="route"),
    )


def _on_client_gone(request: Request, error: Exception) -> Response:
    """Nobody reads this; the status is that of nginx for a client that hung up."""
    return Response(status_code=499)
