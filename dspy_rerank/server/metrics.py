"""Counters for Prometheus; labels are names of programs, routes and outcomes, never input."""

from collections.abc import Mapping
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from ..ranking import Ranking
from ..types import Usage
from .service import Service

SECONDS = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
DOCUMENTS = (1, 5, 10, 20, 50, 100, 200, 500, 1000)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The numbers of one service, in a registry of its own.

    Args:
        service: Whose queues are looked at when the numbers are read.
    """

    def __init__(self, service: Service):
        self._registry = registry = CollectorRegistry()
        by = ["program"]
        self._requests = Counter(
            "dspy_rerank_requests", "Requests answered.", ["route", "program", "status"],
            registry=registry,
        )  # fmt: skip
        self._seconds = Histogram(
            "dspy_rerank_request_seconds", "Time to the answer of a ranking request.", by,
            buckets=SECONDS, registry=registry,
        )  # fmt: skip
        self._documents = Histogram(
            "dspy_rerank_documents", "Documents of a request that was ranked.", by,
            buckets=DOCUMENTS, registry=registry,
        )  # fmt: skip
        self._calls = Counter(
            "dspy_rerank_model_calls", "Questions to the language model.", [*by, "outcome"],
            registry=registry,
        )  # fmt: skip
        self._tokens = Counter(
            "dspy_rerank_tokens", "Paid tokens.", [*by, "direction"], registry=registry
        )
        self._cost = Counter(
            "dspy_rerank_cost_dollars", "Known cost in US dollars.", by, registry=registry
        )
        self._flagged = Counter(
            "dspy_rerank_rankings", "Rankings by outcome.", [*by, "outcome"], registry=registry
        )
        self._unknowns = Counter(
            "dspy_rerank_unknowns", "Questions without an answer that could be read.",
            [*by, "reason"], registry=registry,
        )  # fmt: skip
        self._watch(service)

    def _watch(self, service: Service) -> None:
        running = Gauge("dspy_rerank_running", "Rankings that run.", ["program"], registry=self._registry)  # fmt: skip # noqa: E501
        waiting = Gauge("dspy_rerank_waiting", "Requests that wait.", ["program"], registry=self._registry)  # fmt: skip # noqa: E501
        for name, gate in service.gates.items():
            running.labels(name).set_function(lambda gate=gate: gate.running)
            waiting.labels(name).set_function(lambda gate=gate: gate.waiting)

    def answered(self, facts: Mapping[str, Any]) -> None:
        """Count a request that has been answered, or whose client hung up (499)."""
        program = facts.get("program", "")
        self._requests.labels(facts["route"], program, str(facts["status"])).inc()
        if program and facts["status"] == 200:
            self._seconds.labels(program).observe(facts["seconds"])

    def ranked(self, program: str, ranking: Ranking) -> None:
        """Count what a ranking cost and how it went."""
        self._documents.labels(program).observe(ranking.n)
        self.spent(program, ranking.usage)
        self._flagged.labels(program, "degraded" if ranking.degraded else "whole").inc()
        lost = {"unasked": ranking.unasked, "cut short": ranking.cut_short}
        lost["unreadable"] = ranking.unknowns - sum(lost.values())
        for reason, number in lost.items():
            self._unknowns.labels(program, reason).inc(number)

    def spent(self, program: str, used: Usage) -> None:
        """Count calls, tokens and dollars."""
        calls = {"paid": used.paid_calls, "cached": used.cached_calls, "failed": used.failed_calls}
        for outcome, number in calls.items():
            self._calls.labels(program, outcome).inc(number)
        self._tokens.labels(program, "prompt").inc(used.prompt_tokens)
        self._tokens.labels(program, "completion").inc(used.completion_tokens)
        self._cost.labels(program).inc(used.cost or 0.0)

    def text(self) -> bytes:
        """All numbers in Prometheus' text format."""
        return generate_latest(self._registry)
