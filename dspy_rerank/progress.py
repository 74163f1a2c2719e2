"""A bar for batch work, on standard error: drawn on a terminal, silent in a pipe."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
"""Called as ``progress(done, total)``."""


@contextmanager
def reporting(progress: Progress | bool | None, what: str = "ranking") -> Iterator[Progress | None]:
    """The caller's own function, a bar for ``True``, nothing for ``None`` and ``False``."""
    if progress is not True:
        yield progress or None
        return
    with progress_bar(what) as update:
        yield update


@contextmanager
def progress_bar(what: str = "ranking") -> Iterator[Progress]:
    """Gives a function ``(done, total)`` that draws a bar.

    Works as ``progress=`` of :meth:`dspy_rerank.Reranker.rank_many` and of optimizers.

    Args:
        what: Stands before the bar.
    """
    from rich.console import Console
    from rich.progress import Progress as Bars

    screen = Console(stderr=True)
    shown = screen.is_terminal or screen.is_jupyter
    with Bars(console=screen, transient=True, disable=not shown) as bars:
        task = bars.add_task(what, total=None)

        def update(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        yield update
