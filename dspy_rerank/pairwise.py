"""Ranking of anything by comparisons, from best to worst, with the record of every comparison."""

import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

import dspy

from .defaults import resolve_lm
from .documents import TEXT_KEYS
from .errors import InputError, JudgeError
from .judges import FunctionJudge, PairwiseJudge
from .ranking import Ranking
from .sorters import MergeSort
from .types import Document, Judgment, Usage

TASK = "Which candidate is better?"
JUDGE_OPTIONS = frozenset(
    {"instructions", "evidence", "reasoning", "adapter", "temperature", "max_tokens", "swap"}
)

Compare = Callable[[Any, Any, dict[str, Any]], Any]


class PreferCandidate(dspy.Signature):
    """Decide which of two candidates fulfils the task better, by the criteria.

    Answer with the letter of the better candidate only, or Tie when they are equally good.
    """

    query: str = dspy.InputField(desc="the task")
    criteria: str = dspy.InputField()
    passages: str = dspy.InputField(desc="the candidates")
    winner: str = dspy.OutputField(desc="A, B or Tie")


class _Record:
    """Fields of a frozen dataclass can be read as items, too: ``row["wins"]`` is ``row.wins``."""

    def __getitem__(self, name: str) -> Any:
        if name not in self.__dataclass_fields__:  # pyright: ignore[reportAttributeAccessIssue]
            raise KeyError(name)
        return getattr(self, name)


@dataclass(frozen=True)
class Comparison(_Record):
    """One comparison.

    Attributes:
        left_index: Position of the left candidate in the incoming list.
        right_index: Position of the right one.
        winner: Which is better; ``unknown`` when no answer could be read.
        confidence: Probability of the winner in [0, 1]; ``None`` when nothing tells.
        confidence_source: Where the confidence comes from.
        reasoning: What was said for it, or why there is no winner; may be empty.
    """

    left_index: int
    right_index: int
    winner: Literal["left", "right", "tie", "unknown"]
    confidence: float | None = None
    confidence_source: str = "none"
    reasoning: str = ""


@dataclass(frozen=True)
class CandidateScore(_Record):
    """How one candidate fared.

    Attributes:
        index: Position in the incoming list.
        candidate: The object as given.
        wins: Comparisons won.
        losses: Comparisons lost.
        ties: Comparisons without a winner.
        comparisons: All of these.
        score: Share of comparisons won, a tie counting half; ``None`` without any. Opponents
            differ, so the order of ``ranked`` need not follow it.
        avg_confidence: Mean over the comparisons that have a confidence, else ``None``.
    """

    index: int
    candidate: Any
    wins: int = 0
    losses: int = 0
    ties: int = 0
    comparisons: int = 0
    score: float | None = None
    avg_confidence: float | None = None


@dataclass(frozen=True)
class PairwiseRanking(_Record):
    """Candidates in order, and what the order rests on.

    Attributes:
        ranked: The candidates as given, best first.
        scores: One entry a candidate, in incoming order.
        comparisons: In the order asked; each pair at most once.
        indices: Positions of ``ranked`` in the incoming list.
        usage: What it cost.
        degraded: The model failed or a limit was reached; ``reasons`` says why.
    """

    ranked: list[Any]
    scores: list[CandidateScore]
    comparisons: list[Comparison]
    indices: list[int] = field(default_factory=list)
    usage: Usage = field(default_factory=Usage)
    degraded: bool = False
    reasons: tuple[str, ...] = ()


def pairwise_rerank(
    candidates: Iterable[Any],
    *,
    task: str = TASK,
    criteria: str | Sequence[str] | None = None,
    compare: Compare | None = None,
    llm_options: Mapping[str, Any] | None = None,
    model_tier: str | None = None,
) -> PairwiseRanking:
    """Rank candidates by comparing pairs of them: about ``n log2 n - n`` comparisons.

    A merge sort, so no pair is compared twice and a tie keeps the incoming order. A model is
    asked for each pair in both orders (two calls, one with ``swap=False``).

    Args:
        candidates: Strings, Documents, mappings, or any objects; a model reads the text of an
            object, or its JSON, or ``str(object)``.
        task: What the candidates are compared for.
        criteria: What makes one better.
        compare: Decides instead of a model, which is then never asked:
            ``compare(left, right, ctx)`` gets the objects and a mapping with ``task``,
            ``criteria``, ``left_index`` and ``right_index``. It may be asynchronous, else it runs
            in worker threads, several at once unless ``concurrency`` is 1. It returns
            ``left/right/tie``, ``A/B``, ``first/second`` or ``equal``; a number (positive for
            left, negative for right, zero for a tie); a bool (true for left); or a mapping with
            ``winner`` (or ``preferred``, ``choice``, ``better``, ``result``) and perhaps
            ``confidence`` in [0, 1] and ``reasoning`` (or ``reason``, ``explanation``). ``None``
            says that it does not know.
        llm_options: ``lm`` or ``model`` (a DSPy LM or a name), ``temperature``, ``max_tokens``,
            ``reasoning``, ``evidence``, ``swap``, and every option of
            :class:`dspy_rerank.Options`, such as ``concurrency`` or ``max_calls``.
        model_tier: Name of the model, usually an alias such as ``cheap`` that
            ``dspy_rerank.models.load`` has read from a configuration.

    Raises:
        InputError: An argument has an unusable value.
        JudgeError: ``compare`` raised, or returned something that is not an answer.
        NoModelError: A model is needed and there is none.
        ModelError: The model kept failing and ``on_error`` is ``raise``.
        dspy.LMError: Authentication or configuration is wrong.
    """
    objects = _objects(candidates)
    options = dict(llm_options or {})
    wanted = [options.pop(name, None) for name in ("lm", "model")]
    named = next((name for name in (*wanted, model_tier) if name is not None), None)
    words = _words(criteria)
    if compare is not None:
        ranking = _by_function(objects, compare, {"task": task, "criteria": criteria}, options)
    else:
        ranking = _by_model(objects, task, words, options, named)
    return _concluded(objects, ranking)


