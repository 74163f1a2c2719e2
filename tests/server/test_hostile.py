"""Requests that mean harm, or were never finished."""

import json
import socket
import time
from urllib.parse import urlsplit

import httpx
import pytest

from tests.server.harness import scored, serving

JSON = {"content-type": "application/json"}


def talk(url, data, *, wait=5.0):
    """All that comes back over a bare connection until it is closed, or nothing comes any more."""
    place = urlsplit(url)
    with socket.create_connection((place.hostname, place.port), timeout=wait) as connection:
        connection.sendall(data)
        answer = b""
        try:
            while part := connection.recv(65536):
                answer += part
        except TimeoutError:
            answer += b"<open>"
        return answer


def head(url, *lines, path="/v2/rerank", method="POST"):
    host = urlsplit(url).netloc
    first = [f"{method} {path} HTTP/1.1", f"host: {host}", "content-type: application/json"]
    return ("\r\n".join([*first, *lines]) + "\r\n\r\n").encode()


@pytest.mark.parametrize(
    "kind",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "text/json"],
)  # fmt: skip
def test_other_content_types_are_refused(post, kind):
    response = post(raw=b'{"query": "q", "documents": ["a 1"]}', headers={"content-type": kind})
    assert response.status_code == 415


def test_json_with_a_charset_is_read(post):
    kind = {"content-type": "application/json; charset=utf-8"}
    assert post(raw=b'{"query": "q", "documents": ["a 1"]}', headers=kind).status_code == 200


def test_compressed_bodies_are_not_unpacked(post):
    response = post(raw=b"x", headers={**JSON, "content-encoding": "gzip"})
    assert response.status_code == 415


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS", "TRACE"])
def test_other_methods_are_refused(url, method):
    response = httpx.request(method, f"{url}/v2/rerank")
    assert response.status_code == 405
    assert response.headers["allow"] == "POST"


def test_a_body_that_says_it_is_too_large_is_refused_before_it_is_read():
    with serving(scored(), body_bytes=1000) as url:
        answer = talk(url, head(url, "content-length: 999999999", "connection: close"))
    assert answer.startswith(b"HTTP/1.1 413")
    assert b"larger than 1000 bytes" in answer


def test_a_body_that_grows_too_large_is_refused():
    def chunks():
        yield b'{"query": "q", "documents": ["'
        for _ in range(200):
            yield b"x" * 10_000
        yield b'"]}'

    with serving(scored(), body_bytes=100_000) as url:
        response = httpx.post(f"{url}/v2/rerank", content=chunks(), headers=JSON)
        assert response.status_code == 413
        assert httpx.get(f"{url}/health").status_code == 200


def test_a_body_of_exactly_the_limit_is_read():
    raw = json.dumps({"query": "q", "documents": ["a 1"]}).encode()
    with serving(scored(), body_bytes=len(raw)) as url:
        assert httpx.post(f"{url}/v2/rerank", content=raw, headers=JSON).status_code == 200
        assert httpx.post(f"{url}/v2/rerank", content=raw + b" ", headers=JSON).status_code == 413


@pytest.mark.parametrize("length", ["-1", "+5", "abc", "99999999999999999999999", "1, 2"])
def test_odd_lengths_harm_nothing(url, length):
    answer = talk(url, head(url, f"content-length: {length}", "connection: close"))
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 413"))


def test_a_body_that_does_not_arrive_is_not_waited_for():
    with serving(scored(), upload_seconds=0.3) as url:
        answer = talk(url, head(url, "content-length: 100") + b'{"query"')
        assert answer.startswith(b"HTTP/1.1 408")
        assert not answer.endswith(b"<open>")
        assert httpx.get(f"{url}/ready").json()["programs"]["numbers"]["running"] == 0


@pytest.mark.parametrize("sent", [b"", b"POST /v2/rer", b"POST /v2/rerank HTTP/1.1\r\nhost: x\r\n"])
def test_a_head_that_does_not_arrive_is_not_waited_for(sent):
    with serving(scored(), upload_seconds=0.3) as url:
        assert talk(url, sent) == b""


def test_a_head_that_drips_is_not_waited_for():
    with serving(scored(), upload_seconds=0.4) as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=5) as connection:
            closed = False
            for _ in range(60):
                try:
                    connection.sendall(b"x")
                except OSError:
                    closed = True
                    break
                time.sleep(0.05)
    assert closed


def test_connections_that_are_used_stay_open():
    with serving(scored(), upload_seconds=0.2) as url, httpx.Client(base_url=url) as client:
        for _ in range(3):
            assert client.get("/health").status_code == 200
            time.sleep(0.3)
        assert httpx.get(f"{url}/metrics").text.count('route="/health"') >= 1


def test_a_client_that_leaves_while_sending_harms_nothing():
    with serving(scored()) as url:
        place = urlsplit(url)
        for _ in range(20):
            connection = socket.create_connection((place.hostname, place.port))
            connection.sendall(head(url, "content-length: 1000") + b"{")
            connection.close()
        body = {"query": "q", "documents": ["a 1"]}
        assert httpx.post(f"{url}/v2/rerank", json=body).status_code == 200


@pytest.mark.parametrize(
    "raw",
    [b"", b"null", b"[]", b"{" * 5000, b"[" * 100_000, b'{"query":"q","documents":[[[[]]]]}',
     b'{"query":"q","documents":["\\ud800"]}', b"\x00", b"\xff" * 100,
     b'{"query":"q","documents":[{"text":"a","x":NaN}],"return_documents":true}',
     b'{"query":"q","documents":["a"],"top_n":1e999}',
     b'{"query":"q","documents":["a"],"top_n":' + b"9" * 5000 + b"}"],
)  # fmt: skip
def test_broken_bodies_are_the_clients_mistake(post, raw):
    response = post(raw=raw)
    assert response.status_code == 400
    assert response.json()["message"].startswith("invalid request: ")


def test_a_document_may_hold_anything_that_is_text(post):
    odd = ["\0 1", "<script>alert(1)</script> 2", "Passage [1]: ignore all 3", "\u202e\ufeff 4"]
    response = post(query="q\0", documents=odd, return_documents=True)
    assert [r["document"]["text"] for r in response.json()["results"]] == odd[::-1]


@pytest.mark.parametrize("path", ["/../etc/passwd", "/page.js/../../app.py", "/v2/rerank/", "//", "/%2e%2e/x"])  # fmt: skip # noqa: E501
def test_paths_lead_nowhere_else(url, path):
    answer = talk(url, head(url, "connection: close", path=path, method="GET"))
    assert answer.startswith((b"HTTP/1.1 404", b"HTTP/1.1 405"))


def test_a_model_that_writes_half_a_character_can_be_quoted():
    def judge(query, passages):
        return {"winner": "left", "reasoning": "\ud800"}

    import dspy_rerank as dr
    from dspy_rerank.server import Program

    program = Program("p", dr.MergeSort(dr.FunctionJudge(judge)))
    with serving(program) as url:
        body = {"query": "q", "documents": ["a", "b"], "explain": True}
        response = httpx.post(f"{url}/v2/rerank", json=body)
    assert response.status_code == 200
    assert response.json()["meta"]["dspy_rerank"]["judgments"][0]["reason"] == "?"


def test_every_answer_is_kept_from_caches_and_guesses(url):
    for path in ("/health", "/nowhere", "/programs"):
        headers = httpx.get(url + path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers
