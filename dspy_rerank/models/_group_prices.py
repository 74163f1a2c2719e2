"""What a group's answers cost: by the deployments that may give them."""

from collections.abc import Iterator

from dspy_rerank.models._config import Config
from dspy_rerank.prices import Price, listed_price


def places(config: Config, alias: str) -> Iterator[tuple[str, int]]:
    """Every deployment that may answer, by its alias and its number there."""
    for name in config.reachable(alias):
        yield from ((name, place) for place in range(len(config.groups[name])))


def price(config: Config, name: str, place: int) -> Price | None:
    """What a deployment's tokens cost, by the file or by LiteLLM's table."""
    deployment = config.groups[name][place]
    return deployment.price or listed_price(deployment.listed)


def written(config: Config, name: str, place: str) -> Price | None:
    """The price that the file gives of a deployment, by the number that the Router knows it by."""
    group = config.groups.get(name, ())
    return group[int(place)].price if place.isdigit() and int(place) < len(group) else None


def dearest(config: Config, alias: str) -> Price | None:
    """The most that a token costs at any deployment that may answer, if all are known."""
    found = [price(config, *where) for where in places(config, alias)]
    known = [each for each in found if each is not None]
    if not known or len(known) < len(found):
        return None
    return Price(max(each.read for each in known), max(each.written for each in known))


def described(config: Config, alias: str) -> str:
    """The alias with those of its models that have no price, or with all where each has one."""
    models = [(config.groups[n][at].model, price(config, n, at)) for n, at in places(config, alias)]
    unpriced = [model for model, known in models if known is None]
    shown = dict.fromkeys(unpriced or [model for model, _ in models])
    return f"alias {alias!r} ({', '.join(shown)})"
