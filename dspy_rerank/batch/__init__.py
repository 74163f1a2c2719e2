"""Rankings of a whole data set through a provider's batch API, a round of all queries at a time.

Sorts are plans that ask in rounds, so the first round of all queries is one batch, their second
round the next, and `TopDown` needs three for any number of queries. Batches cost about half of
live calls and take up to a day each.

>>> import dspy_rerank as dr
>>> job = dr.batch.begin(
...     "state", "queries.jsonl", "reranker.json", lm="judge", config="litellm.yaml"
... )  # doctest: +SKIP
>>> job.wait(every=300).ranked  # doctest: +SKIP
1000
>>> job.write("run.trec")  # doctest: +SKIP
"""

from .beginning import begin, resume
from .job import Job, Limits
from .provider import UnavailableError
from .status import Status

__all__ = ["Job", "Limits", "Status", "UnavailableError", "begin", "resume"]
