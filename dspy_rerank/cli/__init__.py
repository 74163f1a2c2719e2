"""The command line: ``dspy-rerank demo | rerank | check | compile | evaluate | compare ...``."""

from ._app import main

__all__ = ["main"]
