"""What a token costs: as it was set, as the engine says, or by the tables of DSPy and LiteLLM."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from .errors import InputError
from .quiet import quiet

NAMES = {
    "read": "input_cost_per_token",
    "written": "output_cost_per_token",
    "cached": "cache_read_input_token_cost",
}
"""What LiteLLM calls them."""
_OTHER_SERVICE = ("_priority", "_flex", "_batches", "_batch")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars a token.

    Attributes:
        read: Of the prompt.
        written: Of the answer.
        cached: Of the prompt, where the provider's prompt cache had it; ``None`` is as ``read``.
    """

    read: float
    written: float
    cached: float | None = None

    def __post_init__(self) -> None:
        cached = 0.0 if self.cached is None else self.cached
        given: dict[str, Any] = {"read": self.read, "written": self.written, "cached": cached}
        for name, value in given.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not (number and 0 <= value < math.inf):
                raise InputError(
                    f"{NAMES[name]}={value!r}; expected US dollars a token, such as 1.5e-07"
                )

    def of(self, prompt: int, completion: int, cached: int = 0) -> float:
        """US dollars for so many tokens; ``cached`` of the prompt's came from a prompt cache."""
        read_again = self.read if self.cached is None else self.cached
        return (prompt - cached) * self.read + cached * read_again + completion * self.written

    def most(self, prompt: int, completion: int) -> float:
        """US dollars for so many tokens when no cache helps."""
        return prompt * max(self.read, self.cached or 0.0) + completion * self.written


FREE = Price(0.0, 0.0)


def set_price(
    lm: Any,
    *,
    input_cost_per_token: float,
    output_cost_per_token: float,
    cache_read_input_token_cost: float | None = None,
) -> None:
    """Say what an LM and its later copies cost, in US dollars a token, in this process.

    The names are those of LiteLLM's table and configuration, where the price may be given, too.

    Raises:
        InputError: A price is no number of at least 0.
    """
    lm.price = Price(input_cost_per_token, output_cost_per_token, cache_read_input_token_cost)


def read_price(*sources: Mapping[str, Any]) -> Price | None:
    """The price that the first of several mappings gives under LiteLLM's names, if any does.

    Raises:
        InputError: One gives the price of reading or of writing only, or no number.
    """
    for source in sources:
        found = {ours: source.get(theirs) for ours, theirs in NAMES.items()}
        if found["read"] is None and found["written"] is None:
            continue
        for ours in ("read", "written"):
            if found[ours] is None:
                raise InputError(f"a price lacks {NAMES[ours]}; give it, 0 if it costs nothing")
        return Price(**found)  # pyright: ignore[reportArgumentType]
    return None


def known_price(lm: Any) -> Price | None:
    """The price that was set for an LM or that it knows itself; no table is looked into."""
    if getattr(getattr(lm, "engine", None), "free", False):
        return FREE
    own, pair = getattr(lm, "price", None), getattr(lm, "prices", None)
    return own if isinstance(own, Price) else Price(*pair) if isinstance(pair, tuple) else None


def price_of(lm: Any) -> Price:
    """The most that an LM's tokens cost.

    A table's price is the dearest of its tiers for long prompts. LiteLLM is imported only for
    models that DSPy itself does not reach.

    Raises:
        InputError: Nobody knows; the message names the model and what to do.
    """
    engine = getattr(lm, "engine", None)
    found = known_price(lm) or getattr(engine, "dearest", None) or _table_price(lm)
    if found is None:
        raise InputError(
            f"max_cost needs a price, and none is known for {name_of(lm)!r}. Give "
            "input_cost_per_token and output_cost_per_token (US dollars) in its litellm_params or "
            f"model_info, or call {_setting(lm)} with its own figures; or limit max_tokens instead"
        )
    return found


def name_of(lm: Any) -> str:
    """What the user calls an LM: by its alias, a group of deployments with their models."""
    called = getattr(getattr(lm, "engine", None), "called", None)
    own = getattr(lm, "alias", None) or getattr(lm, "model", type(lm).__name__)
    return called[0] if called else str(own)


def _setting(lm: Any) -> str:
    """Code that sets an LM's price; the figures are those of a well-known model."""
    called = getattr(getattr(lm, "engine", None), "called", ("", "lm"))
    prices = "input_cost_per_token=1.5e-07, output_cost_per_token=6e-07"
    return f"dspy_rerank.models.set_price({called[1]}, {prices})"


def unpriced(lm: Any) -> str:
    """Why nobody knows what an LM's calls cost."""
    group = hasattr(getattr(lm, "engine", None), "called")
    return f"no price is known for {name_of(lm)}" + (
        f"; set it, with its own figures: {_setting(lm)}" if group else ""
    )


def _table_price(lm: Any) -> Price | None:
    if not isinstance(getattr(lm, "engine", None), str):
        return None
    return dearest(_dspy_entry(lm)) or listed_price(lm.model)


def table_entry(lm: Any) -> Mapping[str, Any]:
    """What DSPy's table says of a model, or LiteLLM's; empty where neither has it."""
    return _dspy_entry(lm) or litellm_entry(lm.model)


def listed_price(model: str) -> Price | None:
    """The highest price among the tiers in LiteLLM's table, if that has the model."""
    return dearest(litellm_entry(model))


def _dspy_entry(lm: Any) -> Mapping[str, Any]:
    """The model's entry in DSPy's copy of the table; empty for providers it does not reach."""
    from dspy.clients.capabilities import resolve
    from dspy.clients.model_metadata import model_info

    if lm.engine == "litellm":
        return {}
    try:
        route = resolve(lm)
        return {} if route.declared else model_info(route.provider, route.model)
    except Exception:  # whatever a table is missing: then its price is not known
        return {}


def litellm_entry(model: str) -> Mapping[str, Any]:
    """What LiteLLM's table says of a model; empty where it has none."""
    try:
        with quiet() as litellm:
            info: Any = litellm.get_model_info(model)
        return dict(info)
    except Exception:
        return {}


def dearest(entry: Mapping[str, Any]) -> Price | None:
    """The highest price among the tiers of a table's entry; ``None`` where it has none."""
    read, written = (_highest(entry, NAMES[name]) for name in ("read", "written"))
    if read is None or written is None or (read == 0 and written == 0):
        return None
    thinking = _highest(entry, "output_cost_per_reasoning_token") or 0.0
    making = _highest(entry, "cache_creation_input_token_cost") or 0.0
    return Price(max(read, making), max(written, thinking))


def _highest(entry: Mapping[str, Any], name: str) -> float | None:
    found = [
        float(value)
        for key, value in entry.items()
        if key.startswith(name) and isinstance(value, int | float)
        and not key.endswith(_OTHER_SERVICE)
    ]  # fmt: skip
    return max(found, default=None)
