"""What comes out: every document once, with its audit trail and its price."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from importlib import import_module
from itertools import pairwise
from typing import Any, overload

from .shown import bill, lines, page
from .trec import names, run_line
from .types import Document, Judgment, Usage


@dataclass(frozen=True)
class Ranked:
    """One document in its place.

    Attributes:
        document: As it was given.
        rank: From 1.
        index: Position in the incoming list, from 0.
        score: Higher is better; ``None`` where the algorithm has none or the judge did not say.
        confidence: In [0, 1]: mean over the judgments that concern this document and have one.
        truncated: The judge did not see the end of the text.
        low_confidence: The confidence is known and below the threshold that was set.
    """

    document: Document
    rank: int
    index: int
    score: float | None = None
    confidence: float | None = None
    truncated: bool = False
    low_confidence: bool = False

    @property
    def text(self) -> str:
        """The document's text."""
        return self.document.text

    @property
    def id(self) -> str | None:
        """The document's id."""
        return self.document.id


@dataclass(frozen=True)
class Ranking(Sequence[Ranked]):
    """A sequence of :class:`Ranked`, best first.

    Attributes:
        query: What was ranked for.
        items: The ranked documents.
        judgments: Everything the judge said, in the order asked.
        usage: What it cost.
        degraded: The order is not what the sorter would have found with every answer: the model
            failed (then it is the incoming order) or a limit was reached.
        reasons: Why it is degraded.
        notes: What to know of a ranking that is whole, such as evidence that was asked for and not
            given.
        n: How many documents came in.
        evidence: How answers were taken out of the model.
        truncated: Positions of documents that were cut for the judge.
        confidence_threshold: Below which documents are flagged, if that was asked for.
    """

    query: str
    items: tuple[Ranked, ...]
    judgments: tuple[Judgment, ...] = ()
    usage: Usage = field(default_factory=Usage)
    degraded: bool = False
    reasons: tuple[str, ...] = ()
    n: int = 0
    evidence: str = ""
    truncated: tuple[int, ...] = ()
    confidence_threshold: float | None = None
    notes: tuple[str, ...] = ()

    @overload
    def __getitem__(self, place: int) -> Ranked: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Ranked]: ...
    def __getitem__(self, place: int | slice) -> Ranked | Sequence[Ranked]:
        """The document at a place, from 0."""
        return self.items[place]

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Ranked]:
        return iter(self.items)

    @property
    def ranking(self) -> "Ranking":
        """Itself, so that what reads a sorter's prediction reads ``dr.rerank``'s answer, too."""
        return self

    @property
    def indices(self) -> list[int]:
        """Positions in the incoming list, best first."""
        return [item.index for item in self.items]

    @property
    def documents(self) -> list[Document]:
        """The documents, best first."""
        return [item.document for item in self.items]

    @property
    def scores(self) -> list[float | None]:
        """The scores, best first."""
        return [item.score for item in self.items]

    @property
    def unknowns(self) -> int:
        """How many judgments say nothing: could not be read, were not asked for or cut short."""
        return sum(not judgment.known for judgment in self.judgments)

    @property
    def unasked(self) -> int:
        """How many of the unknowns were never asked, as a limit had been reached."""
        return sum(not (judgment.known or judgment.asks) for judgment in self.judgments)

    @property
    def cut_short(self) -> int:
        """How many of the unknowns a limit ended when they had been asked, wholly or in part."""
        asked = [judgment for judgment in self.judgments if judgment.asks and not judgment.known]
        return sum(judgment.reason.endswith(self.reasons) for judgment in asked)

    @property
    def repaired(self) -> int:
        """How many judgments were read after dropping or adding ids; each has its ``reason``."""
        return sum(judgment.status == "repaired" for judgment in self.judgments)

    @property
    def low_confidence(self) -> list[int]:
        """Positions of the documents that are flagged, best first."""
        return [item.index for item in self.items if item.low_confidence]

    def to_dict(self, *, judgments: bool = True) -> dict[str, Any]:
        """The ranking as JSON values; without the texts of the judgments' passages.

        Args:
            judgments: Whether they come with it.
        """
        told = {
            "query": self.query,
            "n": self.n,
            "ranking": [_row(item) for item in self.items],
            "unknowns": self.unknowns,
            "unasked": self.unasked,
            "cut_short": self.cut_short,
            "repaired": self.repaired,
            "degraded": self.degraded,
            "reasons": list(self.reasons),
            "notes": list(self.notes),
            "evidence": self.evidence,
            "truncated": list(self.truncated),
            "confidence_threshold": self.confidence_threshold,
            "usage": asdict(self.usage),
        }
        if judgments:
            told["judgments"] = [_judgment(judgment) for judgment in self.judgments]
        return told

    def to_trec(self, qid: str = "1", tag: str = "dspy_rerank") -> str:
        """Lines of a TREC run; a document without id goes by its position.

        TREC tools sort by score again, so scores that do not fall strictly with the rank (ties,
        none at all) are replaced by ``n - rank + 1``.

        Raises:
            DataError: An id or the tag is empty or holds white space.
            InputError: Two documents go by one id.
        """
        ids = names(qid, ((item.index, item.id) for item in self.items))
        given = [item.score for item in self.items]
        falling = all(a is not None and b is not None and a > b for a, b in pairwise(given))
        usable = falling and None not in given
        scores = (
            float(item.score or 0.0) if usable else self.n - item.rank + 1 for item in self.items
        )
        rows = [
            run_line(qid, name, item.rank, score, tag)
            for name, item, score in zip(ids, self.items, scores, strict=True)
        ]
        return "\n".join(rows) + ("\n" if rows else "")

    def to_pandas(self) -> Any:
        """A data frame, one row a document.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            from .errors import MissingExtraError

            raise MissingExtraError("to_pandas() needs pandas: pip install pandas") from None
        return pd.DataFrame([_row(item) for item in self.items], columns=list(_COLUMNS))

    def __str__(self) -> str:
        return self.table()

    def table(self, width: int = 90) -> str:
        """One line a document, cut to a width in characters, then the bill."""
        return "\n".join([*lines(self, width), self.summary()])

    def __repr__(self) -> str:
        return f"<Ranking of {len(self)}/{self.n}: {self.summary()}>"

    def summary(self) -> str:
        """One line: what it cost and whether anything went wrong."""
        return bill(self)

    def plot(self, most: int | None = 30) -> Any:
        """What moved, by how much, how sure: :func:`dspy_rerank.seeing.moves`."""
        return import_module(".seeing", __package__).moves(self, most)

    def replay(self) -> Any:
        """Which answers decided: :func:`dspy_rerank.seeing.replay`."""
        return import_module(".seeing", __package__).replay(self)

    def _repr_html_(self) -> str:
        return page(self)


_COLUMNS = (
    "rank", "index", "id", "score", "confidence", "low_confidence", "truncated", "text",
)  # fmt: skip

_FACTS = tuple(fact.name for fact in fields(Judgment))


def _row(item: Ranked) -> dict[str, Any]:
    return {name: getattr(item, name) for name in _COLUMNS}


def _judgment(judgment: Judgment) -> dict[str, Any]:
    told = ((name, getattr(judgment, name)) for name in _FACTS)
    return {name: value for name, value in told if value not in (None, "", ())}


def assemble(
    query: str,
    documents: Sequence[Document],
    order: Sequence[int],
    *,
    scores: Sequence[float | None] | None = None,
    confidences: Mapping[int, float] | None = None,
    confidence_threshold: float | None = None,
    **fields: Any,
) -> Ranking:
    """A ranking of ``documents`` in ``order``, which may stop early."""
    cut, sure = set(fields.get("truncated", ())), confidences or {}
    least = -1.0 if confidence_threshold is None else confidence_threshold
    items = tuple(
        Ranked(
            document=documents[position],
            rank=rank,
            index=position,
            score=None if scores is None else scores[position],
            confidence=sure.get(position),
            truncated=position in cut,
            low_confidence=sure.get(position, 1.0) < least,
        )
        for rank, position in enumerate(order, 1)
    )
    fields["confidence_threshold"] = confidence_threshold
    return Ranking(query=query, items=items, n=len(documents), **fields)


def confidences(judgments: Sequence[Judgment]) -> dict[int, float]:
    """Mean confidence of the judgments that concern each position, where there are any."""
    seen: dict[int, list[float]] = {}
    for judgment in judgments:
        if judgment.confidence is not None:
            for position in judgment.group:
                seen.setdefault(position, []).append(judgment.confidence)
    return {position: sum(values) / len(values) for position, values in seen.items()}
