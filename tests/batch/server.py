"""OpenAI's files and batches on loopback: slow, partial, out of order, failing, forgetful."""

import itertools
import json
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from email import message_from_bytes
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dspy_rerank.testing import Asked, oracle_answers

NOW = 4_000_000_000
"""When everything is created: after any clock of a test."""


@dataclass
class FakeBatch:
    id: str
    file: str
    metadata: dict[str, str]
    lines: list[dict[str, Any]]
    looks: int = 0
    answers: str | None = None
    errors: str | None = None
    status: str = "validating"


@dataclass
class BatchServer:
    """A provider of batches.

    Args:
        grades: By passage; answers are right by them.
        looks: How often a batch is asked for before it is over.
        line: What becomes of a request: ``None`` answers it, ``"missing"`` leaves it out, a
            mapping is sent as its line; by its body and how often it came before.
        ends: How a batch ends, by its number from 0; ``expired`` loses every second request.
        reply: Overrides an HTTP answer, by the number of the request and ``METHOD path``.
        after: Called once a request was worked on, before it is answered.
        page: Batches on a page of the list.
    """

    grades: dict[str, float]
    looks: int = 0
    line: Callable[[dict[str, Any], int], Any] = lambda body, before: None
    ends: Callable[[int], str] = lambda number: "completed"
    reply: Callable[[int, str], tuple[int, dict[str, Any]] | None] = lambda number, what: None
    after: Callable[[int, str], None] = lambda number, what: None
    page: int = 20
    say: Any = None
    files: dict[str, bytes] = field(default_factory=dict)
    batches: list[FakeBatch] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    live: int = 0

    def __post_init__(self):
        self._say = self.say or oracle_answers(self.grades)
        self._ids, self._lock = itertools.count(), threading.Lock()
        self._seen: Counter[str] = Counter()

    def __enter__(self):
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *error):
        self._http.shutdown()
        self._http.server_close()

    @property
    def base_url(self):
        return f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    @property
    def requests(self):
        """Bodies of all requests that came in batches."""
        return [line["body"] for batch in self.batches for line in batch.lines]

    def count(self, what):
        return sum(entry.startswith(what) for entry in self.log)

    def answered(self, method, path, headers, content):
        """Status and content of an HTTP answer."""
        with self._lock:
            what = f"{method} {urlsplit(path).path.removeprefix('/v1')}"
            number = len(self.log)
            self.log.append(what)
            self.headers.append(headers)
            given = self.reply(number, what)
            if given is None:
                given = self._done(method, path, headers, content)
            self.after(number, what)
            return given

    def _done(self, method, path, headers, content):
        parts = urlsplit(path).path.removeprefix("/v1/").split("/")
        query = {name: values[0] for name, values in parse_qs(urlsplit(path).query).items()}
        match (method, *parts):
            case ("POST", "chat", "completions"):
                self.live += 1
                return 200, self._completion(json.loads(content))
            case ("POST", "files"):
                return 200, self._uploaded(headers, content)
            case ("GET", "files", name, "content"):
                return (200, self.files[name]) if name in self.files else (404, _error("no file"))
            case ("POST", "batches"):
                return 200, self._created(json.loads(content))
            case ("GET", "batches"):
                return 200, self._listed(query)
            case ("GET", "batches", name):
                found = next((b for b in self.batches if b.id == name), None)
                return (200, self._looked(found)) if found else (404, _error("no batch"))
        return 404, _error(f"no such path: {path}")

    def _completion(self, body):
        return self._say(Asked(0, "/v1/chat/completions", {}, body))

    def _uploaded(self, headers, content):
        head = f"Content-Type: {headers['content-type']}\r\n\r\n".encode()
        form = message_from_bytes(head + content)
        parts = {
            part.get_param("name", header="content-disposition"): part.get_payload(decode=True)
            for part in form.get_payload()
        }
        assert parts["purpose"] == b"batch"
        return self._kept(parts["file"])

    def _kept(self, content):
        name = f"file-{next(self._ids)}"
        self.files[name] = content
        return {"id": name, "object": "file", "bytes": len(content), "created_at": NOW,
                "filename": "f.jsonl", "purpose": "batch", "status": "processed"}  # fmt: skip

    def _created(self, asked):
        assert asked["endpoint"] == "/v1/chat/completions"
        lines = [json.loads(line) for line in self.files[asked["input_file_id"]].splitlines()]
        assert len({line["custom_id"] for line in lines}) == len(lines)
        batch = FakeBatch(f"batch-{next(self._ids)}", asked["input_file_id"],
                          asked.get("metadata") or {}, lines)  # fmt: skip
        self.batches.append(batch)
        return self._shown(batch)

    def _listed(self, query):
        newest = self.batches[::-1]
        places = [n for n, batch in enumerate(newest) if batch.id == query.get("after")]
        start = places[0] + 1 if places else 0
        size = min(self.page, int(query.get("limit", 20)))
        found = newest[start : start + size]
        return {"object": "list", "data": [self._shown(batch) for batch in found],
                "has_more": start + size < len(newest)}  # fmt: skip

    def _looked(self, batch):
        batch.looks += 1
        if batch.status in ("validating", "in_progress"):
            batch.status = "in_progress"
            if batch.looks > self.looks:
                self._end(batch, self.ends(self.batches.index(batch)))
        return self._shown(batch)

    def _end(self, batch, status):
        batch.status = status
        if status == "failed":
            return
        lines = [entry for line in batch.lines if (entry := self._worked(line)) is not None]
        if status == "expired":
            lines = [line if n % 2 else _expired(line["custom_id"]) for n, line in enumerate(lines)]
        good = [line for line in lines if (line.get("response") or {}).get("status_code") == 200]
        bad = [line for line in lines if line not in good]
        batch.answers = self._kept(_jsonl(good[::-1]))["id"] if good else None
        batch.errors = self._kept(_jsonl(bad))["id"] if bad else None

    def _worked(self, line):
        key = line["custom_id"]
        wanted = self.line(line["body"], self._seen[key])
        self._seen[key] += 1
        if wanted == "missing":
            return None
        if wanted is None:
            response = {
                "status_code": 200,
                "request_id": "r",
                "body": self._completion(line["body"]),
            }
            wanted = {"response": response, "error": None}
        return {"id": "l", "custom_id": key, **wanted}

    def _shown(self, batch):
        over = batch.status in ("completed", "expired")
        errors = {"object": "list", "data": [{"code": "token_limit_exceeded",
                  "message": "Enqueued token limit reached"}]}  # fmt: skip
        return {
            "id": batch.id, "object": "batch", "endpoint": "/v1/chat/completions",
            "errors": errors if batch.status == "failed" else None,
            "input_file_id": batch.file, "completion_window": "24h", "status": batch.status,
            "output_file_id": batch.answers, "error_file_id": batch.errors, "created_at": NOW,
            "metadata": batch.metadata,
            "request_counts": {"total": len(batch.lines), "failed": 0,
                               "completed": len(batch.lines) if over else 1},
        }  # fmt: skip

    def _handler(server):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                size = int(self.headers.get("content-length") or 0)
                headers = {name.lower(): value for name, value in self.headers.items()}
                content = self.rfile.read(size)
                status, body = server.answered(self.command, self.path, headers, content)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = answer

            def log_message(self, *args):
                pass

        return Handler


def refused(status, message):
    """The line of a request that was refused."""
    return {"response": {"status_code": status, "request_id": "r", "body": _error(message)},
            "error": None}  # fmt: skip


def _expired(key):
    error = {"code": "batch_expired", "message": "This request was not executed in time."}
    return {"id": "l", "custom_id": key, "response": None, "error": error}


def _error(message):
    return {"error": {"message": message, "type": "invalid_request_error", "code": None}}


def _jsonl(lines):
    return "".join(json.dumps(line) + "\n" for line in lines).encode()
