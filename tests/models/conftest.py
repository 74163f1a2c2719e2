"""A scripted OpenAI-compatible server on loopback."""

import json
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Server:
    """What was asked, and what is answered: a body, ``(status, headers, body)``, or a function."""

    answers: list
    asked: list = field(default_factory=list)
    url: str = ""
    delay: float = 0.0

    def next(self, body, headers, path=""):
        self.asked.append({"body": body, "headers": headers, "path": path})
        answer = self.answers[min(len(self.asked), len(self.answers)) - 1]
        answer = answer(body) if callable(answer) else answer
        return answer if isinstance(answer, tuple) else (200, {}, answer)


def completion(text="A", odds=None, **more):
    """A chat completion; ``odds`` are probabilities of the first token's alternatives."""
    import math

    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant"}}
    choice["message"]["content"] = text
    if odds:
        top = [{"token": t, "logprob": math.log(p), "bytes": None} for t, p in odds.items()]
        choice["logprobs"] = {"content": [{**top[list(odds).index(text)], "top_logprobs": top}]}
    usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
    return {"id": "x", "object": "chat.completion", "model": "served", "choices": [choice],
            "usage": usage, **more}  # fmt: skip


@contextmanager
def serving(*answers, delay=0.0):
    server = Server(list(answers) or [completion()], delay=delay)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers, answer = server.next(body, dict(self.headers), self.path)
            time.sleep(server.delay)
            content = answer.encode() if isinstance(answer, str) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=http.serve_forever, args=(0.05,), daemon=True).start()
    server.url = f"http://127.0.0.1:{http.server_port}/v1"
    try:
        yield server
    finally:
        http.shutdown()
        http.server_close()


@pytest.fixture
def serve():
    """Start servers for one test."""
    from contextlib import ExitStack

    with ExitStack() as stack:
        yield lambda *answers, **options: stack.enter_context(serving(*answers, **options))


@pytest.fixture
def chat():
    """Builds the body of a chat completion."""
    return completion


@pytest.fixture
def serve_paths(serve):
    """Start servers that answer by path: ``answer(path, body)``."""

    def start(answer):
        server = serve(lambda body: answer(server.asked[-1]["path"], body))
        return server

    return start
