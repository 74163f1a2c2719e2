"""A LlamaIndex node postprocessor: ``pip install 'dspy-rerank[llama-index]'``."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..background import run_sync
from ..errors import InputError
from ._extras import needs
from ._ranking import NOTES, RETRIEVAL, Placed, Wanted, arank
from ._source import Reranks, Source, model_name, opened, written, written_lm

with needs("llama-index", "dspy_rerank.integrations.llama_index"):
    from llama_index.core.bridge.pydantic import Field, PrivateAttr, field_serializer
    from llama_index.core.callbacks import CBEventType, EventPayload
    from llama_index.core.instrumentation import (
        get_dispatcher,  # pyright: ignore[reportPrivateImportUsage]
    )
    from llama_index.core.instrumentation.events.rerank import ReRankEndEvent, ReRankStartEvent
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

dispatcher = get_dispatcher(__name__)


class DSPyRerank(BaseNodePostprocessor):
    """Reranks nodes with any model, sorter and compiled program.

    Nodes come back as copies, best first, with the judge's score (``None`` where the sorter has
    none). Their metadata gains ``retrieval_score``, ``rerank_confidence`` where it is known,
    ``low_confidence`` where a threshold is set, ``rerank_degraded`` and ``rerank_unjudged``; none
    of these is shown to language or embedding models. Nodes without text, such as pictures, are
    not judged and come last. If the model keeps failing, the nodes come back as they came in,
    with their retrieval scores, unless ``raise_on_error`` is set; wrong keys always raise.

    Start and end are told to LlamaIndex's callbacks and instrumentation as rerank events.

    Args:
        reranker: A reranker, the path of a saved program, its content, or ``None`` for the
            default of the model.
        lm: A DSPy LM or a model's name for this postprocessor; ``None`` takes DSPy's.
        top_n: How many nodes to keep; ``None`` is all.
        confidence_threshold: In [0, 1]: less confident nodes are flagged, never dropped.
        raise_on_error: Raise when the model keeps failing.
        metadata_mode: Which metadata the judge reads before the text; by default what an
            embedding model would.
        inputs: Further inputs of the judge's signature, or options such as ``deadline``.

    Raises:
        ProgramError: The saved program does not fit.
    """

    reranker: Any = None
    lm: Any = Field(default=None, repr=False)
    top_n: int | None = Field(default=None, ge=0)
    confidence_threshold: float | None = Field(default=None, ge=0, le=1)
    raise_on_error: bool = False
    metadata_mode: MetadataMode = MetadataMode.EMBED
    inputs: dict[str, Any] = Field(default_factory=dict)
    _reranks: Reranks = PrivateAttr()

    def __init__(self, reranker: Source = None, **settings: Any):
        super().__init__(**{"reranker": reranker, **settings})
        self._reranks = opened(reranker, self.lm)

    @classmethod
    def class_name(cls) -> str:
        """The name under which LlamaIndex serializes this component."""
        return "DSPyRerank"

    @field_serializer("reranker")
    def _write_reranker(self, value: Any) -> Any:
        return written(value)

    @field_serializer("lm")
    def _write_lm(self, value: Any) -> str | None:
        return written_lm(value)

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self._announced(nodes, query_bundle) as done:
            return done(run_sync(self._rank(nodes, query_bundle)))

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        with self._announced(nodes, query_bundle) as done:
            return done(await self._rank(nodes, query_bundle))

    async def _rank(
        self, nodes: Sequence[NodeWithScore], query_bundle: QueryBundle | None
    ) -> list[NodeWithScore]:
        if query_bundle is None:
            raise InputError("there is no query; pass query_bundle=... or query_str=...")
        texts = [self._text(node) for node in nodes]
        scores = [node.score for node in nodes]
        wanted = Wanted(self.top_n, self.confidence_threshold, self.raise_on_error, self.inputs)
        places, _ = await arank(self._reranks, query_bundle.query_str, texts, scores, wanted)
        return [_moved(nodes[place.index], place) for place in places]

    def _text(self, node: NodeWithScore) -> str | None:
        """What the judge reads; ``None`` when there is only metadata."""
        if not node.get_content(metadata_mode=MetadataMode.NONE).strip():
            return None
        return node.get_content(metadata_mode=self.metadata_mode)

    @contextmanager
    def _announced(
        self, nodes: list[NodeWithScore], query: QueryBundle | None
    ) -> Iterator[Callable[[list[NodeWithScore]], list[NodeWithScore]]]:
        """Tells LlamaIndex of start and end; the nodes that are kept pass through."""
        name, most = model_name(self._reranks), len(nodes) if self.top_n is None else self.top_n
        asked = "" if query is None else query.query_str
        payload: dict[str, Any] = {
            EventPayload.NODES: nodes,
            EventPayload.MODEL_NAME: name,
            EventPayload.QUERY_STR: asked,
            EventPayload.TOP_K: most,
        }
        dispatcher.event(ReRankStartEvent(query=query, nodes=nodes, top_n=most, model_name=name))
        with self.callback_manager.event(CBEventType.RERANKING, payload=payload) as event:

            def done(kept: list[NodeWithScore]) -> list[NodeWithScore]:
                event.on_end(payload={EventPayload.NODES: kept})
                dispatcher.event(ReRankEndEvent(nodes=kept))
                return kept

            yield done


def _moved(given: NodeWithScore, place: Placed) -> NodeWithScore:
    """A copy of a node in its new place; the caller's own, and the store's, stay as they are."""
    node = given.node
    first = {} if given.score is None else {RETRIEVAL: given.score}
    metadata = {**first, **node.metadata, **place.notes}
    hidden = {
        name: list(dict.fromkeys([*getattr(node, name), *NOTES]))
        for name in ("excluded_llm_metadata_keys", "excluded_embed_metadata_keys")
    }
    copy = node.model_copy(update={"metadata": metadata, **hidden})
    return NodeWithScore(node=copy, score=place.score)
