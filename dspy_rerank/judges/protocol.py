"""What the engine asks of a judge. Anything that does this can be one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

from ..errors import InputError
from ..types import Failure, Group, Judgment, Kind, Usage


@dataclass(frozen=True)
class Question:
    """One question: these passages, in this order.

    Attributes:
        query: What is looked for.
        passages: Texts in the order in which they are shown.
        inputs: Further inputs of the judge's signature.
        complaint: Why the last answer to this question could not be read, when it is asked again.
        rollout: Which of several answers to the same question this is to be, from 0.
    """

    query: str
    passages: tuple[str, ...]
    inputs: Mapping[str, Any] = field(default_factory=dict)
    complaint: str = ""
    rollout: int = 0


class Answer(NamedTuple):
    """A judgment over the places ``0..m-1`` of one question, and what it cost."""

    judgment: Judgment
    usage: Usage


@runtime_checkable
class Judge(Protocol):
    """Answers questions about groups of passages; knows nothing of sorting.

    Contract: ``ask`` raises only for failures of the model (classified by ``failure``); an answer
    that cannot be read is a Judgment with status ``unknown``. No method changes its arguments.
    """

    @property
    def kind(self) -> Kind:
        """Which kind of judgment comes out."""
        ...

    @property
    def extra_inputs(self) -> tuple[str, ...] | None:
        """Names of the further inputs that every question must carry; ``None`` takes any."""
        ...

    def ready(self) -> "Judge":
        """The judge that will answer, chosen now by what the language model can do.

        Raises:
            NoModelError: It needs a language model and there is none.
            EvidenceError: The language model cannot give the evidence asked for.
        """
        ...

    def presentations(self, group: Group, query: str, seed: int) -> tuple[Group, ...]:
        """The orders in which a group is shown, one question each; one may come several times."""
        ...

    async def ask(self, question: Question) -> Answer:
        """Answer one question with one call."""
        ...

    def combine(self, group: Group, judgments: Sequence[Judgment]) -> Judgment:
        """One judgment out of those for all presentations, by position."""
        ...

    def failure(self, error: BaseException) -> Failure:
        """Whether an error of ``ask`` is worth another try."""
        ...


def checked_judge(judge: Any, kinds: Sequence[Kind] = (), user: str = "") -> Any:
    """The judge, once it is clear that it is one and of a kind that fits.

    Args:
        judge: As it was given.
        kinds: Those that fit; none given is any.
        user: What it is for, such as ``ScoreSort``.

    Raises:
        InputError: It is a class, no judge at all, or of another kind.
    """
    if isinstance(judge, type):
        name = judge.__name__
        raise InputError(f"expected a judge, got the class {name}; did you mean {name}()?")
    if not isinstance(judge, Judge):
        raise InputError(
            f"judge is {type(judge).__name__}; expected a judge such as PairwiseJudge() or "
            "FunctionJudge(fn)"
        )
    if kinds and judge.kind not in kinds:
        raise InputError(f"{user} cannot use a {judge.kind} judge; it needs {' or '.join(kinds)}")
    return judge


@runtime_checkable
class Settles(Protocol):
    """A judge that can say more once all judgments of one query are there."""

    def settled(self, judgments: Sequence[Judgment]) -> Sequence[Judgment]:
        """The same judgments, in their order, with what only all of them tell; scores stay."""
        ...


def settled(judge: Judge, judgments: Sequence[Judgment]) -> tuple[Judgment, ...]:
    """A query's judgments as its judge sees them in the end."""
    return tuple(judge.settled(judgments) if isinstance(judge, Settles) else judgments)
