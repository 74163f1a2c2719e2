"""The command line: ``dspy-rerank demo | rerank | compile | evaluate | compare | models``."""

from ._app import main

__all__ = ["main"]
