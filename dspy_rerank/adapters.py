"""The compact adapter: one short answer a call, without scaffolding.

Measured on a pair with empty passages: 34 prompt tokens and 1 answer token, against 226 and 12
with DSPy's ChatAdapter.
"""

import copy
from functools import partial
from typing import Any, Literal, get_args, get_origin

import dspy
from dspy.utils.exceptions import AdapterParseError

from .reading.unwrap import unwrap

_acall: Any = getattr(dspy.Adapter.acall, "__wrapped__", dspy.Adapter.acall)
"""DSPy's call without planning: on LiteLLM that is four look-ups in a thread, before each call."""


class CompactAdapter(dspy.ChatAdapter):
    """Formats instructions, demos and inputs plainly; reads one answer out of any wrapping.

    Only DSPy's text hooks are overridden. Two calls for the same query share their prompt up to
    the passages, byte for byte, so that provider prompt caches and llama.cpp prefix reuse work.

    Args:
        cue: End the prompt with the answer field's description as a heading, for models that
            continue text rather than chat.
    """

    def __init__(self, *, cue: bool = False, **options: Any):
        super().__init__(use_json_adapter_fallback=False, **options)
        self.cue = cue

    async def acall(
        self,
        lm: dspy.BaseLM,
        lm_kwargs: dict[str, Any],
        signature: type[dspy.Signature],
        demos: list[dict[str, Any]],
        inputs: dict[str, Any],
    ) -> list[dict[str, Any]]:
        """DSPy's call, which looks up what the model can do only where a field asks for that."""
        return await _acall(self, lm, lm_kwargs, signature, demos, inputs)

    def format(
        self, signature: type[dspy.Signature], demos: list[dict[str, Any]], inputs: dict[str, Any]
    ) -> Any:
        """DSPy's messages, less a system message that says nothing."""
        prompt = super().format(signature, demos, inputs)
        return [message for message in prompt if message["content"]]

    def format_system_message(self, signature: type[dspy.Signature]) -> str:
        """Instructions, and for a closed choice the words that are allowed."""
        lines = [signature.instructions.strip(), *_closed_choice(signature), *_fields(signature)]
        return "\n".join(line for line in lines if line)

    def format_user_message_content(
        self,
        signature: type[dspy.Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """The inputs in the signature's order, one heading each."""
        given = [name for name in signature.input_fields if inputs.get(name) is not None]
        lines = [block(name, inputs[name]) for name in given]
        cue = [f"{answer_description(signature)}:"] if self.cue else []
        return "\n".join(line for line in [prefix, *lines, suffix, *cue] if line)

    def format_assistant_message_content(
        self,
        signature: type[dspy.Signature],
        outputs: dict[str, Any],
        missing_field_message: str | None = None,
    ) -> str:
        """The bare answer; with a reasoning field, the reasoning and then a headed answer."""
        names = list(signature.output_fields)
        values = {name: outputs.get(name, missing_field_message) for name in names}
        if len(names) == 1:
            return str(values[names[0]])
        return "\n".join(f"{heading(name)}: {values[name]}" for name in names)

    def parse(self, signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        """The answer field's text; other output fields get what stands before it."""
        *others, answer = signature.output_fields
        found = unwrap(completion, answer)
        if found is None or not found.strip():
            raise AdapterParseError(
                adapter_name=type(self).__name__,
                signature=signature,  # pyright: ignore[reportArgumentType]
                lm_response=completion,
            )
        before = completion.rpartition(f"{heading(answer)}:")[0].strip() if others else ""
        reasoning = before.removeprefix(f"{heading(others[0])}:").strip() if others else ""
        return {**dict.fromkeys(others, reasoning), answer: found.strip()}


def heading(name: str) -> str:
    """A field's name as a heading: ``sub_topic`` becomes ``Sub topic``."""
    return name.replace("_", " ").capitalize()


def block(name: str, value: Any) -> str:
    """One input under its heading; labelled passages bring headings of their own."""
    if isinstance(value, list | tuple):
        return "\n".join(map(str, value))
    text = str(value)
    if name in ("passages", "documents", "candidates") and text.startswith("Passage ["):
        return text
    return f"{heading(name)}: {text}"


def answer_description(signature: type[dspy.Signature]) -> str:
    """The description of the answer field, or its name where it has none."""
    name, field = list(signature.output_fields.items())[-1]
    described = description(field)
    return heading(name) if described.startswith("${") or not described else described


def description(field: Any) -> str:
    """What a signature's field says about itself; empty when nothing."""
    extra = field.json_schema_extra
    return str(extra.get("desc") or "") if isinstance(extra, dict) else ""


def _closed_choice(signature: type[dspy.Signature]) -> list[str]:
    field = list(signature.output_fields.values())[-1]
    if get_origin(field.annotation) is not Literal:
        return []
    return [f"Answer with exactly one of: {', '.join(map(str, get_args(field.annotation)))}."]


def _fields(signature: type[dspy.Signature]) -> list[str]:
    """How to lay out the answer when more than the answer is asked for."""
    names = list(signature.output_fields)
    if len(names) == 1:
        return []
    wanted = " then ".join(f"`{heading(name)}: ...`" for name in names)
    return [f"Write {wanted}, each on its own line."]


COMPACT = CompactAdapter()
CONTINUING = CompactAdapter(cue=True)


NESTED = 1000
"""Opening brackets above which an answer is not read as JSON: DSPy's repair of 20,000 takes
seconds, on the loop that serves all other questions."""


def without_fallback(adapter: dspy.Adapter) -> dspy.Adapter:
    """The same adapter, but never asking the model a second time behind our back.

    One for JSON leaves answers alone that nest without an end.
    """
    nests = isinstance(adapter, dspy.JSONAdapter)
    if not nests and not getattr(adapter, "use_json_adapter_fallback", False):
        return adapter
    single: Any = copy.copy(adapter)
    single.use_json_adapter_fallback = False
    if nests:
        single.parse = partial(_parse_flat, adapter)
    return single


def _parse_flat(adapter: dspy.Adapter, signature: Any, completion: str) -> dict[str, Any]:
    if sum(map(completion.count, "{[(")) > NESTED:
        name = type(adapter).__name__
        raise AdapterParseError(adapter_name=name, signature=signature, lm_response=completion)
    return adapter.parse(signature, completion)
