"""Names of the rows in which a compiled program is compared with others."""

UNCOMPILED = "uncompiled"
COMPILED = "compiled"
PLAIN = "plain DSPy"


def of_seed(seed: int) -> str:
    """The row of a program that another seed gave."""
    return f"{COMPILED}, seed {seed}"
