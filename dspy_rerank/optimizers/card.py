"""The card of a compiled program: what was tried, on what, with what result, at what price."""

from collections.abc import Sequence
from statistics import fmean
from typing import Any

from ..evaluation import baseline
from ..judges.base import SignatureJudge
from ..leaks import earlier, listed
from ..stats import paired_interval
from ..types import Usage
from .counting import CallCounter
from .crossval import Nested
from .judge_program import Watch
from .trials import Choice, Trial, pareto


def card(
    trials: Sequence[Trial], choice: Choice, *, metric: str, cost: str, seed: int, train: Any,
    val: Any, usage: Usage, cached: int, seconds: float, study_calls: int | None = None,
    before: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """All that a report needs, as JSON values; the first trial is the uncompiled program.

    ``before`` is the card of what was compiled, if that was compiled itself.
    """
    chosen = choice.trial
    made = {
        "metric": metric,
        "cost": cost,
        "seed": seed,
        "train": compiled_on(train),
        "validation": _validation(trials[0], chosen, metric, seed, val),
        "cross_validation": cross_validation(choice.nested),
        "chosen": {
            "variant": chosen.variant,
            "prior": chosen.prior,
            "tokens": chosen.tokens,
            "kept": chosen is not trials[0],
            "why": choice.why,
            "best": _trial(choice.best),
        },
        "trials": [_trial(trial) for trial in trials],
        "pareto": [_trial(trial) for trial in pareto(trials, cost)],
        "degraded": sum(trial.degraded > 0 for trial in trials),
        "spent": {
            **spent(usage, seconds, cached),
            **({} if study_calls is None else {"study_calls": study_calls}),
        },
    }
    return {**made, **earlier(before, made)}


def compiled_on(data: Any) -> dict[str, Any]:
    """A set that was compiled on: how large it is, and what tells it and its queries again."""
    fingerprint, each = data.fingerprint, listed(data.fingerprints)
    return {"queries": len(data), "fingerprint": fingerprint, **each}


def cross_validation(checked: Nested | None) -> dict[str, Any] | None:
    """What choosing gains on queries left out of it, and how it flatters on the others."""
    if checked is None:
        return None
    gain = checked.gain
    return {
        "queries": gain.n,
        "compiled": round(fmean(checked.values), 6),
        "gain_over_uncompiled": [round(x, 6) for x in (gain.mean, gain.lo, gain.hi)],
        "p": gain.p,
        "flattery": round(checked.flattery, 6),
        "values": [round(value, 6) for value in checked.values],
    }


def _trial(trial: Trial) -> dict[str, Any]:
    return {
        "variant": trial.variant,
        "prior": trial.prior,
        "value": round(trial.value, 6),
        "calls": trial.calls,
        "calls_per_query": round(trial.price("calls"), 3),
        "tokens_per_query": round(trial.price("tokens"), 1),
        "rounds_per_query": round(trial.rounds, 3),
        "money_per_query": None if trial.dollars is None else round(trial.price("money"), 8),
        "degraded": trial.degraded,
    }


def _validation(first: Trial, chosen: Trial, metric: str, seed: int, val: Any) -> dict[str, Any]:
    gain = paired_interval(chosen.values, first.values, seed=seed)
    return {
        **compiled_on(val),
        "incoming": round(fmean(baseline(val, [metric]).values[metric]), 6),
        "uncompiled": round(first.value, 6),
        "compiled": round(chosen.value, 6),
        "gain_over_uncompiled": [round(x, 6) for x in (gain.mean, gain.lo, gain.hi)],
    }


def spent(usage: Usage, seconds: float, cached: int) -> dict[str, Any]:
    """The bill of compiling, whose calls are those that no cache answered, failed ones included.

    Args:
        usage: Of all questions, those included whose answer was known.
        seconds: In all.
        cached: Calls to language models that DSPy's cache answered.
    """
    return {
        "calls": usage.paid_calls + usage.failed_calls,
        "cached_calls": cached,
        "failed_calls": usage.failed_calls,
        "questions": usage.calls,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "cost": usage.cost,
        "cost_reason": usage.cost_reason,
        "seconds": round(seconds, 1),
    }


def counted(bill: CallCounter, seconds: float) -> dict[str, Any]:
    """The bill of a compiling of which all calls were counted; failed ones are among the calls."""
    return {
        **spent(bill.usage, seconds, bill.cached),
        "calls": bill.calls - bill.cached,
        "failed_calls": bill.failed,
    }


def judge_card(
    optimizer: str, judge: SignatureJudge, scores: Sequence[tuple[float, ...]], *, kept: bool,
    seed: int, train: Any, val: Any, questions: tuple[int, int], watch: Watch, bill: CallCounter,
    seconds: float, before: Any = None,
) -> dict[str, Any]:  # fmt: skip
    """The card of a compiled judge; scores are those of its questions before and after.

    ``before`` is the card of what was compiled, if that was compiled itself.
    """
    first, after = scores
    gain = paired_interval(after, first, seed=seed)
    made = {
        "metric": "judgment score",
        "optimizer": optimizer,
        "seed": seed,
        "train": {**compiled_on(train), "questions": questions[0]},
        "validation": {
            **compiled_on(val),
            "questions": questions[1],
            "uncompiled": round(fmean(first), 6),
            "compiled": round(fmean(after), 6),
            "gain_over_uncompiled": [round(x, 6) for x in (gain.mean, gain.lo, gain.hi)],
        },
        "chosen": {
            "kept": kept,
            "instructions": judge.signature.instructions,
            "demos": len(judge.predict.demos),
        },
        "degraded": bool(watch.lost),
        "spent": {
            **counted(bill, seconds),
            "questions": watch.questions,
            "judge_calls": watch.asked,
            "lost_questions": watch.lost,
        },
    }
    return {**made, **earlier(before, made)}
