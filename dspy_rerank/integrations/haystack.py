"""A Haystack ranker component: ``pip install 'dspy-rerank[haystack]'``."""

from dataclasses import replace
from typing import Any

from ..background import run_sync
from ..errors import InputError
from ._extras import needs
from ._ranking import RETRIEVAL, Placed, Wanted, arank
from ._source import Reranks, Source, opened, written, written_lm

with needs("haystack", "dspy_rerank.integrations.haystack"):
    from haystack import Document, component, default_from_dict, default_to_dict


def _trusted() -> None:
    """Whoever imports this module may load pipelines that name it."""
    try:
        from haystack.core.serialization import allow_deserialization_module
    except ImportError:  # a Haystack that loads any module
        return
    allow_deserialization_module(__name__)


_trusted()


@component
class DSPyRanker:
    """Reranks documents with any model, sorter and compiled program.

    Documents come back as copies with their ids, best first, with the judge's score (``None``
    where the sorter has none); duplicates are kept. Their meta gains ``retrieval_score``,
    ``rerank_confidence`` where it is known, ``low_confidence`` where a threshold is set,
    ``rerank_degraded`` and ``rerank_unjudged``. Documents without text are not judged and come
    last. If the model keeps failing, the documents come back as they came in, with their
    retrieval scores, unless ``raise_on_failure`` is set; wrong keys always raise.

    Args:
        reranker: A reranker, the path of a saved program, its content, or ``None`` for the
            default of the model. Pipelines are written with the path, or with the program itself.
        lm: A DSPy LM or a model's name for this component; ``None`` takes DSPy's. Only a name
            can be written.
        top_k: How many documents to keep; ``None`` is all.
        confidence_threshold: In [0, 1]: less confident documents are flagged, never dropped.
        raise_on_failure: Raise when the model keeps failing.
        inputs: Further inputs of the judge's signature, or options such as ``deadline``.

    Raises:
        InputError: ``top_k`` is not at least 1.
    """

    def __init__(
        self,
        reranker: Source = None,
        *,
        lm: Any = None,
        top_k: int | None = 10,
        confidence_threshold: float | None = None,
        raise_on_failure: bool = False,
        inputs: dict[str, Any] | None = None,
    ):
        self.reranker = reranker
        self.lm = lm
        self.top_k = _checked(top_k)
        self.confidence_threshold = confidence_threshold
        self.raise_on_failure = raise_on_failure
        self.inputs = inputs
        self._reranks: Reranks | None = None

    def warm_up(self) -> None:
        """Read the program and make its language model.

        Raises:
            ProgramError: The saved program does not fit.
        """
        if self._reranks is None:
            self._reranks = opened(self.reranker, self.lm)

    def to_dict(self) -> dict[str, Any]:
        """The component as plain values.

        Raises:
            ProgramError: The reranker or its language model cannot be written.
        """
        return default_to_dict(
            self,
            reranker=written(self.reranker),
            lm=written_lm(self.lm),
            top_k=self.top_k,
            confidence_threshold=self.confidence_threshold,
            raise_on_failure=self.raise_on_failure,
            inputs=self.inputs,
        )

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "DSPyRanker":
        """The component that :meth:`to_dict` described."""
        return default_from_dict(cls, data)

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Rerank documents.

        Args:
            query: What is looked for; not blank.
            documents: In the retriever's order.
            top_k: For this run only.

        Returns:
            ``documents``: at most ``top_k``, best first.
        """
        return run_sync(self.run_async(query, documents, top_k))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """As :meth:`run`, on the caller's event loop."""
        self.warm_up()
        assert self._reranks is not None
        k = self.top_k if top_k is None else _checked(top_k)
        wanted = Wanted(k, self.confidence_threshold, self.raise_on_failure, self.inputs or {})
        texts = [document.content for document in documents]
        scores = [document.score for document in documents]
        places, _ = await arank(self._reranks, query, texts, scores, wanted)
        return {"documents": [_moved(documents[place.index], place) for place in places]}


def _checked(top_k: int | None) -> int | None:
    if top_k is not None and top_k < 1:
        raise InputError(f"top_k={top_k}; expected at least 1, or None for all")
    return top_k


def _moved(document: Document, place: Placed) -> Document:
    first = {} if document.score is None else {RETRIEVAL: document.score}
    meta = {**first, **document.meta, **place.notes}
    return replace(document, score=place.score, meta=meta)
