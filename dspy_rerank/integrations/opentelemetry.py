"""OpenTelemetry spans of rankings: ``pip install 'dspy-rerank[otel]'``.

One span a ranking, and one for each of some of its questions. Spans hold counts and names, never
queries, passages, answers, keys or the text of errors.
"""

from typing import Any

import dspy
from dspy.utils.callback import ACTIVE_CALL_ID, BaseCallback

from ..ranking import Ranking
from ..sorters import Reranker
from ._extras import needs
from ._source import model_name
from .sampling import Questions, Sampled

with needs("otel", "dspy_rerank.integrations.opentelemetry"):
    from opentelemetry import context, trace
    from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

MODEL = "gen_ai.request.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"


def instrument(
    tracer_provider: TracerProvider | None = None, *, questions: Questions = "some"
) -> None:
    """From now on, make a span of every ranking in this process.

    Works through DSPy's callbacks: call it after any ``dspy.configure(callbacks=...)`` of your
    own, from the thread that configures DSPy. Calling it again replaces what it set before.

    Args:
        tracer_provider: ``None`` takes OpenTelemetry's global one.
        questions: Which questions get a span of their own: ``none``, ``some`` (number 1, 2, 4, 8
            and so on of each ranking) or ``all``.
    """
    tracer = trace.get_tracer("dspy_rerank", tracer_provider=tracer_provider)
    spans = RankingSpans(tracer, questions)
    dspy.configure(callbacks=[*_others(), spans])


def uninstrument() -> None:
    """Make no more spans."""
    dspy.configure(callbacks=_others())


def _others() -> list[Any]:
    return [c for c in dspy.settings.callbacks if not isinstance(c, RankingSpans)]


class _Spans(BaseCallback):
    """Rankings and questions as spans, each inside the one that is current."""

    def __init__(self, tracer: trace.Tracer):
        super().__init__()
        self._tracer = tracer
        self._open: dict[str, tuple[Span, Any]] = {}

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Open a span when a ranking or a question begins."""
        if isinstance(instance, Reranker):
            sorter = type(instance).__name__
            self._begin(call_id, f"rerank {sorter}", SpanKind.INTERNAL, _asked(instance, inputs))
        elif isinstance(instance, dspy.Predict) and ACTIVE_CALL_ID.get() in self._open:
            self._begin(call_id, "rerank question", SpanKind.CLIENT, {})

    def on_module_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Close the span."""
        if call_id not in self._open:
            return
        span, token = self._open.pop(call_id)
        context.detach(token)
        ranking = outputs.get("ranking") if isinstance(outputs, dspy.Prediction) else None
        if isinstance(ranking, Ranking):
            span.set_attributes(_found(ranking))
        if exception is not None:
            span.set_status(Status(StatusCode.ERROR, type(exception).__name__))
        span.end()

    def _begin(self, call_id: str, name: str, kind: SpanKind, attributes: dict[str, Any]) -> None:
        span = self._tracer.start_span(name, kind=kind, attributes=attributes)
        self._open[call_id] = span, context.attach(trace.set_span_in_context(span))


class RankingSpans(Sampled, _Spans):
    """The callback that :func:`instrument` configures; may be given to DSPy by hand, too.

    Args:
        tracer: Makes the spans.
        questions: See :func:`instrument`.
    """

    def __init__(self, tracer: trace.Tracer, questions: Questions = "some"):
        super().__init__(questions, tracer)


def _asked(reranker: Reranker, inputs: dict[str, Any]) -> dict[str, Any]:
    """What is known before a ranking."""
    judge = reranker.judge
    given = {**inputs, **inputs.get("kwargs", {})}
    attributes = {
        "rerank.sorter": type(reranker).__name__,
        "rerank.judge": type(judge).__name__,
        "rerank.judge.kind": judge.kind,
        "rerank.top_k": given.get("top_k"),
        MODEL: model_name(reranker),
    }
    return {name: value for name, value in attributes.items() if value is not None}


def _found(ranking: Ranking) -> dict[str, Any]:
    """What is known after it; a price that is not known is left out."""
    used = ranking.usage
    attributes = {
        "rerank.documents": ranking.n,
        "rerank.returned": len(ranking),
        "rerank.calls": used.calls,
        "rerank.cached_calls": used.cached_calls,
        "rerank.failed_calls": used.failed_calls,
        "rerank.rounds": used.rounds,
        "rerank.passages_read": used.passages_read,
        INPUT_TOKENS: used.prompt_tokens,
        OUTPUT_TOKENS: used.completion_tokens,
        "rerank.cost_usd": used.cost,
        "rerank.unknowns": ranking.unknowns,
        "rerank.truncated": len(ranking.truncated),
        "rerank.degraded": ranking.degraded,
        "rerank.evidence": ranking.evidence,
    }
    return {name: value for name, value in attributes.items() if value is not None}
