"""A LangChain document compressor: ``pip install 'dspy-rerank[langchain]'``."""

from collections.abc import Sequence
from typing import Any

from ..background import run_sync
from ._extras import needs
from ._ranking import Wanted, arank
from ._source import Reranks, Source, opened, written, written_lm

with needs("langchain", "dspy_rerank.integrations.langchain"):
    from langchain_core.callbacks import Callbacks
    from langchain_core.documents import BaseDocumentCompressor, Document
    from langchain_core.runnables import RunnableConfig, RunnableLambda
    from pydantic import ConfigDict, Field, PrivateAttr, field_serializer

SCORE = "relevance_score"


class DSPyRerank(BaseDocumentCompressor):
    """Reranks documents with any model, sorter and compiled program.

    Documents come back as copies with their ids, best first. Their metadata gains
    ``relevance_score`` (``None`` where the sorter has none), ``rerank_confidence`` where it is
    known, ``low_confidence`` where a threshold is set, ``rerank_degraded`` and
    ``rerank_unjudged``. Blank documents are not judged and come last. If the model keeps failing,
    the documents come back in the order in which they came, unless ``raise_on_error`` is set;
    wrong keys always raise. Callbacks see one run, named ``DSPyRerank``.

    Args:
        reranker: A reranker, the path of a saved program, its content, or ``None`` for the
            default of the model.
        lm: A DSPy LM or a model's name for this compressor; ``None`` takes DSPy's.
        top_n: How many documents to keep; ``None`` is all.
        confidence_threshold: In [0, 1]: less confident documents are flagged, never dropped.
        raise_on_error: Raise when the model keeps failing.
        inputs: Further inputs of the judge's signature, or options such as ``deadline``.

    Raises:
        ProgramError: The saved program does not fit.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True, extra="forbid")

    reranker: Any = None
    lm: Any = Field(default=None, repr=False)
    top_n: int | None = Field(default=None, ge=0)
    confidence_threshold: float | None = Field(default=None, ge=0, le=1)
    raise_on_error: bool = False
    inputs: dict[str, Any] = Field(default_factory=dict)
    _reranks: Reranks = PrivateAttr()

    def __init__(self, reranker: Source = None, **settings: Any):
        super().__init__(**{"reranker": reranker, **settings})
        self._reranks = opened(reranker, self.lm)

    @field_serializer("reranker")
    def _write_reranker(self, value: Any) -> Any:
        return written(value)

    @field_serializer("lm")
    def _write_lm(self, value: Any) -> str | None:
        return written_lm(value)

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """The documents reranked for the query, at most ``top_n`` of them."""
        given = {"query": query, "documents": list(documents)}
        return self._run.invoke(given, _config(callbacks))

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """As :meth:`compress_documents`, on the caller's event loop."""
        given = {"query": query, "documents": list(documents)}
        return await self._run.ainvoke(given, _config(callbacks))

    @property
    def _run(self) -> RunnableLambda[dict[str, Any], list[Document]]:
        return RunnableLambda(self._rank, self._arank, name="DSPyRerank")

    def _rank(self, given: dict[str, Any]) -> list[Document]:
        return run_sync(self._arank(given))

    async def _arank(self, given: dict[str, Any]) -> list[Document]:
        documents: list[Document] = given["documents"]
        texts = [document.page_content for document in documents]
        wanted = Wanted(self.top_n, self.confidence_threshold, self.raise_on_error, self.inputs)
        unscored = [None] * len(texts)
        places, _ = await arank(self._reranks, given["query"], texts, unscored, wanted)
        return [
            _noted(documents[place.index], {SCORE: place.score, **place.notes}) for place in places
        ]


def _config(callbacks: Callbacks | None) -> RunnableConfig:
    return RunnableConfig(callbacks=callbacks)


def _noted(document: Document, notes: dict[str, Any]) -> Document:
    return document.model_copy(update={"metadata": {**document.metadata, **notes}})
