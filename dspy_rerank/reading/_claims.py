"""Short answers as models write them: what the clearest sentences of a text claim."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from ._runs import NOUN

Claim = re.Match[str]

_END = r"[\s.!*)\]\"']*$"
_DENIAL = (
    r"(?:(?:it|this|that)\s+)?(?:(?:is|are|was|does|it's)\s+)?"
    r"(?:not|isn't|doesn't|less|irrelevant|unrelated|wrong|worse|no|never|neither)\b"
)
_LABEL = r"(?:\d{1,4}|[a-z]|(?-i:[A-Z]{2}))\b"
_WHY = (
    rf"(?:\s*(?:[-–—(]|,?\s+(?:because|since|as|due|for)\b|,\s+(?:which|it)\b)\s*"
    rf"(?!{_DENIAL}(?!\s+(?:{NOUN}\s+)?\W?{_LABEL}))(?!\W*(?:{NOUN}\s+)?\W*(?:{_LABEL}|tied?|equal|draw)\W*$)(?=\S))"
)

_OPENING = (
    r"(?:(?:so|thus|therefore|hence|overall|finally|clearly|in conclusion|in summary|i think"
    r"|i believe|i would say)\b,?\s*(?:that\s+)?)?"
)
_IS = r"(?:\s*(?:\bis\b|:|=|→|->|-)){1,2}\s*"

_NOTHING = (
    rf"(?P<none>\[\s*\]|\[\s*none\s*\]|neither\s+{_LABEL}\s+nor\s+{_LABEL}|(?:none|neither)(?:\s+of\s+(?:them|(?:the|these)(?:\s+\w+)?(?:\s+{NOUN})?))?"
    rf"(?:\s+{NOUN})?(?:\s+(?:is|are)(?:\s+\w+ly)?\s+relevant)?"
    rf"|(?:no|zero)\s+(?:relevant\s+{NOUN}|{NOUN}\s+(?:is|are)(?:\s+\w+ly)?\s+relevant)"
    r"|nothing(?:\s+is\s+relevant)?)(?:\s+(?:to|for)\s+(?:the|this|your)\s+(?:query|question))?"
)
_PLACE = (
    rf"(?:the\s+)?(?:{NOUN}\s*#?\s*)?[\[(\"']*(?:{NOUN}\s*)?(?P<label>{_LABEL})(?!\.\d|[,/]\d|%)"
    rf"[\])\"']*(?:\s+{NOUN}\b)?"
)
_SIDE = rf"(?:the\s+)?(?P<side>left|right|first|second)(?:\s+(?:one|{NOUN}))?\b"
_TIE = (
    rf"(?:(?:it(?:'s|\s+is)|this\s+is|they(?:'re|\s+are)|both(?:\s+{NOUN})?(?:\s+are)?"
    rf"|(?:the\s+)?(?:two\s+)?{NOUN}\s+are)\s+)?(?:an?\s+|the\s+)?"
    r"(?P<tie>tied?|equal(?:ly\s+\w+)?|same|draw)\b"
)
_WINNER = (
    rf"(?:(?:(?:the|my|your|final|best|correct|more|most|better|relevant|preferred|chosen|selected"
    rf"|winning)\s+)*(?:answer|choice|winner|verdict|preference|decision|pick|selection|output"
    rf"|best|{NOUN}){_IS}|i(?:'d|\s+would)?\s+(?:choose|pick|prefer|select|say|go\s+with)\s+"
    r"|it(?:'s|\s+is)\s+)"
)
_WINS = (
    rf"(?:\s+(?:is|seems|appears(?:\s+to\s+be)?|was)\s+(?:\w+ly\s+)*(?:the\s+)?(?:much\s+|far\s+)?"
    r"(?:(?:more|most)\s+(?:\w+ly\s+)?(?:relevant|useful|helpful|informative|specific|suitable"
    r"|appropriate|accurate|direct|on-topic|related)"
    rf"|(?:better|best|stronger|strongest|preferred|preferable|superior|winner|correct)"
    rf"(?=\s*(?:[,)]|{_END})|\s+(?:than|match|answer|choice|fit|option|one|{NOUN})\b))"
    rf"|\s+wins\b|\s*>+\s*(?=\W*(?:{NOUN}\s+)?\W*{_LABEL}))(?!.*\b(?:if|unless)\b)"
)
_GRADE = (
    r"[\[(]*(?P<grade>[+-]?(?:\d{1,9}(?:\.\d{1,18}|,\d{1,2})?|\.\d{1,18}))"
    r"(?:\s*(?:/|out\s+of|of)\s*(?P<of>\d{1,9}(?:\.\d+)?))?(?:\s+(?:points?|stars?))?(?![\w%/]|\s*%|[.,]\d)"
)
_SCORE = (
    r"(?:(?:(?:the|this|my|final|overall|an?|relevance|topical|passage's)\s+)*"
    r"(?:score|relevance|relevancy|grade|rating|label|level|answer)(?:\s*\([^()]{0,20}\))?"
    r"(?:\s*(?:\bis\b|\bof\b|:|=|→|->)){0,2}\s*"
    rf"|i(?:'d|\s+would|\s+will)?\s+(?:give|rate|assign|score)\s+(?:it|this|the)(?:\s+{NOUN})?"
    r"(?:\s+as)?(?:\s+an?)?(?:\s+(?:relevance\s+)?score\s+of)?\s+)"
)
_GRADE_WHY = r"(?:\s*(?:[-–—:=(,]|because\b|since\b|as\b)\s*(?=\S)(?!\W*\d)(?!.*\d\s*[:=–—-]))"
_YES_NO = (
    r"(?P<yes>yes|true|relevant|1(?:\.0)?)(?!\w|\.\d)"
    r"|(?P<no>no|false|not\s+relevant|irrelevant|0(?:\.0)?)(?!\w|\.\d)"
)
_RELEVANT = rf"(?:(?:the|this|my|final)\s+)*(?:answer|relevant|relevance|{NOUN}){_IS}"
_YES_NO_WHY = r"(?:\s*(?:[-–—:(,]|because\b|since\b|as\b)\s*(?=\S)(?!.*\b(?:yes|no|but|however)\b))"


@dataclass(frozen=True, slots=True)
class Grammar:
    """How an answer may be put, from the clearest to the least clear way.

    Attributes:
        headed: Behind a lead, such as ``The answer is B``.
        sole: The sentence is the answer, such as ``B.``.
        stated: The sentence says it of the answer, such as ``B is more relevant``.
    """

    headed: re.Pattern[str]
    sole: re.Pattern[str]
    stated: re.Pattern[str]


@cache
def grammar(value: str, lead: str, why: str, verdict: str = r"(?!)") -> Grammar:
    """The grammar of an answer given the pattern of its value and of the words around it."""
    compiled = (
        re.compile(pattern, re.IGNORECASE | re.DOTALL)
        for pattern in (
            rf"{_OPENING}{lead}[\s*\"']*(?:{value})(?:{_END}|{why}|{verdict})",
            rf"(?:{value}){_END}",
            rf"{_OPENING}(?:{value})(?:{why}|{verdict})",
        )
    )
    return Grammar(*compiled)


NOTHING = grammar(_NOTHING, _WINNER, _WHY)
CHOICE = grammar(f"{_NOTHING}|{_PLACE}", _WINNER, _WHY, _WINS)
PREFERENCE = grammar(f"{_NOTHING}|{_TIE}|{_SIDE}|{_PLACE}", _WINNER, _WHY, _WINS)
GRADE = grammar(_GRADE, _SCORE, _GRADE_WHY)
YES_NO = grammar(_YES_NO, _RELEVANT, _YES_NO_WHY)


def claims(text: str, grammar: Grammar) -> list[Claim]:
    """The claims made in the clearest way that any sentence of the text uses."""
    lines = list(_lines(text))
    sentences = [sentence for line in lines for sentence in line]
    edges = [sentence for line in lines for sentence in {line[0]: 0, line[-1]: 1}]
    clauses = [clause for sentence in sentences for clause in _CLAUSE.split(sentence)]
    ways = ((grammar.headed, sentences), (grammar.sole, edges), (grammar.stated, clauses))
    for pattern, parts in ways:
        found = [claim for claim in map(pattern.match, parts) if claim]
        if found:
            return found
    return []


_NUMBERING = re.compile(r"^([ \t]*+)\d{1,4}[.)][ \t]+(?=\S)", re.MULTILINE)
_PLAIN = str.maketrans("’“”", '\'""', "*`")
_BLANKS = re.compile(r"[^\S\n]++")
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_CLAUSE = re.compile(r",?\s+(?:but|while|whereas|although|though|however|and)\b,?\s*", re.I)
_DECORATION = re.compile(r"(?:[-–—•>#+]\s|[\s>#*_`\"'])*+")


def _lines(text: str) -> Iterator[list[str]]:
    """Each line's sentences without list numbers and markdown; no questions."""
    plain = _NUMBERING.sub(r"\1", text).translate(_PLAIN)
    for line in re.split(r"[\n;]", _BLANKS.sub(" ", plain)):
        bare = [_DECORATION.sub("", part, count=1).rstrip() for part in _SENTENCE.split(line)]
        sentences = [sentence for sentence in bare if sentence and not sentence.endswith("?")]
        if sentences:
            yield sentences
