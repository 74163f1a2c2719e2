"""Orders as models write them: runs of ids with nothing but separators between them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise

NOUN = r"(?:passage|document|doc|option|candidate|item|result|text|snippet)s?"

_TOKEN = re.compile(
    rf"""
    (?P<numbering>^[ \t]*+\d{{1,4}}[.)](?=[ \t]+\S|[\[(A-Z])
        |^[ \t]*+(?i:rank)[ \t]*+\d{{1,4}}:
        |(?<![\w.,(\[])\d{{1,4}}[.)](?=[ \t]*+\[))
    |(?P<bullet>^[ \t]*+[-–+](?=[ \t]*+[^\s\d-]|[ \t]+\d))
    |(?P<noun>\b(?i:{NOUN}|id)\b[ \t]*+\#?)
    |(?P<id>(?<![\w.])
        (?:\d+(?:\.0+)?|(?:[A-Z]{{1,2}}|[a-z])(?![ ]++(?!then\b|and\b)[a-z]))(?![\w%]|\.\d))
    |(?P<comment>\((?!{NOUN}\b)(?=[^()]{{0,60}}[a-z]{{3}})[A-Za-z][a-z ,'/-]{{0,60}}\))
    |(?P<open>[\[(])
    |(?P<close>[\])])
    |(?P<better>>|→|≻|\b(?:and[ ])?then\b)
    |(?P<gap>,[ \t]++and\b|[\s,;=|"'`*_•·\#]|\.(?=\s|\Z))
    |(?P<other>\w+|.)
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_HEADING = re.compile(
    r"\b(?:rank\w*|order\w*|answer|sort\w*|list|results?|relevan\w*|best)\b"
    r".*?(?::|->|\b(?:is|are|as|be|follows|them|order|rank|ranking))\W*$",
    re.I | re.S,
)
_OTHERS = re.compile(
    r"\b(?:not|irrelevant|unrelated|excluded)\b|n't\b|\bthan\W*$"
    r"|\b(?:initial|original|incoming|input|given|provided|current)\s+(?:\w+\s+)?"
    rf"(?:order\w*|rank\w*|list|{NOUN})\b",
    re.I,
)
_ASCENDING = re.compile(r"\b(?:least|worst|lowest|ascending|increasing)\b", re.I)
_DESCENDING = re.compile(r"\b(?:most|best|highest|descending|decreasing)\b", re.I)
_LABEL = r"(\d{1,4}|[A-Z]{1,2})"
_ITEM = re.compile(
    rf"^[ \t]*+(?P<place>\d{{1,4}})[.)][ \t*_]*+"
    rf"(?:(?:(?i:{NOUN})[ \t]*+)?[\[(]{_LABEL}[\])](?![ \t]*+(?:,|>|and\b|or\b))"
    rf"|(?:(?i:{NOUN})[ \t]*+{_LABEL}\b|([A-Z])\b)[ \t*_]*+(?:[-–—:(]|$))",
    re.MULTILINE,
)
_NEAR = 200
"""How much text around a run is looked at, so that reading stays linear."""

_BARE = ("open", "close", "noun")

Token = re.Match[str]


@dataclass(frozen=True, slots=True)
class Run:
    """Ids that follow one another.

    Attributes:
        ids: Labels as written, without brackets.
        bracketed: All ids stand in brackets; else none does.
        ordered: The ids are joined by ``>``.
        lead: The words that lead up to the run, on its line or as a heading above it.
        begins_text: Nothing stands before the run.
        begins_line: Nothing stands before the run on its line.
        ends_line: Nothing stands behind the run on its line.
        whole: The run is all there is in the text.
        torn: The run begins with a ``>`` that has lost its left side.
        cut: The text ends inside the run.
        unfinished: The text ends at the last id, which may lack its end.
    """

    ids: tuple[str, ...]
    bracketed: bool
    ordered: bool
    lead: str
    begins_text: bool
    begins_line: bool
    ends_line: bool
    whole: bool
    torn: bool
    cut: bool
    unfinished: bool

    @property
    def weight(self) -> int:
        """How clearly the run is meant as the answer; 0 for ids that are only mentioned.

        3 under a heading such as ``Ranking:``, 2 alone on its lines or behind a colon, 1 in a
        sentence but joined by ``>``.
        """
        if self.whole or self.torn or len(self.ids) < 2:
            return 2 * self.whole
        clause = re.split(r"[.;!?]\s", self.lead)[-1]
        if _OTHERS.search(clause) or _worst_first(clause):
            return 0
        if _HEADING.search(clause) and (self.bracketed or self.ends_line):
            return 3
        if self.ends_line and self._apart(clause):
            return 2
        return int(self.bracketed and self.ordered)

    def _apart(self, clause: str) -> bool:
        """Whether what stands before the run leaves no doubt that it is more than a mention."""
        if self.ordered and clause.endswith(":"):
            return True
        return self.begins_text or (self.begins_line and (self.bracketed or self.ordered))


def runs(text: str) -> list[Run]:
    """All runs of ids, in the order in which they stand."""
    spans = [span for segment in _segments(text) for span in _spans(segment)]
    return [_run(text, tokens, ids, len(spans) == 1) for tokens, ids in spans]


def numbered(text: str) -> tuple[str, ...]:
    """The ids that head the items of a list like ``1. [3] - why``; empty if it is none."""
    items = list(_ITEM.finditer(text))
    places = [int(item["place"]) for item in items]
    if len(items) < 2 or places != list(range(1, len(items) + 1)):
        return ()
    return tuple(item[2] or item[3] or item[4] for item in items)


def _segments(text: str) -> Iterator[list[Token]]:
    """Stretches of ids and separators."""
    for other, tokens in groupby(_TOKEN.finditer(text), lambda t: t.lastgroup == "other"):
        if not other:
            yield list(tokens)


def _spans(segment: Sequence[Token]) -> Iterator[tuple[Sequence[Token], list[tuple[Token, bool]]]]:
    """Parts of a segment whose ids are all bracketed or all bare, with these ids and which.

    A line end alone divides ids, too, where others are joined on one line.
    """
    depths = accumulate(map(_step, segment), lambda depth, step: max(0, depth + step))
    ids = [(i, depth > 0) for i, depth in enumerate(depths) if segment[i].lastgroup == "id"]
    joints = [_joint(segment, before[0], after[0]) for before, after in pairwise(ids)]
    breaking = "line" if "inline" in joints else None
    rows = accumulate((joint == breaking for joint in joints), initial=0)
    groups = [
        [found for found, _ in group]
        for _, group in groupby(zip(ids, rows, strict=False), lambda pair: (pair[0][1], pair[1]))
    ]
    starts = [0, *(group[-1][0] + 1 for group in groups)]
    stops = [*(group[0][0] for group in groups[1:]), len(segment)]
    for group, start, stop in zip(groups, starts, stops, strict=False):
        yield segment[start:stop], [(segment[i], inside) for i, inside in group]


def _joint(segment: Sequence[Token], before: int, after: int) -> str:
    """How two ids are joined: on one line, by a line end alone, or as items of a list."""
    between = [t for t in segment[before + 1 : after] if t.lastgroup not in _BARE]
    if not any("\n" in token[0] for token in between):
        return "inline"
    return "listed" if any(token[0].strip() for token in between) else "line"


def _step(token: Token) -> int:
    return {"open": 1, "close": -1}.get(token.lastgroup or "", 0)


def _run(text: str, tokens: Sequence[Token], ids: Sequence[tuple[Token, bool]], only: bool) -> Run:
    (first, bracketed), last = ids[0], ids[-1][0]
    start, end = tokens[0].start(), tokens[-1].end()
    begins, lead = _lead(text, start, first.start())
    cut = end == len(text) and _is_cut(tokens)
    return Run(
        ids=tuple(token[0] for token, _ in ids),
        bracketed=bracketed,
        ordered=any(
            t.lastgroup == "better" and first.start() < t.start() < last.start() for t in tokens
        ),
        lead=lead,
        begins_text=begins and start < _NEAR and not text[:start].strip(),
        begins_line=begins,
        ends_line=_ends_line(text[last.end() : end + _NEAR]),
        whole=only and not re.search(r"[^\W_]", text[:start] + text[end:]),
        torn=not begins and _solid(tokens)[0] == "better",
        cut=cut,
        unfinished=cut and last.end() == len(text),
    )


def _is_cut(tokens: Sequence[Token]) -> bool:
    """Whether a bracket stays open, or a ``>`` waits for its id."""
    return sum(map(_step, tokens)) > 0 or _solid(tokens)[-1] == "better"


def _solid(tokens: Sequence[Token]) -> list[str | None]:
    return [token.lastgroup for token in tokens if token.lastgroup != "gap"]


def _lead(text: str, start: int, first: int) -> tuple[bool, str]:
    """Whether a run begins its line, and the words that lead up to it."""
    near = text[max(0, start - _NEAR) : start]
    line = near.rpartition("\n")[2].strip(" \t*_`\"'>#")
    if line and "\n" not in text[start:first]:
        return False, line
    above = near.rstrip().rpartition("\n")[2].rstrip("*_` ")
    return True, above if above.endswith(":") else ""


def _ends_line(rest: str) -> bool:
    line = rest.partition("\n")[0]
    return not re.search(r"[^\W_]", line)


def _worst_first(clause: str) -> bool:
    low, high = _ASCENDING.search(clause), _DESCENDING.search(clause)
    return low is not None and (high is None or low.start() < high.start())
