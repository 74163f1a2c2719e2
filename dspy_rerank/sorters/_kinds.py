"""The kinds of judges that sorting modules take."""

COMPARING = ("pairwise", "setwise", "listwise")
GROUPING = ("listwise", "setwise")
