"""MLflow traces of rankings that stay small: ``pip install 'dspy-rerank[mlflow]'``."""

from contextlib import suppress
from dataclasses import asdict
from typing import Any

import dspy

from ..documents import as_documents
from ..errors import DocumentTypeError
from ..ranking import Ranking
from ..sorters import Reranker
from ._extras import needs
from .sampling import Questions, Sampled

with needs("mlflow", "dspy_rerank.integrations.mlflow"):
    from mlflow.dspy import autolog as autolog_everything
    from mlflow.dspy.callback import MlflowCallback


def autolog(questions: Questions = "some", **options: Any) -> None:
    """``mlflow.dspy.autolog``, but with only some of each ranking's questions in the traces.

    MLflow makes five spans of every question. Here a ranking of 100 documents by 100 grades is
    traced in 36 spans instead of 501, with the usage of all questions at its root; what lies
    outside of rankings is traced as ever.

    Args:
        questions: Which questions are traced: ``none``, ``some`` (number 1, 2, 4, 8 and so on of
            each ranking) or ``all``.
        options: As for ``mlflow.dspy.autolog``.
    """
    autolog_everything(**options)
    callbacks = [
        RankingCallback(questions) if isinstance(callback, MlflowCallback) else callback
        for callback in dspy.settings.callbacks
    ]
    dspy.configure(callbacks=callbacks)


class _Brief(MlflowCallback):
    """Rankings are traced with their texts once, and without the judgments."""

    def on_module_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """A module begins; a ranking is traced with the documents' ids and texts only."""
        if isinstance(instance, Reranker):
            inputs = _named(inputs)
        super().on_module_start(call_id, instance, inputs)

    def on_module_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """A module has ended; a ranking is traced as places, scores and usage."""
        ranking = outputs.get("ranking") if isinstance(outputs, dspy.Prediction) else None
        if isinstance(outputs, dspy.Prediction) and isinstance(ranking, Ranking):
            brief = dspy.Prediction(**{**dict(outputs.items()), "ranking": _brief(ranking)})
            brief.set_lm_usage(outputs.get_lm_usage())
            outputs = brief
        super().on_module_end(call_id, outputs, exception)  # pyright: ignore[reportArgumentType]


class RankingCallback(Sampled, _Brief):
    """The callback that :func:`autolog` puts in the place of MLflow's own.

    Args:
        questions: See :func:`autolog`.
    """


def _named(inputs: dict[str, Any]) -> dict[str, Any]:
    """A call's inputs with documents as ids and texts; an iterator is not consumed."""
    given = {**dict(zip(("query", "documents", "top_k"), inputs.get("args", ()), strict=False))}
    given |= inputs.get("kwargs", {})
    documents, text = given.get("documents"), given.pop("text", None)
    if isinstance(documents, list | tuple) and text is None:
        with suppress(DocumentTypeError):  # which the ranking is about to raise
            read = as_documents(documents)
            given["documents"] = [{"id": d.id, "text": d.text} for d in read]
    return {"kwargs": given}


def _brief(ranking: Ranking) -> dict[str, Any]:
    kept = ("rank", "index", "id", "score", "confidence")
    rest = ("n", "unknowns", "degraded", "reasons", "evidence")
    return {
        "places": [{name: getattr(item, name) for name in kept} for item in ranking],
        **{name: getattr(ranking, name) for name in rest},
        "usage": asdict(ranking.usage),
    }
