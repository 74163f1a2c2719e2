"""How long so many calls take at most and at least: the slowest of several limits decides."""

from dataclasses import dataclass

from .ranges import Range

ASSUMED = Range(0.5, 5.0)
"""Seconds of a call where nobody has measured one."""


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast a model may be asked and answers.

    Attributes:
        latency: Seconds of a call.
        concurrency: Questions in flight.
        rpm: Requests a minute; ``None`` is any number.
        tpm: Tokens a minute; ``None`` is any number.
    """

    latency: Range = ASSUMED
    concurrency: int = 8
    rpm: float | None = None
    tpm: float | None = None

    def seconds(self, calls: Range, tokens: Range, longest: Range) -> tuple[Range, str]:
        """Seconds of a run, and what decides them.

        Args:
            calls: Of the run.
            tokens: Read and written.
            longest: Rounds of the query with the most, which cannot overlap.
        """
        limits = {
            f"{self.concurrency} questions in flight": calls * self.latency
            * (1 / self.concurrency),
            "one query's rounds": longest * self.latency,
        }  # fmt: skip
        if self.rpm:
            limits[f"{self.rpm:g} requests a minute"] = calls * (60 / self.rpm)
        if self.tpm:
            limits[f"{self.tpm:g} tokens a minute"] = tokens * (60 / self.tpm)
        found = Range()
        for each in limits.values():
            found = found.most(each)
        return found, max(limits, key=lambda name: limits[name].hi)
