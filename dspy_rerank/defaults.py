"""The one-line way in: pick a reranker that suits the model at hand, and use it."""

import logging
from collections.abc import Iterable
from typing import Any

import dspy

from . import calls
from .errors import NoModelError
from .judges import ListwiseJudge, PointwiseJudge
from .ranking import Ranking
from .sorters import Reranker, ScoreSort, TopDown

logger = logging.getLogger(__name__)

EMBEDDED = "local/smollm2-135m"


def default_reranker(lm: Any) -> Reranker:
    """What ranks best with a model, before anything has been compiled.

    A model that prefers to score texts (the embedded one) ranks by query likelihood; any other
    orders windows of passages; a decision model, which cannot, grades them. The incoming order
    counts for nothing: where it comes from a first stage, give the sorter a ``prior``, or compile
    one.
    """
    if calls.offered_evidence(lm)[0] == "likelihood":
        return ScoreSort(PointwiseJudge(evidence="likelihood"))
    return ScoreSort(PointwiseJudge()) if calls.decides(lm) else TopDown(ListwiseJudge())


def rerank(
    query: str, documents: Iterable[Any], *, top_k: int | None = None, lm: Any = None
) -> Ranking:
    """Rank documents with the default reranker for the model.

    Args:
        query: What is looked for.
        documents: Strings, mappings with a text, or Documents, in any order.
        top_k: How many to return; ``None`` is all.
        lm: A DSPy LM or a model name; ``None`` takes DSPy's configured LM, else the embedded
            model where it is installed.

    Raises:
        NoModelError: There is no model; the message names both ways to one.
        InputError: The query or ``top_k`` has an unusable value.
        DocumentTypeError: A document cannot be read.
        dspy.LMError: Authentication or configuration is wrong.
    """
    model = resolve_lm(lm)
    with dspy.context(lm=model):
        return default_reranker(model)(query, documents, top_k).ranking


def resolve_lm(lm: Any = None) -> Any:
    """The LM given by object or name, else the configured one, else the embedded one."""
    from . import models

    if isinstance(lm, str):
        return models.get(lm)
    if lm is not None or dspy.settings.lm is not None:
        return lm if lm is not None else dspy.settings.lm
    if not models.available():
        raise NoModelError(calls.NO_MODEL)
    logger.info("no language model is configured: using the embedded %s", EMBEDDED)
    return models.get(EMBEDDED)
