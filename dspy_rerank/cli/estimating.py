"""``dspy-rerank estimate``: what a run would take, before anything is spent."""

import argparse
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

import dspy

from ..batch.target import target_of
from ..errors import InputError, RerankError
from ..limits import limit_of
from ..planning import Forecast, Measured, Range, forecast, measure
from ..planning.hours import ASSUMED, Speed
from ..prices import FREE, Price, known_price, price_of
from ..shown import count
from ..shown import dollars as figures
from ..streaming import Item, Journal, identity_of
from ..streaming.rows import STOPPED as UNFINISHED
from ._app import positive
from ._common import add_json, add_model, dollars, number
from ._rerankers import add_reranker, reranker_and_model
from ._show import emit, say, show_table
from .streaming import STOPPED, add_source, results_path, source_of

DAY = 86400.0
"""Seconds; within them providers promise a batch."""


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser(
        "estimate",
        help="calls, tokens, money and hours of a run, before anything is spent",
        description="What dspy-rerank rerank DATA --out FILE would take, from the data itself: "
        "live, through a provider's batches, and with its prompt cache. Nothing is asked but one "
        "question under --probe.",
    )
    command.add_argument("data", help="as for rerank: a file, a folder, a shipped set, or "
                         "ir_datasets:ID")  # fmt: skip
    add_reranker(command)
    command.add_argument("--top-k", type=positive, metavar="K")
    add_source(command)
    command.add_argument("--out", metavar="FILE", help="results of a run that was begun: count "
                         "only what they lack")  # fmt: skip
    command.add_argument("--probe", action="store_true", help="ask one question to see how long it "
                         "takes, how tokens are counted and how much is written")  # fmt: skip
    command.add_argument("--latency", type=_seconds, metavar="S", help="seconds of a call "
                         f"(default: {ASSUMED.lo:g} to {ASSUMED.hi:g}, or as --probe shows)")  # fmt: skip # noqa: E501
    command.add_argument("--max-cost", type=dollars, metavar="USD", help="say how far it goes; "
                         "exit code 3 where it may not be enough")  # fmt: skip
    add_model(command)
    add_json(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Add up and print."""
    reranker, lm = reranker_and_model(arguments)
    source = source_of(arguments.data, arguments)
    with dspy.context(lm=lm):
        measured = _probed(source.items(), reranker, lm, arguments) if arguments.probe else None
        items = _left(source.items(), reranker, lm, arguments)
        found = forecast(items, reranker, top_k=arguments.top_k, measured=measured)
    asked = _asked_lm(reranker, lm)
    speed = _speed(asked, reranker, arguments, measured)
    rows = [row for row in (_live(found, asked, speed), _batched(found, asked, arguments),
                            _kept(found, asked, speed)) if row]  # fmt: skip
    short = _short(found, rows[0], arguments.max_cost)
    if arguments.json:
        emit(_values(found, measured, rows, short))
    else:
        _print(source.name, found, measured, rows, short)
    return STOPPED if short else 0


def _asked_lm(reranker: Any, lm: Any) -> Any:
    """The model that answers: the program's own, else the one that was named."""
    own = [predictor.lm for predictor in reranker.predictors() if predictor.lm is not None]
    return own[0] if own else lm


def _probed(items: Iterator[Item], reranker: Any, lm: Any, arguments: Any) -> Measured:
    first = next((item for item in islice(items, 100) if len(item.documents) > 1), None)
    if first is None:
        raise InputError(f"{arguments.data}: no query with documents to probe with")
    return measure(reranker, first, lm, arguments.top_k)


def _left(items: Iterable[Item], reranker: Any, lm: Any, arguments: Any) -> Iterator[Item]:
    """What a run that goes on with ``--out`` would rank."""
    path = None if arguments.out is None else results_path(arguments.out)
    if path is None or not path.is_file():
        yield from items
        return
    with Journal(path, identity_of(reranker, lm, arguments.top_k)) as journal:
        for item in items:
            known = journal.known(item.id)
            if known is None or known.key != item.key or known.status == UNFINISHED:
                yield item


def _speed(lm: Any, reranker: Any, arguments: Any, measured: Measured | None) -> Speed:
    limit = limit_of(lm)
    latency = ASSUMED
    if measured is not None:
        latency = Range(0.7 * measured.seconds, 1.5 * measured.seconds)
    if arguments.latency is not None:
        latency = Range(arguments.latency, arguments.latency)
    at_once = reranker.settings["concurrency"]
    if limit.at_once is not None:
        at_once = min(at_once, limit.at_once)
    return Speed(latency, at_once, limit.rpm, limit.tpm)


def _live(found: Forecast, lm: Any, speed: Speed) -> dict[str, Any]:
    seconds, why = speed.seconds(found.calls, found.tokens, found.rounds)
    price, reason = _price(lm)
    cost = None if price is None else found.cost(price)
    return _row(
        "live", found, cost, seconds, "; ".join([f"time: {why}", *([reason] if reason else [])])
    )


def _price(lm: Any) -> tuple[Price | None, str]:
    if lm is None:
        return FREE, ""
    try:
        return price_of(lm), ""
    except RerankError:
        name = getattr(lm, "model", lm)
        return None, f"no price is known for {name}: give input_cost_per_token in --config"


def _batched(found: Forecast, lm: Any, arguments: Any) -> dict[str, Any] | None:
    """Through batch files, where the model's provider takes them."""
    try:
        target = target_of(arguments.lm or lm, arguments.config)
    except RerankError:
        return None
    cost = None if target.price is None else found.cost(target.price)
    note = f"{_rounds(found)} of batches, up to 24 h each"
    return _row("batched", found, cost, Range(0.0, found.rounds.hi * DAY), note)


def _rounds(found: Forecast) -> str:
    return f"{found.rounds.shown(_whole)} round{'' if found.rounds.hi == 1 else 's'}"


def _kept(found: Forecast, lm: Any, speed: Speed) -> dict[str, Any] | None:
    """Live, with the provider's prompt cache, where prompts have a long enough beginning."""
    price = known_price(lm)
    if price is None or price.cached is None or not found.repeated_tokens.hi:
        return None
    seconds, _ = speed.seconds(found.calls, found.tokens, found.rounds)
    again = found.repeated_tokens.shown(_thousands)
    return _row("prompt cache", found, found.cost(price, cached=True), seconds,
                f"{again} tokens of beginnings read again")  # fmt: skip


def _row(
    name: str, found: Forecast, cost: Range | None, seconds: Range, note: str
) -> dict[str, Any]:
    return {"how": name, "calls": found.calls, "prompt_tokens": found.prompt_tokens,
            "completion_tokens": found.completion_tokens, "cost": cost, "seconds": seconds,
            "note": note}  # fmt: skip


def _short(found: Forecast, live: dict[str, Any], limit: float | None) -> str:
    """Why a limit may not be enough, if it may not."""
    if limit is None:
        return ""
    cost: Range | None = live["cost"]
    if cost is None:
        raise InputError(f"--max-cost: {live['note'].partition('; ')[2]}")
    if cost.hi <= limit:
        return ""
    reach = [round(found.queries * limit / c) if c > limit else found.queries
             for c in (cost.hi, cost.lo)]  # fmt: skip
    few, all_of_them = Range(*reach).shown(_whole), count(found.queries, "query")
    return (f"${limit:g} is enough for about {few} of {all_of_them}; rerank --max-cost stops "
            "there and can be resumed")  # fmt: skip


def _print(
    name: str, found: Forecast, measured: Measured | None, rows: list[dict[str, Any]], short: str
) -> None:
    say(f"{name}: {count(found.queries, 'query')} of {found.candidates.shown(_whole)} candidates, "
        f"{_rounds(found)}, {found.passages_read.shown(_whole)} passages read"
        + (f"; {found.unusable} cannot be ranked" if found.unusable else ""))  # fmt: skip
    header = ["", "calls", "prompt tokens", "answer tokens", "cost", "time", ""]
    show_table([header, *(_cells(row) for row in rows)])
    say("again, with the answers in DSPy's cache: no calls, $0")
    if measured is None:
        say("tokens by counting words; --probe asks one question and narrows them")
    else:
        said = f"{measured.prompt_tokens} tokens read, {measured.completion_tokens} written"
        say(f"probe: {measured.seconds:.1f} s, {said}")
    if short:
        say(short)


def _cells(row: dict[str, Any]) -> list[str]:
    cost: Range | None = row["cost"]
    return [
        row["how"], row["calls"].shown(_whole), row["prompt_tokens"].shown(_thousands),
        row["completion_tokens"].shown(_thousands),
        "?" if cost is None else cost.shown(_money), row["seconds"].shown(_time), row["note"],
    ]  # fmt: skip


def _values(
    found: Forecast, measured: Measured | None, rows: list[dict[str, Any]], short: str
) -> dict[str, Any]:
    plain = [{n: asdict(v) if isinstance(v, Range) else v for n, v in row.items()} for row in rows]
    probe = None if measured is None else asdict(measured)
    return {"forecast": asdict(found), "runs": plain, "probe": probe, "short": short}


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _thousands(value: float) -> str:
    if value < 10_000:
        return f"{value:,.0f}"
    return f"{value / 1e3:,.0f}k" if value < 1e7 else f"{value / 1e6:,.0f}M"


def _money(value: float) -> str:
    return f"${figures(value)}" if value < 1 else f"${value:,.2f}"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def _seconds(text: str) -> float:
    return number(text, "seconds")
