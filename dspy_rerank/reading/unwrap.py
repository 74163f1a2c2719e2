"""From a raw completion to the answer in it: peels what models and adapters wrap around it."""

import json
import re
from collections.abc import Iterator
from typing import Any

_REASONING = re.compile(
    r"</?(?:think|thinking|thought|reasoning)(?:\s[^<>]*)?>|\[/?think\]"
    r"|<\|channel\|>(?:analysis|commentary|final)[^<>]{0,40}<\|message\|>",
    re.I,
)
_REASONING_END = re.compile(r"[<\[]/|<\|channel\|>final", re.I)
_SPECIAL = re.compile(r"<\|[^|<>\n]{1,40}\|>|</?s>|<eos>|<(?:start|end)_of_turn>", re.I)
_LINE_HEADER = re.compile(r"^[ \t]*\[\[\s*##\s*(\w+)\s*##\s*\]\]", re.M)
_HEADER = re.compile(r"\[\[\s*##\s*(\w+)\s*##\s*\]\]")
_LANGUAGES = "jsonc?|json5|text|txt|plaintext|plain|xml|yaml|markdown|md|python"
_FENCE = re.compile(rf"(?:`{{3,}}|~{{3,}})(?:[ \t]*(?:{_LANGUAGES})\b)?", re.I)
_BOXED = re.compile(r"\\boxed\{([^{}]*)\}")
_BARE = re.compile(r"\s*[A-Za-z0-9]{1,8}\.?\s*")
_DECODER = json.JSONDecoder()
_PATIENCE = 32
"""Broken JSON objects after which no more are tried, so that reading stays linear."""


def unwrap(text: str, field: str) -> str | None:
    r"""The text of one output field, out of any mix of usual wrappers.

    Peeled are reasoning blocks, special tokens, DSPy's ``[[ ## field ## ]]`` headers, ``<field>``
    tags, code fences, JSON objects with the field as a key, ``\boxed{}`` and a heading ``Field:``
    at the start of a line. The last mention of the field counts, but two headings are left for
    the reader to compare. ``answer`` is understood as a name of any field.

    Returns:
        The bare answer, stripped, which may be empty; ``None`` when there can be no answer:
        the reasoning was never closed, or the completion is an error object.
    """
    if _BARE.fullmatch(text):
        return text.strip()
    spoken = _after_reasoning(_keyed_string(text, field))
    if spoken is None:
        return None
    names = (field.lower(), "answer")
    bare = _FENCE.sub("", _tagged(_headed(_SPECIAL.sub("", spoken), names), names))
    value = _keyed(bare, names)
    if value is None:
        return None
    return _titled(_BOXED.sub(r"\1", value), field).strip()


def _keyed_string(text: str, field: str) -> str:
    """The field's text where the whole completion is one JSON object that holds it as a string.

    Reasoning inside of a string has to be cut out of the string, not out of the JSON.
    """
    if not text.lstrip().startswith("{"):
        return text
    try:
        found = _DECODER.decode(text.strip())
    except (ValueError, RecursionError):
        return text
    value = found.get(field) if isinstance(found, dict) else None
    return value if isinstance(value, str) and _REASONING.search(value) else text


def _after_reasoning(text: str) -> str | None:
    """What stands outside of reasoning blocks; a stray closing tag ends one, too."""
    kept: list[str] = []
    end, inside = 0, False
    for tag in _REASONING.finditer(text):
        closing = _REASONING_END.match(tag[0]) is not None
        if closing and not inside:
            kept.clear()
        elif not closing and not inside:
            kept.append(text[end : tag.start()])
        end, inside = tag.end(), not closing
    return None if inside else "\n".join([*kept, text[end:]]).strip()


def thought(text: str) -> bool:
    """Whether a completion holds reasoning; a block with nothing in it is none."""
    if not _REASONING.search(text):
        return False
    outside = _after_reasoning(text)
    return outside is None or len(_solid(outside)) < len(_solid(_REASONING.sub("", text)))


def _solid(text: str) -> str:
    return "".join(text.split())


def _headed(text: str, names: tuple[str, ...]) -> str:
    """The value under DSPy's header; without such a field, what stands before all headers."""
    for pattern in (_LINE_HEADER, _HEADER):
        before, *rest = pattern.split(text)
        fields = {name.lower(): value for name, value in zip(rest[::2], rest[1::2], strict=True)}
        found = next((fields[name] for name in names if name in fields), None)
        if found is not None:
            return found
    return before


def _tagged(text: str, names: tuple[str, ...]) -> str:
    """The value between XML tags; an unclosed tag reaches to the end."""
    for name in map(re.escape, names):
        *_, last = None, *re.finditer(rf"<{name}\s*>", text, re.I)
        if last is not None:
            return re.split(rf"</{name}\s*>", text[last.end() :], maxsplit=1, flags=re.I)[0]
    return text


def _keyed(text: str, names: tuple[str, ...]) -> str | None:
    """The value under the field's key in a JSON object; ``None`` for an error object."""
    objects = list(_objects(text))
    if any(_lookup(found, "error") for found in objects):
        return None
    for name in names:
        for found in reversed(objects):
            value = _nested(found, name)
            if value is not None:
                return _written(value)
    return text if objects else _loosely_keyed(text, names)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    start, failures = text.find("{"), 0
    while start >= 0 and failures < _PATIENCE:
        try:
            value, end = _DECODER.raw_decode(text, start)
            yield value
        except (ValueError, RecursionError):
            failures, end = failures + 1, start + 1
        start = text.find("{", end)


def _written(value: Any) -> str:
    try:
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return ""


def _lookup(found: dict[str, Any], name: str) -> Any:
    return next((value for key, value in found.items() if key.strip().lower() == name), None)


def _nested(found: dict[str, Any], name: str) -> Any:
    """The value under a key, in the object or in one inside it, outermost first."""
    level = [found]
    while level:
        value = next((v for v in (_lookup(o, name) for o in level) if v is not None), None)
        if value is not None:
            return value
        level = [v for o in level for v in o.values() if isinstance(v, dict)]
    return None


def _loosely_keyed(text: str, names: tuple[str, ...]) -> str:
    """The value under the field's key in an object that is cut off or not quite JSON."""
    value = r"""\[(?:[^\[\]]++|\[[^\[\]]*+\])*+\]?|"[^"\n]*|'[^'\n]*|[^,}\n]*"""
    for name in map(re.escape, names):
        *_, last = None, *re.finditer(rf"""["']{name}["']\s*:\s*({value})""", text, re.I)
        if last is not None:
            return last[1].lstrip("\"'")
    return text


def _titled(text: str, field: str) -> str:
    """The value after a heading ``Field:`` that begins a line, if there is exactly one."""
    words = r"[ _]".join(map(re.escape, re.split(r"[ _]", field)))
    parts = re.split(rf"^[ \t>*_#-]*{words}[ \t*_]*[:=]", text, flags=re.I | re.M)
    return parts[1].lstrip("*_ \t") if len(parts) == 2 else text
