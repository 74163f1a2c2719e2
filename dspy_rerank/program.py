"""Saving and loading a reranker as JSON: structure, settings, prompts and demos; nothing runs.

A file names classes; loading builds only those on the list below or passed by the caller, with
their own constructors, and then restores DSPy's JSON state. There is no pickle, no import by
name, no address and no key in a file.
"""

import copy
import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import dspy

from . import binding
from .adapters import description
from .errors import ProgramError
from .judges import ListwiseJudge, PairwiseJudge, Panel, PointwiseJudge, SetwiseJudge
from .judges.base import SignatureJudge
from .judges.decision_types import loaded_type, saved_type
from .sorters import SORTERS
from .sorters.base import Reranker

logger = logging.getLogger(__name__)

FORMAT = "dspy_rerank.program"
VERSION = 1
JUDGES = (PointwiseJudge, PairwiseJudge, SetwiseJudge, ListwiseJudge, Panel)
ADAPTERS = {a.__name__: a for a in (dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter)}
CHILDREN = ("judge", "reranker", "by_likelihood")
TYPES: dict[str, Any] = {
    "str": str, "int": int, "float": float, "bool": bool,
    "list[str]": list[str], "list[int]": list[int], "list[float]": list[float],
}  # fmt: skip


def save(reranker: Reranker, path: str | Path) -> Path:
    """Write a reranker to a JSON file.

    Of a language model that is bound to the program only the alias is saved, if it came from
    :func:`dspy_rerank.models.load`; any other has to be bound again when loading.

    Raises:
        ProgramError: A part cannot be written as JSON, such as a function used as judge.
    """
    content = to_dict(reranker)
    try:
        text = json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)
        encoded = (text + "\n").encode()
    except (TypeError, ValueError) as error:
        raise ProgramError(f"the reranker cannot be written as JSON: {error}") from None
    target = Path(path)
    target.write_bytes(encoded)
    return target


