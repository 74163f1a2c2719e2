"""What the OpenAPI document says beside the routes: bodies, errors and the key."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field

from .limits import Limits
from .requests import RerankRequest


class Failure(BaseModel):
    """Why there is no answer."""

    id: str = Field(description="Of the request, as in x-request-id and in the log.")
    message: str = Field(description="For Cohere's clients.")
    detail: str = Field(description="The same, for Jina's clients.")


KEYED: dict[int | str, dict[str, Any]] = {
    401: {"model": Failure, "description": "No valid key."},
    421: {"model": Failure, "description": "Called by a name that is not this machine's."},
}
FAILURES: dict[int | str, dict[str, Any]] = {
    **KEYED,
    400: {"model": Failure, "description": "The request cannot be used."},
    404: {"model": Failure, "description": "There is no program of that name."},
    408: {"model": Failure, "description": "The body took too long to arrive."},
    413: {"model": Failure, "description": "The body is too large."},
    415: {"model": Failure, "description": "The body is not sent as application/json."},
    429: {
        "model": Failure,
        "description": "Too many requests.",
        "headers": {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds."}},
    },
    500: {"model": Failure, "description": "A mistake of this service's."},
    502: {"model": Failure, "description": "The language model failed for good."},
    503: {"model": Failure, "description": "There is no language model, or the service ends."},
    504: {"model": Failure, "description": "There was no time left."},
}
READY: dict[int | str, dict[str, Any]] = {
    **KEYED,
    400: FAILURES[400],
    503: {"model": Failure, "description": "The service ends, or a model that was asked failed."},
}
READY_QUERY = {
    "parameters": [
        {
            "name": "ask",
            "in": "query",
            "description": "1 asks each model a question, which costs a call and needs the key, "
            "if there is one; what came of it holds for half a minute.",
            "schema": {"type": "integer", "enum": [0, 1], "default": 0},
        }
    ]
}
EXAMPLE = {
    "query": "What is the capital of France?",
    "documents": ["Bananas are yellow.", "Paris is the capital of France."],
    "top_n": 1,
}


def request_body(limits: Limits) -> dict[str, Any]:
    """The body of a ranking request; it is read by :mod:`.requests`, not by FastAPI."""
    schema = RerankRequest.model_json_schema()
    fields = schema["properties"]
    fields["query"] |= {"pattern": r"\S", "maxLength": limits.query_characters}
    fields["documents"] |= {"maxItems": limits.documents}
    content = {"application/json": {"schema": schema, "example": EXAMPLE}}
    return {"requestBody": {"required": True, "content": content}}


def document_key(app: FastAPI) -> None:
    """Say in the document that a key is needed, where one is."""

    def described() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = get_openapi(
                title=app.title, version=app.version, description=app.description,
                routes=app.routes,
            )  # fmt: skip
            parts = document.setdefault("components", {})
            parts["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
            for path, operations in document["paths"].items():
                for operation in operations.values() if path not in ("/health", "/ready") else ():
                    operation["security"] = [{"key": []}]
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = described
