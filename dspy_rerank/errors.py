"""Errors: one base, and leaves that are also the builtin a caller would expect."""


class RerankError(Exception):
    """Base of every error that this package raises on purpose."""


class InputError(RerankError, ValueError):
    """A query, document, parameter or file has a value that cannot be used."""


class DocumentTypeError(RerankError, TypeError):
    """A document is of a type that cannot be read; the message names its position."""


class NoModelError(RerankError, RuntimeError):
    """No language model is configured and none is embedded; the message names both ways out."""


class EvidenceError(RerankError, RuntimeError):
    """The language model cannot give the evidence that was asked for."""


class ModelError(RerankError, RuntimeError):
    """The language model kept failing; raised under ``on_error="raise"``."""


class Deferred(RerankError):  # noqa: N818  (no failure: the answer comes later)
    """An answer comes later; a ranking ends with it once its whole round has been asked."""


class Crowded(RerankError):  # noqa: N818  (no failure: fewer are asked about at a time)
    """So many passages do not fit into the model's context; half of them may.

    Attributes:
        refused: Whether it took a call, which the model refused, to find that out.
    """

    def __init__(self, message: str = "", *, refused: bool = False):
        super().__init__(message)
        self.refused = refused


class JudgeError(RerankError, RuntimeError):
    """A function used as judge raised or returned something that is not an answer."""


class ProgramError(RerankError, ValueError):
    """A saved program does not fit: not one of ours, edited, from another version, or unknown."""


class DataError(RerankError, ValueError):
    """A data set, run or qrels file cannot be read; the message names the file and the line."""


class MissingExtraError(RerankError, ImportError):
    """An optional dependency is not installed; the message has the line that installs it."""


class CompileError(RerankError, RuntimeError):
    """An optimizer failed, returned nothing, or its metric raised; the message says which."""
