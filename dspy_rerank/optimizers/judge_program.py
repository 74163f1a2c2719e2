"""One question of a judge as a DSPy program, which is what optimizers are given to improve."""

import copy
import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import dspy
from dspy.utils.exceptions import AdapterParseError

from .. import calls
from ..adapters import COMPACT, without_fallback
from ..judges.base import SignatureJudge
from ..judges.fitting import another
from ..judges.rewording import instructed
from .reuse import Reuse

TRIES = 3
"""A call that fails for a passing reason is made so often before the question counts as lost."""


@dataclass(frozen=True)
class Prompt:
    """What an optimizer changes.

    Attributes:
        instructions: The wording.
        demos: The demonstrations.
    """

    instructions: str
    demos: tuple[Mapping[str, Any], ...]

    @property
    def key(self) -> str:
        """The same for equal prompts."""
        return json.dumps([self.instructions, self.demos], sort_keys=True, default=str)


def prompt_of(prediction: Any) -> Prompt | None:
    """The prompt that an answer of a :class:`JudgeProgram` came from."""
    return getattr(prediction, "_prompt", None)


class Watch:
    """Counts the questions of all copies of a program and keeps what stopped it.

    Attributes:
        asked: Questions answered by the model, or lost.
        known: Questions whose answer was known.
        lost: Questions that the model failed to answer, however often it was asked.
        fatal: An error that no other question will escape, such as a wrong key.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.known = 0
        self.lost = 0
        self.fatal: BaseException | None = None
        self.last: BaseException | None = None
        self._lock = threading.Lock()

    @property
    def questions(self) -> int:
        """All of them, with those whose answer was known."""
        return self.asked + self.known

    def answered(self) -> None:
        """Count an answer."""
        with self._lock:
            self.asked += 1

    def reused(self) -> None:
        """Count a question whose answer was known."""
        with self._lock:
            self.known += 1

    def failed(self, error: BaseException, *, lost: bool) -> None:
        """Count a call that failed."""
        with self._lock:
            self.last = error
            self.asked += lost
            self.lost += lost
            if calls.failure(error) == "fatal":
                self.fatal = error

    def __deepcopy__(self, memo: Any) -> "Watch":
        return self


class JudgeProgram(dspy.Module):
    """Answers one question with the judge's prompt, adapter and settings.

    Args:
        judge: Its predictor is copied; a judge itself is never handed to an optimizer.
        watch: Counts the calls of this program and all its copies.
        reuse: Answers that programs of this judge have had; ``None`` begins anew.
    """

    def __init__(self, judge: SignatureJudge, watch: Watch, reuse: Reuse | None = None):
        super().__init__()
        self.predict = copy.deepcopy(judge.predict)
        self.adapter = lenient(judge.adapter or COMPACT)
        names = ("temperature", "max_tokens")
        self.options = {n: judge.settings[n] for n in names if judge.settings[n] is not None}
        self.watch = watch
        self.reuse = Reuse() if reuse is None else reuse

    def deepcopy(self) -> "JudgeProgram":
        """A copy with a signature of its own: InferRules writes into the class it finds."""
        made = super().deepcopy()
        signature: Any = made.predict.signature
        made.predict.signature = instructed(signature, signature.instructions)
        return made

    @property
    def instructions(self) -> str:
        """The present wording."""
        signature: Any = self.predict.signature
        return signature.instructions

    def prompted(self, prompt: "Prompt | None") -> "JudgeProgram":
        """A copy with another prompt, if one is given."""
        made = self.deepcopy()
        if prompt is not None:
            signature: Any = made.predict.signature
            made.predict.signature = instructed(signature, prompt.instructions)
            made.predict.demos = [dict(demo) for demo in prompt.demos]
        return made

    def forward(self, **inputs: Any) -> dspy.Prediction:
        """Answer one question; an answer in the wrong form comes back as it is."""
        for left in reversed(range(TRIES)):
            if self.watch.fatal is not None:
                raise self.watch.fatal
            try:
                return self._answer(inputs)
            except dspy.LMError as error:
                lost = not left or calls.failure(error) != "transient"
                self.watch.failed(error, lost=lost)
                if lost:
                    raise
        raise AssertionError("the last try returns or raises")

    def _answer(self, inputs: Mapping[str, Any]) -> dspy.Prediction:
        lm = calls.current_lm(self.predict)
        if another(lm):
            prediction = self._sent(inputs, {})
        elif self.options.get("temperature") == 0:
            prediction = self._known_or_sent(lm, inputs)
        else:
            prediction = self._sent(inputs, self.options)
        prediction._prompt = Prompt(self.instructions, tuple(map(dict, self.predict.demos)))
        return prediction

    def _known_or_sent(self, lm: Any, inputs: Mapping[str, Any]) -> dspy.Prediction:
        """An answer that the model has given to this prompt goes into the trace like a new one."""
        signature: Any = self.predict.signature
        sent = self.adapter.format(signature, self.predict.demos, dict(inputs))
        prompt = json.dumps(sent, sort_keys=True, default=str)
        prediction, known = self.reuse(lm, prompt, lambda: self._sent(inputs, self.options))
        if known:
            self.watch.reused()
            trace, most = dspy.settings.trace, dspy.settings.max_trace_size
            if trace is not None and len(trace) < most:
                trace.append((self.predict, dict(inputs), prediction))
        return prediction

    def _sent(self, inputs: Mapping[str, Any], config: Mapping[str, Any]) -> dspy.Prediction:
        """A new answer, under the judge's settings unless an optimizer samples with its own."""
        with dspy.context(adapter=self.adapter, send_stream=None):
            prediction = self.predict(**inputs, config=dict(config))
        self.watch.answered()
        return prediction


def lenient(adapter: dspy.Adapter) -> dspy.Adapter:
    """The adapter, but an answer that it cannot read comes back as the whole completion.

    So the metric sees it and says what is wrong with it; an exception would only be counted.
    """
    single: Any = copy.copy(without_fallback(adapter))
    strict = single.parse

    def parse(signature: type[dspy.Signature], completion: str) -> dict[str, Any]:
        try:
            return strict(signature, completion)
        except AdapterParseError:
            *others, answer = signature.output_fields
            return {**dict.fromkeys(others, ""), answer: completion}

    single.parse = parse
    return single
