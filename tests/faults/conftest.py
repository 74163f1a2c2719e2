"""Retries do not wait, and LiteLLM is imported before any deadline runs."""

import litellm  # noqa: F401
import pytest


class Hurry:
    """Draws next to nothing."""

    def uniform(self, low, high):
        return 0.001


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    monkeypatch.setattr("dspy_rerank.engine._jitter", Hurry())
    monkeypatch.setattr("dspy_rerank.limits._jitter", Hurry())
