"""Queries whose grades a test knows."""

import json
import random

KEY = "sk-a-key-that-nobody-may-see"
PRICE = {"input_cost_per_token_batches": 1e-6, "output_cost_per_token_batches": 2e-6}


def grade(q, d):
    """All grades of a query are different, and unlike the incoming order."""
    return round(3 * random.Random(f"{q} {d}").random(), 6)


def lines(n, documents=50):
    """JSON Lines of so many queries."""
    records = (
        {
            "id": f"q{q}",
            "query": f"what is {q}",
            "documents": [
                {"id": f"d{q}-{d}", "text": f"query {q} passage {d}"} for d in range(documents)
            ],
        }
        for q in range(n)
    )
    return "".join(json.dumps(record) + "\n" for record in records)