def load(path: str | Path, lm: Any = None, *, classes: Iterable[type] = ()) -> Reranker:
    """Read a reranker from a JSON file.

    Args:
        path: Written by :func:`save`.
        lm: A DSPy LM, or a model name, for this program only; ``None`` takes the alias that was
            saved, where such an alias is loaded, else leaves it to ``dspy.configure``.
        classes: Judges and sorters of the caller's own that the file may name.

    Raises:
        ProgramError: The file does not fit; the message says why.
    """
    source = Path(path)
    try:
        content = json.loads(source.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ProgramError(f"{source}: there is no such file") from None
    except (ValueError, OSError, RecursionError) as error:
        raise ProgramError(f"{source} is not a saved program: {error}") from None
    try:
        reranker = from_dict(content, classes=classes)
    except ProgramError as error:
        raise ProgramError(f"{source}: {str(error)[:1000]}") from error
    return binding.bound(reranker, lm if lm is not None else binding.aliased(content.get("lm")))


def to_dict(reranker: Reranker) -> dict[str, Any]:
    """The content of a program file."""
    structure = _structure(reranker)
    state = {name: _unbound(each).dump_state() for name, each in reranker.named_parameters()}
    return {
        "format": FORMAT,
        "version": VERSION,
        "versions": {name: version(name) for name in ("dspy-rerank", "dspy")},
        "program": structure,
        "signature_hash": fingerprint(structure),
        "lm": binding.alias(reranker),
        "state": _without_lm(state),
        "card": _timeless(reranker.card),  # same seed, same file
    }


def _timeless(card: Any) -> Any:
    known = isinstance(card, Mapping)
    return {n: _timeless(v) for n, v in card.items() if n != "seconds"} if known else card


def from_dict(content: Any, *, classes: Iterable[type] = ()) -> Reranker:
    """Build the reranker that :func:`to_dict` described."""
    if not isinstance(content, Mapping) or content.get("format") != FORMAT:
        raise ProgramError(f'not a saved reranker: expected "format": "{FORMAT}" at the top')
    if type(content.get("version")) is not int or not 1 <= content["version"] <= VERSION:
        raise ProgramError(
            f"format version {content.get('version')!r} is not known to this version of "
            f"dspy_rerank, which reads up to {VERSION}; upgrade dspy-rerank"
        )
    known = {cls.__name__: cls for cls in (*SORTERS, *JUDGES, *classes)}
    try:
        structure = content["program"]
        reranker = _build(structure, known)
        if content["signature_hash"] != fingerprint(structure):
            raise ProgramError(
                "the signature was changed after saving: its fields do not match signature_hash, "
                "so saved prompts and demos would land in the wrong fields"
            )
        reranker.load_state(_without_lm(content["state"]))
        if json.dumps(_settings(_structure(reranker))) != json.dumps(_settings(structure)):
            raise ProgramError("the settings under state are not those under program")
        reranker.card = dict(content.get("card") or {})
    except ProgramError:
        raise
    except KeyError as error:
        raise ProgramError(f"the file lacks {error.args[0]!r}: it is cut or was edited") from None
    except Exception as error:  # whatever an edited file makes a constructor raise
        raise ProgramError(f"the file does not describe a usable reranker: {error}") from error
    if not isinstance(reranker, Reranker):
        raise ProgramError(f"the file describes a {type(reranker).__name__}, not a reranker")
    return reranker


def _settings(structure: Mapping[str, Any]) -> list[Any]:
    inner = [_settings(child) for child in structure["children"].values()]
    kept = sorted((n, v) for n, v in structure["settings"].items() if v is not None)
    return [kept, *inner]


def fingerprint(structure: Mapping[str, Any]) -> str:
    """Hash of the names and types of all signature fields, in order."""
    text = json.dumps(_fields_of(structure), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _fields_of(structure: Mapping[str, Any]) -> list[Any]:
    signature = structure.get("signature") or {}
    own = [[f["name"], f["part"], f["type"]] for f in signature.get("fields", ())]
    inner = [_fields_of(child) for child in structure.get("children", {}).values()]
    return [own, *inner]


def _structure(module: Any) -> dict[str, Any]:
    if not isinstance(module, Reranker | SignatureJudge | Panel):
        raise ProgramError(
            f"a {type(module).__name__} cannot be saved: it is code, and a program file holds "
            "none; build it again in the app that loads the program"
        )
    inside = {n: getattr(module, n) for n in CHILDREN if n in vars(module)}
    if isinstance(module, Panel):
        inside = {str(place): judge for place, judge in enumerate(module.judges)}
    children = {name: _structure(child) for name, child in inside.items()}
    described: dict[str, Any] = {
        "class": type(module).__name__,
        "settings": dict(module.settings.values),
        "children": children,
    }
    if isinstance(module, SignatureJudge):
        described["signature"] = _signature(module.signature)
        described["adapter"] = _adapter(module.adapter)
    return described


def _adapter(adapter: Any) -> str | None:
    if adapter is None:
        return None
    name = type(adapter).__name__
    if ADAPTERS.get(name) is not type(adapter):
        raise ProgramError(f"an adapter of class {name} cannot be saved; use {', '.join(ADAPTERS)}")
    return name


def _signature(signature: type[dspy.Signature]) -> dict[str, Any]:
    fields = [
        {
            "name": name,
            "part": "input" if name in signature.input_fields else "output",
            "type": _type_name(name, saved_type(field)),
            "desc": description(field),
        }
        for name, field in signature.fields.items()
    ]
    return {
        "name": signature.__name__,
        "instructions": signature.instructions,
        "fields": fields,
    }


def _type_name(field: str, annotation: Any) -> Any:
    if isinstance(annotation, Mapping):
        return annotation
    if get_origin(annotation) is Literal:
        return {"literal": list(get_args(annotation))}
    found = next((name for name, known in TYPES.items() if known == annotation), None)
    if found is None:
        raise ProgramError(
            f"field {field!r} has type {annotation!r}, which cannot be saved; "
            f"use {', '.join(TYPES)} or Literal"
        )
    return found


def _type(name: Any) -> Any:
    if isinstance(name, Mapping):
        return loaded_type(name) if "decision" in name else Literal[tuple(name["literal"])]
    if name not in TYPES:
        raise ProgramError(f"unknown field type {name!r}")
    return TYPES[name]


def _build(structure: Mapping[str, Any], known: Mapping[str, type]) -> Any:
    name = structure["class"]
    if name not in known:
        raise ProgramError(
            f"class {name!r} is not one that may be loaded; known are {', '.join(known)}. "
            "For a class of your own pass load(path, classes=[...])"
        )
    children = {key: _build(child, known) for key, child in structure["children"].items()}
    if known[name] is Panel:
        return Panel(list(children.values()), **structure["settings"])
    if "signature" not in structure:
        (inner,) = children.values()
        return known[name](inner, **structure["settings"])
    adapter = structure.get("adapter")
    judge = known[name](
        _build_signature(structure["signature"]),
        adapter=ADAPTERS[adapter]() if adapter else None,
        **structure["settings"],
    )
    for key, child in children.items():
        setattr(judge, key, child)
    return judge


def _build_signature(described: Mapping[str, Any]) -> type[dspy.Signature]:
    makers = {"input": dspy.InputField, "output": dspy.OutputField}
    fields = {
        f["name"]: (
            _type(f["type"]),
            makers[f["part"]](**({"desc": f["desc"]} if f["desc"] else {})),
        )
        for f in described["fields"]
    }
    return dspy.make_signature(fields, described["instructions"] or " ", described["name"])


def _unbound(parameter: Any) -> Any:
    """A parameter without its LM, whose engine may be one that cannot be saved."""
    bare = copy.copy(parameter)
    if isinstance(bare, dspy.Predict):
        bare.lm = None
    return bare


def _without_lm(state: Any) -> Any:
    """State without any bound LM: its settings may hold headers, addresses and keys."""
    if isinstance(state, Mapping):
        return {k: None if k == "lm" else _without_lm(v) for k, v in state.items()}
    return [_without_lm(item) for item in state] if isinstance(state, list) else state
