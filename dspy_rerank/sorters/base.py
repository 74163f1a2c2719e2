"""The module around a plan: documents in, a Ranking out."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

import dspy

from ..background import run_sync
from ..documents import as_documents, check_query, check_top_k
from ..engine import AskError, Engine, Result
from ..errors import InputError, ModelError
from ..judges.protocol import Judge, checked_judge, settled
from ..judges.sureness import wanting
from ..memo import memo_for
from ..options import NAMES, Options, checked, split_options
from ..prior import SOURCES, blend, first_stage
from ..ranking import Ranking, assemble, confidences
from ..settings import Settings
from ..types import Document, Estimate, Kind, Outcome, Plan
from .estimates import counted, estimated, fitted
from .many import ManyQueries
from .plans import Shape, order_by_score

logger = logging.getLogger(__name__)


class Reranker(ManyQueries, dspy.Module):
    """A judge and the algorithm that decides what to ask it: a reranker.

    Call it with ``query``, ``documents`` and perhaps ``top_k``; further keywords are inputs of the
    judge's signature, or options for this call only (``deadline=0.5``).

    A saved program also carries ``card``: how it was compiled, from what, with what result.

    Args:
        judge: Answers the questions.
        prior: Weight of the first stage in the final order, in [0, 1].
        prior_from: What of the first stage: ``rank``, or ``score`` where every document has one.
        prior_spread: How far the judge's scores are apart within a query, by which they are
            divided before they are blended; ``None`` measures it on each query.
        options: See :class:`dspy_rerank.options.Options`.
    """

    KINDS: ClassVar[tuple[Kind, ...]]
    SCORED: ClassVar[bool] = False
    """Whether the plan gives scores that a prior can be blended with."""
    PRIOR_IS_FREE: ClassVar[bool] = True
    """Whether another weight of the prior asks no new questions."""

    def __init__(self, judge: Any, **settings: Any):
        super().__init__()
        self.judge = self._fitting(judge)
        self._configure({}, **settings)

    def _configure(
        self,
        own: Mapping[str, Any],
        *,
        prior: float = 0.0,
        prior_from: str = "rank",
        prior_spread: float | None = None,
        **options: Any,
    ) -> None:
        """Store the settings; ``own`` are those of the one algorithm."""
        if prior_from not in SOURCES:
            raise InputError(f"prior_from={prior_from!r}; expected {' or '.join(SOURCES)}")
        if prior_spread is not None and not prior_spread > 0:
            raise InputError(f"prior_spread={prior_spread!r}; expected a number above 0, or None")
        first = {
            "prior": self._weight(prior), "prior_from": prior_from, "prior_spread": prior_spread,
        }  # fmt: skip
        self.settings = Settings(**first, **own, **checked(options))
        self.card: dict[str, Any] = {}

    def _fitting(self, judge: Any) -> Any:
        return checked_judge(judge, self.KINDS, type(self).__name__)

    def _weight(self, prior: float) -> float:
        if not isinstance(prior, int | float) or not 0 <= prior <= 1:
            raise InputError(f"prior={prior!r}; expected a weight from 0 to 1")
        if prior and not self.SCORED:
            raise InputError(
                f"{type(self).__name__} has no scores to blend with a prior; "
                "use ScoreSort, AllPairs or TopDown"
            )
        return float(prior)

    def _in_pairs_only(self, name: str, most: str) -> None:
        """A pairwise judge cannot answer questions about more than two passages."""
        if self.judge.kind == "pairwise":
            raise InputError(
                f"{name} must be {most} with a pairwise judge, which compares two passages; "
                "for larger groups use a setwise or listwise judge"
            )

    def _plan(self, n: int, top_k: int, evidence: Sequence[float]) -> Plan:
        """The algorithm over ``n`` candidates; ``evidence`` is the first stage's, z-scored."""
        raise NotImplementedError

    def _shape(self, n: int, top_k: int) -> Shape:
        """What the plan asks for ``n`` candidates, in questions about groups."""
        raise NotImplementedError

    def forward(
        self,
        query: str,
        documents: Iterable[Any],
        top_k: int | None = None,
        *,
        text: Callable[[Any], str] | None = None,
        **inputs: Any,
    ) -> dspy.Prediction:
        """Rank documents; see :meth:`aforward`."""
        return run_sync(self.aforward(query, documents, top_k, text=text, **inputs))

    async def aforward(
        self,
        query: str,
        documents: Iterable[Any],
        top_k: int | None = None,
        *,
        text: Callable[[Any], str] | None = None,
        **inputs: Any,
    ) -> dspy.Prediction:
        """Rank documents.

        Args:
            query: What is looked for; not blank.
            documents: Strings, mappings with a text, Documents, or anything with ``text=``.
            top_k: How many to return; ``None`` is all, 0 none.
            text: Gets the text out of an object of the caller's.
            inputs: Further inputs of the judge's signature, or options for this call.

        Returns:
            A prediction with ``ranking``, a :class:`dspy_rerank.Ranking`.

        Raises:
            InputError: A parameter has an unusable value, or an input is missing or unknown.
            DocumentTypeError: A document cannot be read.
            NoModelError: A model is needed and none is configured.
            EvidenceError: The model cannot give the evidence that the judge is set to.
            JudgeError: A function used as judge returned something that is not an answer.
            ModelError: The model kept failing and ``on_error`` is ``raise``.
            dspy.LMError: Authentication or configuration is wrong.
        """
        check_query(query)
        read = as_documents(documents, text)
        k = check_top_k(top_k, len(read))
        given, extra = split_options(inputs)
        options = self._options(given)
        self._check_inputs(extra)
        return dspy.Prediction(ranking=await self._rank(query, read, k, extra, options))

    def _options(self, given: Mapping[str, Any]) -> Options:
        stored = {name: self.settings[name] for name in NAMES}
        return Options(**{**stored, **given})

    def _check_inputs(self, inputs: Mapping[str, Any]) -> None:
        wanted = self.judge.extra_inputs
        if wanted is None:
            return
        for name in inputs:
            if name not in wanted:
                raise InputError(
                    f"unknown input {name!r}: the judge's signature takes "
                    f"{', '.join(wanted) or 'no further inputs'}; options are {', '.join(NAMES)}"
                )
        missing = [name for name in wanted if name not in inputs]
        if missing:
            raise InputError(
                f"the judge's signature needs {', '.join(missing)}; "
                f"pass {missing[0]}=... with the query and the documents"
            )

    async def _rank(
        self,
        query: str,
        documents: Sequence[Document],
        top_k: int,
        inputs: Mapping[str, Any],
        options: Options,
    ) -> Ranking:
        if not self._has_to_ask(len(documents), top_k):
            least = options.confidence_threshold
            return assemble(query, documents, range(top_k), confidence_threshold=least)
        judge = self.judge.ready()
        passages, cut = fitted([d.text for d in documents], options.max_passage_tokens)
        engine = Engine(
            judge, query, passages, inputs, options, memo_for(judge, query, passages, inputs)
        )
        evidence = first_stage(documents, self.settings["prior_from"])
        try:
            result = await engine.run(self._plan(len(documents), top_k, evidence))
        except AskError as error:
            return self._failed(error, query, documents, top_k, options, cut)
        result = result._replace(judgments=settled(judge, result.judgments))
        return self._concluded(judge, result, query, documents, top_k, evidence, cut, options)

    def _has_to_ask(self, n: int, top_k: int) -> bool:
        return top_k > 0 and (n > 1 or (n == 1 and self.judge.kind == "pointwise"))

    def _failed(
        self,
        error: AskError,
        query: str,
        documents: Sequence[Document],
        top_k: int,
        options: Options,
        cut: tuple[int, ...],
    ) -> Ranking:
        """The incoming order, marked: judged and unjudged documents are never mixed."""
        status = getattr(error.cause, "status", None)  # an error's words may quote a passage
        said = f"{type(error.cause).__name__}{f', status {status}' if status else ''}"
        facts = {"error": type(error.cause).__name__}
        logger.warning("ranking degraded to the incoming order: %s", said, extra={"facts": facts})
        if options.on_error == "raise":
            raise ModelError(f"the ranking failed: {error}") from error.cause
        return assemble(
            query, documents, range(top_k), usage=error.usage, degraded=True,
            reasons=(str(error),), truncated=cut,
            confidence_threshold=options.confidence_threshold,
        )  # fmt: skip

    def _concluded(
        self,
        judge: Judge,
        result: Result,
        query: str,
        documents: Sequence[Document],
        top_k: int,
        evidence: Sequence[float],
        cut: tuple[int, ...],
        options: Options,
    ) -> Ranking:
        outcome = self._blended(result.outcome, evidence)
        modes = sorted({judgment.evidence for judgment in result.judgments})
        return assemble(
            query,
            documents,
            outcome.order[:top_k],
            scores=outcome.scores,
            confidences=confidences(result.judgments),
            confidence_threshold=options.confidence_threshold,
            judgments=result.judgments,
            usage=result.usage,
            degraded=bool(result.stopped),
            reasons=(result.stopped,) if result.stopped else (),
            notes=wanting(judge, result.judgments),
            evidence=", ".join(modes),
            truncated=tuple(sorted({*cut, *(p for j in result.judgments for p in j.cut)})),
        )

    def _blended(self, outcome: Outcome, evidence: Sequence[float]) -> Outcome:
        weight = self.settings["prior"]
        if outcome.scores is None or not weight or not self.PRIOR_IS_FREE:
            return outcome
        mixed = blend(outcome.scores, evidence, weight, self.settings["prior_spread"])
        return Outcome(order_by_score(mixed), tuple(mixed))

    def estimate(
        self,
        n: int | None = None,
        top_k: int | None = None,
        *,
        query: str = "",
        documents: Iterable[Any] | None = None,
    ) -> Estimate:
        """What a ranking would cost, before anything is spent.

        Args:
            n: Number of candidates; may be left out where ``documents`` are given.
            top_k: As in a call.
            query: For the token estimate.
            documents: For the token estimate: as in a call, ``n`` of them.

        Returns:
            Exact counts, or a :class:`dspy_rerank.types.Span` where they depend on the answers.
            Repeated questions, retries and re-asks come on top.
        """
        read = None if documents is None else as_documents(documents)
        n = counted(n, read)
        k = check_top_k(top_k, n)
        if not self._has_to_ask(n, k):
            return Estimate(0, 0, 0, None if documents is None else 0)
        asks = len(self.judge.presentations((0, 1), query, 0)) if n > 1 else 1
        given = [document.text for document in read or ()]
        texts, _ = fitted(given, self.settings["max_passage_tokens"])
        return estimated(self._shape(n, k), asks, self.judge, query, texts)

    def __repr__(self) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]
        return f"{type(self).__name__}({self.judge!r})"
