"""``python -m dspy_rerank.cli``."""

import sys

from ._app import main

sys.exit(main())
