"""Reranking inside a DSPy program: the same shape out as in, the judge seen by every optimizer."""

from collections.abc import Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any

import dspy

from ..background import in_thread, run_sync
from ..defaults import default_reranker, resolve_lm
from ..documents import as_documents
from ..errors import DocumentTypeError
from ..sorters import Reranker
from ._ranking import Placed, Wanted, arank
from ._source import Source, opened

Found = dspy.Prediction | Sequence[Any]
"""Passages as retrievers give them: a prediction with ``passages``, or a list."""


class PassageReranker(dspy.Module):
    """Puts retrieved passages into a better order.

    A list comes back as a list, best first. A prediction comes back with every list that goes
    along the passages (``indices``, ``scores``, ``pids``) in the new order; ``scores``, where it
    had them, are now the judge's (``None`` where the sorter has none). It gains ``ranking``, which
    says what the judge said and what it cost.

    The reranker is a module inside, so optimizers see the judge's calls and set its demos and
    instructions. As everywhere in DSPy, a reranker that was compiled by a DSPy optimizer is left
    as it is.

    Args:
        reranker: A reranker, the path of a saved program, its content, or ``None`` for the
            default of the model that is given or configured now.
        lm: A DSPy LM or a model's name for this reranker; ``None`` takes DSPy's at each call.
        k: How many passages to keep; ``None`` is all.
        raise_on_error: Raise when the model keeps failing; else the passages come back as they
            came in.
        options: Further inputs of the judge's signature, or options such as ``deadline``.
    """

    def __init__(
        self,
        reranker: Source = None,
        *,
        lm: Any = None,
        k: int | None = None,
        raise_on_error: bool = False,
        **options: Any,
    ):
        super().__init__()
        self.reranker = _module(reranker, lm)
        self.k = k
        self.raise_on_error = raise_on_error
        self.options = options

    def forward(self, query: str, found: Found, k: int | None = None) -> Any:
        """Rerank; see :meth:`aforward`."""
        return run_sync(self.aforward(query, found, k))

    async def aforward(self, query: str, found: Found, k: int | None = None) -> Any:
        """Rerank passages.

        Args:
            query: What is looked for; not blank.
            found: A prediction with ``passages``, or a list of passages.
            k: For this call only.

        Returns:
            The same shape as ``found``.

        Raises:
            DocumentTypeError: ``found`` holds no passages.
        """
        passages = _passages(found)
        scores = _scores(found, len(passages))
        texts = [document.text for document in as_documents(passages, _text)]
        most = self.k if k is None else k
        wanted = Wanted(most, raise_on_error=self.raise_on_error, inputs=self.options)
        places, ranking = await arank(self.reranker, query, texts, scores, wanted)
        if not isinstance(found, dspy.Prediction):
            return [passages[place.index] for place in places]
        return dspy.Prediction(**_along(found, len(passages), places), ranking=ranking)


class RerankedRetriever(dspy.Module):
    """A retriever whose passages are reranked.

    Args:
        retrieve: Any retriever of DSPy's, or a function of the query, synchronous or not, that
            returns passages.
        reranker: As for :class:`PassageReranker`, like all further arguments.
    """

    def __init__(self, retrieve: Callable[..., Any], reranker: Source = None, **settings: Any):
        super().__init__()
        self.retrieve = retrieve
        self.rerank = PassageReranker(reranker, **settings)

    def forward(self, query: str, k: int | None = None) -> Any:
        """Retrieve and rerank; see :meth:`PassageReranker.aforward`."""
        found = self.retrieve(query)
        return self.rerank(query, run_sync(_awaited(found)) if isawaitable(found) else found, k)

    async def aforward(self, query: str, k: int | None = None) -> Any:
        """As :meth:`forward`; a synchronous retriever runs in a thread."""
        if isinstance(self.retrieve, dspy.Module) and hasattr(self.retrieve, "aforward"):
            found = await self.retrieve.acall(query)
        else:
            found = await in_thread(self.retrieve, query)
        return await self.rerank.acall(query, await found if isawaitable(found) else found, k)


async def _awaited(found: Any) -> Any:
    return await found


def _module(source: Source, lm: Any) -> Reranker:
    """A reranker that exists now, so that optimizers find the judge inside."""
    if source is None:
        configured = lm is not None or dspy.settings.lm is not None
        reranker = opened(default_reranker(resolve_lm(lm) if configured else None), lm)
    else:
        reranker = opened(source, lm)
    assert isinstance(reranker, Reranker)
    return reranker


def _passages(found: Found) -> Sequence[Any]:
    passages = found.get("passages") if isinstance(found, dspy.Prediction) else found
    if isinstance(passages, str) or not isinstance(passages, Sequence):
        raise DocumentTypeError(
            f"found is {type(found).__name__}; expected a list of passages, or a dspy.Prediction "
            "with passages, as retrievers return"
        )
    return passages


def _scores(found: Found, n: int) -> list[float | None]:
    scores = found.get("scores") if isinstance(found, dspy.Prediction) else None
    return list(scores) if scores is not None and len(scores) == n else [None] * n


def _text(passage: Any) -> str:
    """The text of a passage; ``long_text`` is what ColBERTv2 servers call it."""
    if isinstance(passage, Mapping) and "long_text" not in passage:
        return as_documents([passage])[0].text
    return passage["long_text"] if isinstance(passage, Mapping) else passage.long_text


def _along(found: dspy.Prediction, n: int, places: Sequence[Placed]) -> dict[str, Any]:
    """The prediction's fields, those that hold one value a passage in the new order."""
    fields = {
        name: [value[place.index] for place in places] if _is_along(value, n) else value
        for name, value in found.items()
    }
    return {**fields, "scores": [p.score for p in places]} if "scores" in fields else fields


def _is_along(value: Any, n: int) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | Mapping) and len(value) == n
