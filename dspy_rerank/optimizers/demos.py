"""Demonstrations as a program should carry them: the judge's fields, answers in its own form."""

from collections.abc import Iterable, Mapping
from typing import Any

from ..judges.base import SignatureJudge
from .examples import Labelled, answers_yes_no
from .judge_metric import answer_of, read
from .variants import tokens_of

Demo = dict[str, Any]


def cleaned(
    judge: SignatureJudge, demos: Iterable[Any], labelled: Iterable[Labelled], max_tokens: int
) -> list[Demo]:
    """Demonstrations that an optimizer left, fit to be shown and saved.

    Only the signature's fields stay (no log-probabilities, no ``augmented``). An answer is
    rewritten as the label's, where that means the same, or as the judge writes such a judgment;
    one that cannot be read goes, and so do repetitions and what exceeds the tokens.

    Args:
        judge: Whose prompt they are for.
        demos: Examples or mappings.
        labelled: The questions that they may come from.
        max_tokens: For all of them, estimated.
    """
    sizes = {_asked(judge, item.example): item for item in labelled}
    found: list[Demo] = []
    left = max_tokens
    for demo in demos:
        kept = _kept(judge, dict(demo), sizes)
        if kept is None or kept in found or tokens_of(kept) > left:
            continue
        found.append(kept)
        left -= tokens_of(kept)
    return found


def _asked(judge: SignatureJudge, demo: Any) -> tuple[str, ...]:
    return tuple(str(demo.get(name)) for name in judge.signature.input_fields)


def _kept(
    judge: SignatureJudge, demo: Mapping[str, Any], known: Mapping[tuple[str, ...], Labelled]
) -> Demo | None:
    """One demonstration, or nothing when it shows nothing."""
    answer = judge.roles.answer
    kept = {name: demo[name] for name in judge.signature.fields if demo.get(name) is not None}
    if answer not in kept:
        return None
    item = known.get(_asked(judge, demo))
    if item is None:
        return kept
    written = _written(judge, answer_of(judge, demo), item)
    return None if written is None else {**kept, answer: written}


def _written(judge: SignatureJudge, text: str, item: Labelled) -> str | None:
    """An answer in the judge's own form."""
    shown = len(item.grades)
    said = read(judge, text, shown)
    if not said.known:
        return None
    label = answer_of(judge, item.example)
    meant = read(judge, label, shown)
    if (said.best, said.order, said.score) == (meant.best, meant.order, meant.score):
        return label
    if answers_yes_no(judge):
        return "yes" if said.score else "no"
    return judge._written(said, "", shown)  # pyright: ignore[reportPrivateUsage]
