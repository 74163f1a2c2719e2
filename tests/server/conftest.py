"""Fixtures of all tests of the service; without its extra they are skipped."""

import pytest

try:
    import fastapi  # noqa: F401
    import httpx
    import prometheus_client  # noqa: F401
    import uvicorn  # noqa: F401
except ImportError as error:
    pytest.skip(f"serving needs {error.name}", allow_module_level=True)

from tests.server.harness import backwards, scored, serving


@pytest.fixture(scope="module")
def url():
    """A service with two programs, ``numbers`` and ``backwards``."""
    with serving(scored(), backwards()) as address:
        yield address


@pytest.fixture
def post(url):
    """Post a ranking request to the module's service."""

    def posting(path="/v2/rerank", *, raw=None, headers=None, **body):
        if raw is None:
            return httpx.post(url + path, json=body, headers=headers, timeout=20)
        kind = {"content-type": "application/json"}
        return httpx.post(url + path, content=raw, headers=headers or kind, timeout=20)

    return posting
