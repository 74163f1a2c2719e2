"""Decision models by name: TypeSafe's own, and any server that speaks its API."""

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dspy_rerank.decisions import SystemOne, once
from dspy_rerank.errors import InputError
from dspy_rerank.models._config import NOT_FOR_THE_WIRE, Deployment
from dspy_rerank.models._secret import Secret, resolved
from dspy_rerank.prices import NAMES, Price

if TYPE_CHECKING:
    from dspy_rerank.models.probe import Probe

PREFIX = "typesafe/"
NO_KEY = "none"
"""Sent to a server of the user's that has no key: the SDK would send TypeSafe's own."""
_TAKEN = frozenset({"api_base", "base_url", "api_key", "timeout", "cache", *NAMES.values()})
QUESTION: Mapping[str, Any] = {
    "colour": {
        "type": "choice",
        "instructions": "Which is a colour?",
        "criteria": {"A": "blue", "B": "seven"},
    }
}


def decision(
    model: str = "", *, base_url: str | None = None, api_key: str | None = None,
    prices: tuple[float, float] | None = None, **options: Any,
) -> SystemOne:  # fmt: skip
    """A decision model ("System One"), for all judges but listwise ones.

    Nothing is contacted before the first question. Needs ``pip install 'dspy-rerank[decision]'``.

    Args:
        model: As the server names it, with or without ``typesafe/``; empty for
            ``TYPESAFE_DEFAULT_MODEL``, else TypeSafe's latest.
        base_url: The server's root (``/v1/systemone`` comes behind it); ``None`` for
            ``TYPESAFE_BASE_URL``, else TypeSafe itself.
        api_key: The key, or ``os.environ/NAME``; ``None`` is ``TYPESAFE_API_KEY``, except with a
            ``base_url``, which gets no key that was not meant for it.
        prices: US dollars for a token read and for one written.
        options: ``cache`` and ``timeout`` (in seconds) as `dspy.experimental.TypeSafe` has them.
    """
    key = NO_KEY if base_url and not api_key else api_key
    made = SystemOne(
        model.removeprefix(PREFIX) or None,
        base_url=base_url.rstrip("/").removesuffix("/v1") if base_url else None,
        api_key=Secret(key) if key else None,
        **options,
    )
    made.price = None if prices is None else Price(*prices)
    return made


def deployed(deployment: Deployment) -> SystemOne:
    """The decision model of a configuration's entry, its price aside.

    Raises:
        InputError: It has a parameter that decision models do not take, or its key is not set.
    """
    given = {
        name: value
        for name, value in deployment.params.items()
        if name not in NOT_FOR_THE_WIRE and value is not None
    }
    unknown = sorted(set(given) - _TAKEN)
    if unknown:
        raise InputError(
            f"decision models do not know {unknown[0]!r}; they take {', '.join(sorted(_TAKEN))}"
        )
    resolved(given.get("api_key"))  # a variable that is not set is said now
    found = {name: given[name] for name in ("timeout", "cache") if name in given}
    base = resolved(given.get("api_base") or given.get("base_url"))
    return decision(deployment.model, base_url=base, api_key=given.get("api_key"), **found)


def refuse_group(alias: str, models: Mapping[str, Any]) -> None:
    """Complain about a decision model among several deployments: the Router cannot ask it."""
    found = [d.model for group in models.values() for d in group if d.model.startswith(PREFIX)]
    if found:
        raise InputError(
            f"{found[0]} is a decision model, which can neither share an alias nor be or have a "
            f"fallback; give it an alias of its own, and name another judge than {alias!r} where "
            "it fails"
        )


def probed(lm: Any) -> "Probe":
    """What one tiny question to a decision model tells; a failing call is a result."""
    from dspy_rerank.models.probe import Probe

    began, price = time.perf_counter(), getattr(lm, "price", None)
    single = once(lm).copy(cache=False)
    try:
        (answer,) = single({"A": "blue", "B": "seven"}, dict(QUESTION)).values()
    except Exception as error:
        return Probe(lm.model, problem=" ".join(str(error).split())[:300])
    return Probe(
        model=lm.model,
        answer=str(answer["choice"]),
        seconds=time.perf_counter() - began,
        confidence=float(answer["probabilities"]["A"]),
        json_schema=False,
        prompt_price=None if price is None else round(price.read * 1e6, 6),
        completion_price=None if price is None else round(price.written * 1e6, 6),
        problem="a decision model: it gives probabilities of its own, not of tokens",
    )
