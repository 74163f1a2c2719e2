"""All that a search may choose among: rerankers, and prompts for each of their judges."""

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dspy

from ..defaults import resolve_lm
from ..errors import EvidenceError, InputError
from ..sorters import Reranker
from .examples import judgment_examples
from .variants import Variant, demo_sets, with_settled_judge, wordings

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Arm:
    """A reranker with one of the prompts that may be tried on its judge.

    Attributes:
        reranker: With its judge settled.
        variant: The prompt.
        lm: Answers; ``None`` is whatever is configured.
    """

    reranker: Reranker
    variant: Variant
    lm: Any = None

    def setting(self, prior: float) -> Reranker:
        """A copy with the prompt and a weight of the first stage."""
        made = self.reranker.deepcopy()
        self.variant.apply(made.judge)
        if made.SCORED:
            made.settings.update(prior=prior)
        if self.lm is not None:
            made.set_lm(self.lm)
        return made


@dataclass(frozen=True)
class Prompts:
    """Which prompts are made for each judge.

    Attributes:
        instructions: Wordings beside the judge's own; an empty list stands for a few general
            ones, ``None`` for none at all.
        demos: Numbers of demonstrations.
        draws: Sets of each number.
        max_tokens: For all demonstrations of a set.
        seed: Of the draws.
    """

    instructions: Sequence[str] | None
    demos: Sequence[int]
    draws: int
    max_tokens: int
    seed: int

    def of(self, reranker: Reranker, train: Any) -> list[Variant]:
        """The prompts for one reranker; the one it comes with is the first."""
        judge = reranker.judge
        pool = judgment_examples(judge, train, seed=self.seed)
        sets = demo_sets(
            pool, sizes=self.demos, draws=self.draws, max_tokens=self.max_tokens, seed=self.seed
        )
        variants = [
            Variant(f"{wording}, {demos}", text, chosen)
            for wording, text in wordings(judge, self.instructions)
            for demos, chosen in sets
        ]
        if judge.predict.demos:
            variants.insert(0, Variant("as given", None, tuple(judge.predict.demos)))
        return variants


class Choices(NamedTuple):
    """What there is to choose among, by name, and candidates that a model cannot serve, and why."""

    arms: dict[str, Arm]
    left_out: dict[str, str]


def arms_of(
    student: Reranker, candidates: Mapping[str, Reranker] | Sequence[Reranker], prompts: Prompts,
    train: Any, lms: Mapping[str, Any],
) -> Choices:  # fmt: skip
    """Everything to choose among, by name; the student as it is comes first.

    Args:
        student: As it is.
        candidates: Further rerankers.
        prompts: Made for each.
        train: Where demonstrations come from.
        lms: Further language models by name, each tried with everything.

    Raises:
        EvidenceError: No model can give the student's evidence; a candidate's may be left out.
    """
    others = candidates if isinstance(candidates, Mapping) else named(candidates)
    rerankers = {"student": student, **others}
    found = Choices({}, {})
    for model, lm in {"": None, **lms}.items():
        with dspy.context(lm=dspy.settings.lm if lm is None else lm):
            for name, reranker in rerankers.items():
                who = [part for part in (model, name if others else "") if part]
                try:
                    settled = with_settled_judge(reranker)
                except EvidenceError as error:
                    if not who or (reranker is student and lm is None):
                        raise
                    found.left_out[": ".join(who)] = str(error)
                    logger.warning("%s is left out of the search: %s", ": ".join(who), error)
                    continue
                for variant in prompts.of(settled, train):
                    found.arms[": ".join([*who, variant.name])] = Arm(settled, variant, lm)
    return found


def models_of(lms: Sequence[Any]) -> dict[str, Any]:
    """Language models by alias or model name.

    Raises:
        InputError: Two have the same name.
    """
    found: dict[str, Any] = {}
    for given in lms:
        lm = resolve_lm(given)
        name = given if isinstance(given, str) else str(getattr(lm, "model", lm))
        if name in found:
            raise InputError(f"lms name {name} twice; expected different models")
        found[name] = lm
    return found


def named(candidates: Sequence[Reranker]) -> dict[str, Reranker]:
    """Rerankers by what they are, numbered where two are alike."""
    found: dict[str, Reranker] = {}
    for reranker in candidates:
        if not isinstance(reranker, Reranker):
            raise InputError(f"candidates hold {type(reranker).__name__}; expected rerankers")
        base = f"{type(reranker).__name__}({type(getattr(reranker, 'judge', None)).__name__})"
        count = sum(known.split(" #")[0] == base for known in found)
        found[f"{base} #{count + 1}" if count else base] = reranker
    return found


def fingerprint(arms: Mapping[str, Arm], *shared: Any) -> str:
    """Hash of the choices, the model and all else that trials must share to be compared."""
    prompts = [
        [name, arm.variant.wording, [sorted(dict(demo).items()) for demo in arm.variant.demos]]
        for name, arm in arms.items()
    ]
    settings = [repr(arm.reranker.settings) for arm in arms.values()]
    models = sorted({str(getattr(arm.lm, "model", "")) for arm in arms.values()})
    content = [shared, prompts, settings, getattr(dspy.settings.lm, "model", ""), models]
    text = json.dumps(content, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