def _objects(candidates: Iterable[Any]) -> list[Any]:
    if isinstance(candidates, str | bytes | Mapping) or not isinstance(candidates, Iterable):
        raise InputError(f"candidates is one {type(candidates).__name__}; expected a list of them")
    return list(candidates)


def _words(criteria: str | Sequence[str] | None) -> str:
    """Criteria as one text; several become a list with dashes."""
    if criteria is None or isinstance(criteria, str):
        return (criteria or "").strip()
    return "\n".join(f"- {criterion}" for criterion in criteria)


def _by_function(
    objects: Sequence[Any], compare: Compare, about: Mapping[str, Any], options: Mapping[str, Any]
) -> Ranking:
    """The sort over positions: a function sees the objects, never their texts."""

    def decide(query: str, places: Sequence[str]) -> Any:
        left, right = map(int, places)
        ctx = {**about, "left_index": left, "right_index": right}
        with _blaming(left, right):
            result = compare(objects[left], objects[right], ctx)
        return _awaited(result, left, right) if inspect.isawaitable(result) else result

    own = {name: value for name, value in options.items() if name not in JUDGE_OPTIONS}
    places = [Document(str(place)) for place in range(len(objects))]
    return MergeSort(FunctionJudge(decide), **own)("compare", places).ranking


@contextmanager
def _blaming(left: int, right: int) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise JudgeError(
            f"compare raised {type(error).__name__} for candidates {left} and {right}: {error}"
        ) from error


async def _awaited(result: Awaitable[Any], left: int, right: int) -> Any:
    with _blaming(left, right):
        return await result


def _by_model(
    objects: Sequence[Any], task: str, criteria: str, options: Mapping[str, Any], named: Any
) -> Ranking:
    asked = {name: value for name, value in options.items() if name in JUDGE_OPTIONS}
    own = {name: value for name, value in options.items() if name not in JUDGE_OPTIONS}
    judge = PairwiseJudge(PreferCandidate if criteria else None, **asked)
    inputs = {"criteria": criteria} if criteria else {}
    sorter = MergeSort(judge, **own)
    documents = [Document(_text(candidate)) for candidate in objects]
    if len(documents) < 2:
        return sorter(task, documents, **inputs).ranking
    with dspy.context(lm=resolve_lm(named)):
        return sorter(task, documents, **inputs).ranking


def _text(candidate: Any) -> str:
    """What a model reads of a candidate."""
    if isinstance(candidate, str | Document):
        return candidate if isinstance(candidate, str) else candidate.text
    if isinstance(candidate, Mapping | list | tuple):
        values = candidate if isinstance(candidate, Mapping) else {}
        found = next((values[k] for k in TEXT_KEYS if isinstance(values.get(k), str)), None)
        return found or json.dumps(candidate, ensure_ascii=False, default=str)
    return str(candidate)


def _concluded(objects: Sequence[Any], ranking: Ranking) -> PairwiseRanking:
    comparisons = [_comparison(judgment) for judgment in ranking.judgments]
    return PairwiseRanking(
        ranked=[objects[index] for index in ranking.indices],
        scores=[_score(place, item, comparisons) for place, item in enumerate(objects)],
        comparisons=comparisons,
        indices=ranking.indices,
        usage=ranking.usage,
        degraded=ranking.degraded,
        reasons=ranking.reasons,
    )


def _comparison(judgment: Judgment) -> Comparison:
    left, right = judgment.group
    winner: Any = "left" if judgment.best == left else "right"
    if not judgment.known:
        winner = "unknown"
    elif judgment.best is None or judgment.tie:
        winner = "tie"
    said = judgment.reason or ("" if judgment.evidence == "function" else judgment.raw)
    return Comparison(
        left, right, winner, judgment.confidence, judgment.confidence_source, said.strip()
    )


def _score(place: int, candidate: Any, comparisons: Sequence[Comparison]) -> CandidateScore:
    mine = [c for c in comparisons if place in (c.left_index, c.right_index)]
    known = [c for c in mine if c.winner != "unknown"]
    ties = sum(c.winner == "tie" for c in known)
    wins = sum(
        (c.winner == "left" and c.left_index == place)
        or (c.winner == "right" and c.right_index == place)
        for c in known
    )
    sure = [c.confidence for c in known if c.confidence is not None]
    return CandidateScore(
        index=place,
        candidate=candidate,
        wins=wins,
        losses=len(known) - wins - ties,
        ties=ties,
        comparisons=len(known),
        score=(wins + 0.5 * ties) / len(known) if known else None,
        avg_confidence=sum(sure) / len(sure) if sure else None,
    )
