"""Who may ask: keys, and which addresses may go without."""

import hashlib
import hmac
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from ..errors import InputError

SHORTEST_KEY = 16
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Access:
    """The keys that are accepted, kept as digests only.

    Without keys everyone may ask, and only requests that name this machine are answered: a web
    page elsewhere could otherwise reach the service through the reader's own browser (DNS
    rebinding).

    Attributes:
        digests: SHA-256 of every key.
        hosts: Names that a request may call the service by; empty for any.
    """

    digests: tuple[bytes, ...] = field(default=(), repr=False)
    hosts: tuple[str, ...] = LOOPBACK_NAMES

    @classmethod
    def of(cls, keys: Sequence[str]) -> "Access":
        """Access by these keys, or for everyone on this machine where there are none.

        Raises:
            InputError: A key is too short to be one.
        """
        if any(len(key) < SHORTEST_KEY for key in keys):
            raise InputError(
                f"an API key has fewer than {SHORTEST_KEY} characters; take a random one, such as "
                "that of: python -c 'import secrets; print(secrets.token_urlsafe(32))'"
            )
        return cls(tuple(map(_digest, keys)), () if keys else LOOPBACK_NAMES)

    @property
    def open(self) -> bool:
        """Whether no key is needed."""
        return not self.digests

    def admits(self, authorization: str) -> bool:
        """Whether a request with this ``Authorization`` header may be answered.

        Takes as long for a wrong key as for a right one.
        """
        scheme, _, key = authorization.partition(" ")
        given = _digest(key.strip() if scheme.lower() == "bearer" else "")
        found = [hmac.compare_digest(given, digest) for digest in self.digests]
        return self.open or any(found)

    def answers_to(self, host: str) -> bool:
        """Whether the service may be called by the name in a request's ``Host`` header."""
        name = host.rsplit(":", 1)[0] if not host.endswith("]") else host
        return not self.hosts or name.strip("[]").lower() in self.hosts


def keys_from(variable: str, environment: Mapping[str, str] | None = None) -> list[str]:
    """The keys in an environment variable, several (while one is being replaced) by commas."""
    value = (os.environ if environment is None else environment).get(variable, "")
    return [key.strip() for key in value.split(",") if key.strip()]


def check_host(host: str, access: Access, variable: str) -> None:
    """Refuse to listen beyond this machine without a key.

    Raises:
        InputError: It would; the message says how to set a key.
    """
    if access.open and not is_loopback(host):
        raise InputError(
            f"--host {host} can be reached from other machines, which needs an API key: set the "
            f"environment variable {variable}, or leave the host at 127.0.0.1"
        )


def is_loopback(host: str) -> bool:
    """Whether an address, or a name that is known to be one, is this machine's own."""
    if host.lower() == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
