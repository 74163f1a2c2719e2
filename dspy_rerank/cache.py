"""How many answers DSPy keeps in the memory of a process that is ours: a command, a worker."""

import dspy


def keep_in_memory(answers: int) -> None:
    """Bound DSPy's cache in memory, which by itself takes a million answers.

    Its cache on disk stays as it is: in use, off, or not there because nothing can be written.
    """
    cache = dspy.cache
    dspy.configure_cache(
        enable_disk_cache=cache.enable_disk_cache,
        disk_cache_dir=cache.disk_cache_dir,
        enable_memory_cache=cache.enable_memory_cache and answers > 0,
        memory_max_entries=max(1, answers),
    )
