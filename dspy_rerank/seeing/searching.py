"""How a search for a better reranker went: what was tried, and what it cost to get there."""

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ..errors import InputError
from ..shown import count
from .canvas import BLUE, EDGE, GREY, Canvas, Picture, styled
from .frontier import frontier


def pareto(source: Any) -> Picture:
    """Quality against cost of every setting tried, on the validation queries.

    Args:
        source: A compiled reranker, its card, or the content of a ``report.json``.

    Raises:
        InputError: It holds no trials with a known cost.
        MissingExtraError: matplotlib is not installed.
    """
    card = card_of(source)
    cost = f"{card['cost']}_per_query"
    known = [trial for trial in card["trials"] if trial[cost] is not None]
    if not known:
        raise InputError(f"no trial has a known {cost.replace('_', ' ')}; nothing to draw")
    points = {_name(trial): (float(trial[cost]), float(trial["value"])) for trial in known}
    chosen = next((name for name in map(_name, known) if name == _name(card["chosen"])), None)
    return frontier(
        points, x=f"{card['cost']} a query", y=f"{card['metric']}, validation", chosen=chosen,
        title=f"{count(len(points), 'setting')} tried: quality against cost",
    )  # fmt: skip


def learning(source: Any) -> Picture:
    """The best value so far against the calls spent, and every setting tried.

    Args:
        source: A compiled reranker, its card, or the content of a ``report.json``.

    Raises:
        InputError: It holds no trials.
        MissingExtraError: matplotlib is not installed.
    """
    card = card_of(source)
    trials: Sequence[Mapping[str, Any]] = card["trials"]
    spent = list(accumulate(trial["calls"] for trial in trials))
    values = [trial["value"] for trial in trials]
    with styled():
        best = list(accumulate(values, max))
        note = f"best {best[-1]:.4f} after {count(spent[best.index(best[-1])], 'call')}"
        tried = len({_name(trial) for trial in trials})
        title = f"{count(tried, 'setting')} tried: the best so far"
        canvas = Canvas(title, [note], width=6.2, height=3.6)
        axes = canvas.axes(EDGE + 0.6, EDGE + 0.5, 5.2, 2.9)
        axes.grid(color="#eeeeee")
        axes.set_axisbelow(True)
        axes.step(spent, best, where="post", color=BLUE, linewidth=2, label="best so far")
        axes.plot(spent, values, "s", color=GREY, markersize=4, label="each setting")
        axes.set_xlabel("judge calls spent")
        axes.set_ylabel(f"{card['metric']}, validation")
        axes.margins(0.06, 0.12)
        axes.set_xlim(left=0)
        axes.legend(loc="lower right", bbox_to_anchor=(1, 0.99), ncols=2, frameon=False)
    return canvas.picture()


def card_of(source: Any) -> Mapping[str, Any]:
    """The card of a compiled reranker, whatever it comes in.

    Raises:
        InputError: There is none, or it holds no trials.
    """
    card = getattr(source, "card", source)
    if isinstance(card, Mapping) and isinstance(card.get("card"), Mapping):
        card = card["card"]
    if not isinstance(card, Mapping) or not card.get("trials"):
        raise InputError(
            f"{type(source).__name__} holds no trials; expected a reranker that RerankerSearch "
            "compiled, its card, or the content of a report.json"
        )
    return card


def _name(trial: Mapping[str, Any]) -> str:
    return f"{trial['variant']}, prior {trial['prior']:g}"
