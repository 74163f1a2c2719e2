"""What the test queries say about a compiled program, in sentences."""

from typing import Any

from ..evaluation import Evaluation, Row
from .plain import PlainRun
from .rows import COMPILED, PLAIN, UNCOMPILED
from .spread import spread_words


def words(
    found: Evaluation, card: dict[str, Any], plain: PlainRun | None = None,
    seeds: dict[str, Any] | None = None,
) -> list[str]:  # fmt: skip
    """What the test queries say, and how far the search's own figures can be believed.

    Args:
        found: The programs on the test queries.
        card: Of the compiled one.
        plain: Plain DSPy's run, where there was one.
        seeds: What :func:`~dspy_rerank.optimizers.spread.spread` says of several seeds.
    """
    said = [*verdicts(found, plain), *(spread_words(seeds) if seeds else ())]
    return [*said, *_curse(card), *unsure(card), *_trouble(found, card)]


def verdicts(found: Evaluation, plain: PlainRun | None = None) -> list[str]:
    """One sentence for each baseline: better, worse, or no difference that can be told.

    And one for each program whose answers could not be read.
    """
    sentences = [_compared(found, over, f"the {over}") for over in (found.rows[0].name, UNCOMPILED)]
    if plain is not None:
        sentences += _plain(found, plain)
    return [*sentences, *filter(None, map(_unread, found.rows))]


def _compared(found: Evaluation, over: str, called: str) -> str:
    (metric,) = found.metrics
    gain = found.gain(metric, COMPILED, over)
    if not gain.significant:
        return f"no difference from {called} that can be told: {gain}"
    return f"{'better' if gain.mean > 0 else 'WORSE'} than {called}: {gain}"


def _plain(found: Evaluation, plain: PlainRun) -> list[str]:
    """Against plain DSPy, with the calls of both; they are never called equal."""
    bill = f"it made {plain.calls} LM calls, compiling made {plain.allowed}"
    if plain.program is None:
        name = f" ({plain.optimizer})" if plain.optimizer else ""
        return [f"{PLAIN}{name} failed: {plain.failed}; {bill}"]
    about = (
        f"{PLAIN} is {plain.optimizer}, run end to end on whole rankings of {plain.sizes.train} "
        f"training and {plain.sizes.val} validation queries"
    )
    if plain.usage.cached_calls:
        about += f"; a cache answered {plain.usage.cached_calls} of its calls"
    if plain.cut:
        about += "; its calls ran out, so it is the best program that it had measured by then"
    return [f"{_compared(found, PLAIN, PLAIN)}; {bill}", about]


def _unread(row: Row) -> str:
    """A model that gives no readable answers, which looks like one that has no opinion."""
    if not row.unknowns:
        return ""
    return (
        f"{row.unknowns} questions of the {row.name} program, in {row.usage.calls} calls, had no "
        "answer that could be read"
    )


def _curse(card: dict[str, Any]) -> list[str]:
    """Winner's curse: how much the best of many looks better than it is, by cross-validation."""
    checked, said = card.get("cross_validation"), []
    why = (card.get("chosen") or {}).get("why")
    if why:
        kept = card["chosen"].get("kept")
        said.append(f"{'compiled' if kept else 'the uncompiled program was kept'}: {why}")
    if not checked:
        return said
    tried = len(card.get("trials") or card.get("penalties") or ())
    mean, lo, hi = checked["gain_over_uncompiled"]
    note = (
        f"winner's curse: {tried} settings were compared on {checked['queries']} queries. Chosen "
        f"again with a tenth of them left out, ten times, and measured on those, the gain is "
        f"{mean:+.4f} [{lo:+.4f}, {hi:+.4f}]; on the queries that it was chosen by, the choice "
        f"looks better by {checked['flattery']:+.4f}"
    )
    return [*said, note]


def unsure(card: dict[str, Any]) -> list[str]:
    """A change that was kept although its interval includes 0, as a standard error is less."""
    if not (card.get("chosen") or {}).get("kept"):
        return []
    checked = card.get("cross_validation")
    how = "its cross-validated gain" if checked else "its gain on the validation set"
    gain = (checked or card.get("validation") or {}).get("gain_over_uncompiled")
    if not gain or gain[1] > 0:
        return []
    return [
        f"the change was kept although the 95% interval of {how}, [{gain[1]:+.4f}, "
        f"{gain[2]:+.4f}], includes 0: the rule to keep a change asks for less than that, so its "
        "quality may be no better"
    ]


def _trouble(found: Evaluation, card: dict[str, Any]) -> list[str]:
    said = []
    for row in found.rows:
        if row.degraded:
            said.append(f"{row.degraded} rankings of the {row.name} program are degraded")
    if card.get("degraded"):
        said.append("the model failed on some questions while compiling, which count as wrong")
    return said
