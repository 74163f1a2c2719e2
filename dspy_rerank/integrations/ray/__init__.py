"""Rankings of whole data sets on Ray, on one machine or many: ``pip install 'dspy-rerank[ray]'``.

::

    from dspy_rerank.integrations import ray

    summary = ray.rerank("queries.parquet", "ranked", "reranker.json", lm="openai/gpt-4o-mini")
"""

from .parts import Parts, read_failed, read_ranked
from .running import rerank

__all__ = ["Parts", "read_failed", "read_ranked", "rerank"]
