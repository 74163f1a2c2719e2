"""What a request says, and the documents in it as texts."""

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from .limits import Limits
from .refusals import invalid

DEEPEST = 16
"""How deep the values of a document may be nested."""
MOST_VALUES = 100_000
"""Values in one request, those inside of objects included; a text is one."""
DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class RerankRequest(BaseModel):
    """A request in the form of Cohere (v1 and v2) or Jina; unknown fields are ignored.

    ``inputs`` and ``explain`` are this service's own.
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    query: str = Field(description="What is looked for; not blank.")
    documents: list[str | dict[str, Any]] = Field(
        min_length=1,
        description="Texts, or objects with a text; at most as many as the service allows.",
    )
    model: str | None = Field(None, description="Name of a program; the first one if absent.")
    top_n: int | None = Field(None, ge=1, description="How many to return; all if absent.")
    rank_fields: list[str] | None = Field(
        None,
        min_length=1,
        max_length=50,
        description="Fields of the objects that are read, in this order.",
    )
    return_documents: bool | None = Field(None, description="Whether results have the documents.")
    max_chunks_per_doc: int | None = Field(
        None, ge=1, description="Accepted for Cohere's v1 clients; documents are not chunked."
    )
    max_tokens_per_doc: int | None = Field(
        None, ge=1, description="Longer documents are cut, and named in the answer."
    )
    inputs: dict[str, str] | None = Field(
        None, description="Further inputs of the program's signature, such as criteria."
    )
    explain: bool | None = Field(None, description="Whether the answer has every judgment.")


def read_request(raw: bytes, limits: Limits) -> RerankRequest:
    """The request in a body.

    Raises:
        RefusedError: 400: it cannot be used; the message names the field and shows no text.
    """
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError) as error:
        place = f" at character {error.pos}" if isinstance(error, json.JSONDecodeError) else ""
        raise invalid(f"the body is not JSON in UTF-8{place}") from None
    if not isinstance(value, dict):
        raise invalid(f"the body is a JSON {_kind(value)}, expected an object")
    _check_number(value.get("documents"), limits)
    _check_plain(value)
    try:
        request = RerankRequest.model_validate(value)
    except ValidationError as error:
        raise invalid(_complaint(error)) from None
    _check_query(request.query, limits)
    return request


def texts_of(request: RerankRequest) -> list[str]:
    """What the judge reads of each document, by position.

    Of an object that is its ``text``, or its ``rank_fields``: one by itself, several as YAML in
    the order asked for, as Cohere's documentation recommends it for structured data.

    Raises:
        RefusedError: 400: an object has none of the fields.
    """
    fields = request.rank_fields or ["text"]
    return [
        document if isinstance(document, str) else _rendered(place, document, fields)
        for place, document in enumerate(request.documents)
    ]


def _rendered(place: int, document: Mapping[str, Any], fields: Sequence[str]) -> str:
    found = {name: document[name] for name in fields if document.get(name) is not None}
    if not found:
        wanted = ", ".join(f"{name[:40]!a}" for name in fields[:5])
        raise invalid(
            f"documents[{place}] has no field {wanted}; give it one, or name its fields in "
            "rank_fields"
        )
    only = next(iter(found.values()))
    if len(fields) == 1 and isinstance(only, str):
        return only
    return yaml.dump(found, Dumper=DUMPER, sort_keys=False, allow_unicode=True, width=2**31 - 1)


def _check_number(documents: Any, limits: Limits) -> None:
    if isinstance(documents, list) and len(documents) > limits.documents:
        raise invalid(f"{len(documents)} documents; at most {limits.documents} are ranked at once")


def _check_query(query: str, limits: Limits) -> None:
    if not query.strip():
        raise invalid("query must not be empty or only white space")
    if len(query) > limits.query_characters:
        raise invalid(
            f"query has {len(query)} characters; at most {limits.query_characters} are read"
        )


def _check_plain(body: dict[str, Any]) -> None:
    """Refuse what JSON parsers let through and neither YAML, UTF-8 nor a reply can hold."""
    left, found = [(body, "the body", 0)], 1
    while left:
        value, where, depth = left.pop()
        found += len(value) if isinstance(value, dict | list) else 0
        if found > MOST_VALUES:
            raise invalid(f"the body has more than {MOST_VALUES} values")
        if depth > DEEPEST:
            raise invalid(f"{where} is nested deeper than {DEEPEST} levels")
        _check_value(value, where)
        left += _inside(value, where, depth)


def _inside(value: Any, where: str, depth: int) -> list[tuple[Any, str, int]]:
    """The values in a value, each with the words for its place."""
    if isinstance(value, dict):
        named = depth == 0  # only the names of a request's fields are shown
        members = ((n[:40] if named and n.isascii() else where, n, v) for n, v in value.items())
        return [(part, place, depth + 1) for place, *parts in members for part in parts]
    if isinstance(value, list):
        places = (f"documents[{i}]" if depth == 1 else where for i in range(len(value)))
        return [(item, place, depth + 1) for item, place in zip(value, places, strict=True)]
    return []


def _check_value(value: Any, where: str) -> None:
    if isinstance(value, str) and not value.isascii():
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise invalid(f"{where} has half of a surrogate pair, which is no character")
    if isinstance(value, float) and not math.isfinite(value):
        raise invalid(f"{where} has a number that is not finite")


def _complaint(error: ValidationError) -> str:
    """The first thing that is wrong, by the field's name and without what came."""
    first = error.errors(include_input=False, include_url=False)[0]
    steps = [part for part in first["loc"] if part not in ("str", "dict[str,any]")]
    path = "".join(f"[{p}]" if isinstance(p, int) else f".{p[:40]!a}" for p in steps)
    more = error.error_count() - 1
    also = f" (and {more} more)" if more else ""
    return f"{path.replace(chr(39), '').lstrip('.')}: {first['msg']}{also}"


def _kind(value: Any) -> str:
    names = {list: "array", str: "string", bool: "boolean", int: "number", float: "number"}
    return names.get(type(value), "null")
