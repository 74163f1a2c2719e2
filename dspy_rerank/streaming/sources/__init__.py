"""Queries out of files, one after the other: whatever the format, a few are in memory at a time."""

from .opening import Source, open_source

__all__ = ["Source", "open_source"]
