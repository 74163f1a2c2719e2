"""How far a compiled program hangs on the seed, in figures and in words."""

from collections.abc import Sequence
from functools import reduce
from statistics import fmean, stdev
from typing import Any

from ..evaluation import Evaluation
from .card import spent
from .rows import COMPILED, of_seed
from .seeds import SeedRun, chosen
from .shares import BILL, summed


def spread(runs: Sequence[SeedRun], found: Evaluation) -> dict[str, Any]:
    """Each seed's validation and held-out value, and how these are spread, as JSON values.

    Args:
        runs: One for each seed.
        found: The saved program in row ``compiled``, the others in rows of their own.
    """
    (metric,) = found.metrics
    best = chosen(runs)
    listed = []
    for run in runs:
        row = COMPILED if run is best else of_seed(run.seed)
        held = None if run.program is None else round(found[row].mean(metric).mean, 6)
        listed.append({**run.to_dict(), "test": held, "saved": run is best})
    return {
        "chosen_by": "validation",
        "saved": best.seed,
        "runs": listed,
        "validation": _figures([run["validation"] for run in listed]),
        "test": _figures([run["test"] for run in listed]),
        "calls": sum(run.calls for run in runs),
        "cached_calls": sum(run.cached for run in runs),
        "spent": _bill(runs),
    }


def spread_words(told: dict[str, Any]) -> list[str]:
    """The same in sentences."""
    runs = told["runs"]
    done = [run for run in runs if not run["failed"]]
    kept = sum(run["kept"] for run in done)
    seeds = ", ".join(str(run["seed"]) for run in done)
    said = (
        f"{len(done)} seeds ({seeds}), of which {kept} kept a change: {_spread(told['test'])} on "
        f"these queries, {_spread(told['validation'])} on the validation queries. Saved is the "
        f"program of seed {told['saved']}, chosen by the validation queries alone"
    )
    lost = [f"seed {run['seed']} gave no program: {run['failed']}" for run in runs if run["failed"]]
    return [said, *lost]


def _bill(runs: Sequence[SeedRun]) -> dict[str, Any]:
    """Calls of all seeds; tokens and dollars of those that gave a program."""
    bills = [run.program.card["spent"] for run in runs if run.program is not None]
    bills += [spent(run.ranked, 0.0, run.ranked.cached_calls) for run in runs if run.ranked.calls]
    total = {name: value for name, value in reduce(summed, bills).items() if name in BILL}
    cached = sum(run.cached for run in runs)
    return {**total, "calls": sum(run.calls for run in runs) - cached, "cached_calls": cached}


def _figures(values: Sequence[float | None]) -> dict[str, float | None]:
    """Mean, standard deviation (unknown for one), lowest and highest."""
    there = [value for value in values if value is not None]
    apart = round(stdev(there), 6) if len(there) > 1 else None
    return {
        "mean": round(fmean(there), 6), "sd": apart, "min": min(there), "max": max(there),
    }  # fmt: skip


def _spread(figures: dict[str, Any]) -> str:
    apart = "unknown" if figures["sd"] is None else f"{figures['sd']:.4f}"
    return (
        f"{figures['mean']:.4f} on average (standard deviation {apart}, from {figures['min']:.4f} "
        f"to {figures['max']:.4f})"
    )
