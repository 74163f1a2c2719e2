"""The web page: four files of our own, and a policy that lets the browser load nothing else."""

from functools import cache
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.responses import Response

FOLDER = Path(__file__).parent / "page"
FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/show.js": ("show.js", "text/javascript; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)


def add_to(app: FastAPI) -> None:
    """Serve the page and its parts."""
    for path in FILES:
        app.add_route(path, _serve, include_in_schema=False)


async def _serve(request: Request) -> Response:
    name, kind = FILES[request.url.path]
    headers = {"content-security-policy": POLICY, "cache-control": "no-cache"}
    return Response(_content(name), media_type=kind, headers=headers)


@cache
def _content(name: str) -> bytes:
    return (FOLDER / name).read_bytes()
