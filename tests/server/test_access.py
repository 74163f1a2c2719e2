"""Keys and addresses."""

import httpx
import pytest

from dspy_rerank.errors import InputError
from dspy_rerank.server import Access
from dspy_rerank.server.access import check_host, is_loopback, keys_from
from tests.server.harness import scored, serving

OLD, NEW = "the-old-key-0123456789", "the-new-key-9876543210"


def test_any_of_the_keys_admits_and_nothing_else():
    access = Access.of([OLD, NEW])
    assert access.admits(f"Bearer {OLD}")
    assert access.admits(f"bearer {NEW} ")
    wrong = ("", "Bearer", "Bearer ", OLD, f"Basic {OLD}", f"Bearer {OLD}x", f"Bearer {OLD[:-1]}")
    assert not any(map(access.admits, wrong))


def test_keys_are_nowhere_to_be_seen():
    access = Access.of([OLD])
    assert OLD not in repr(access)
    assert OLD.encode() not in b"".join(access.digests)


def test_short_keys_are_refused():
    with pytest.raises(InputError, match="fewer than 16 characters"):
        Access.of([OLD, "short"])


def test_keys_come_by_commas():
    assert keys_from("K", {"K": f" {OLD}, {NEW},"}) == [OLD, NEW]
    assert keys_from("K", {}) == []


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.1", "example.org", ""])
def test_nothing_but_this_machine_goes_without_a_key(host):
    with pytest.raises(InputError, match="set the environment variable K"):
        check_host(host, Access(), "K")
    check_host(host, Access.of([OLD]), "K")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "[::1]"])
def test_this_machine_is_known_by_all_its_names(host):
    assert is_loopback(host)
    check_host(host, Access(), "K")


@pytest.mark.parametrize(
    ("host", "answered"),
    [("localhost", True), ("LOCALHOST:8787", True), ("127.0.0.1:1", True), ("[::1]:8787", True),
     ("[::1]", True), ("evil.example", False), ("localhost.evil.example", False), ("", False)],
)  # fmt: skip
def test_without_a_key_only_local_names_are_answered(host, answered):
    assert Access().answers_to(host) is answered
    assert Access.of([OLD]).answers_to(host)


def test_a_rebound_name_reaches_nothing():
    with serving(scored()) as url:
        for path in ("/", "/programs", "/health"):
            response = httpx.get(url + path, headers={"host": "evil.example"})
            assert response.status_code == 421


def test_with_a_key_only_what_holds_nothing_is_open():
    with serving(scored(), keys=[OLD]) as url:
        status = {path: httpx.get(url + path).status_code for path in (
            "/", "/show.js", "/page.js", "/page.css", "/health", "/ready", "/openapi.json",
            "/programs", "/metrics", "/other",
        )}  # fmt: skip
        assert [path for path, code in status.items() if code == 401] == [
            "/programs", "/metrics", "/other",
        ]  # fmt: skip
        body = {"query": "q", "documents": ["a 1"]}
        for path in ("/v1/rerank", "/v2/rerank"):
            response = httpx.post(url + path, json=body)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            keyed = {"authorization": f"Bearer {OLD}"}
            assert httpx.post(url + path, json=body, headers=keyed).status_code == 200


def test_no_other_origin_is_let_in():
    with serving(scored()) as url:
        origin = {"origin": "https://evil.example", "access-control-request-method": "POST"}
        asked = httpx.options(f"{url}/v2/rerank", headers=origin)
        simple = httpx.post(
            f"{url}/v2/rerank", content=b'{"query":"q","documents":["a 1"]}',
            headers={"content-type": "text/plain", "origin": "https://evil.example"},
        )  # fmt: skip
    assert asked.status_code == 405
    assert simple.status_code == 415
    assert not any("access-control" in name for name in (*asked.headers, *simple.headers))
