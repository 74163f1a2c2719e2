"""Runs any DSPy optimizer so that nothing it swallows is lost."""

import copy
import inspect
import io
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from typing import Any

import dspy
from dspy.teleprompt.teleprompt import Teleprompter

from ..errors import CompileError, InputError, ModelError
from .counting import SpentError
from .judge_metric import JudgeMetric
from .judge_program import JudgeProgram, Watch
from .tried import Tried

METRICS = ("metric", "metric_fn")
"""Where DSPy's optimizers keep their metric."""


class GuardedMetric:
    """A metric whose first error is kept: DSPy would count it as a score of 0.

    Args:
        metric: With DSPy's five arguments, or fewer.
    """

    def __init__(self, metric: Callable[..., Any]):
        self.metric = metric
        self.calls = 0
        self.error: Exception | None = None
        self.tried = Tried()
        self._most = _positional(metric)

    def __call__(
        self,
        gold: Any,
        pred: Any,
        trace: Any = None,
        pred_name: str | None = None,
        pred_trace: Any = None,
    ) -> Any:
        """What the metric says; nothing is asked of it once it has raised."""
        if self.error is not None:
            raise self.error
        if pred is None:  # SIMBA asks what a question that failed is worth
            return 0.0
        self.calls += 1
        try:
            value = self.metric(*(gold, pred, trace, pred_name, pred_trace)[: self._most])
        except Exception as error:
            self.error = error
            raise
        self.tried.note(gold, pred, value)
        return value

    def __deepcopy__(self, memo: Any) -> "GuardedMetric":
        return self


def made(optimizer: Any, metric: GuardedMetric, options: Mapping[str, Any]) -> Teleprompter:
    """The optimizer with our metric, from a class, a function or an instance.

    Raises:
        InputError: It is neither.
    """
    if isinstance(optimizer, Teleprompter):
        return _with_metric(optimizer, metric)
    if not callable(optimizer):
        raise InputError(
            f"optimizer is {type(optimizer).__name__}; expected a DSPy optimizer, its class, or a "
            "function that takes a metric and gives one"
        )
    parameters = inspect.signature(optimizer).parameters
    kinds = {parameter.kind for parameter in parameters.values()}
    takes = "metric" in parameters or inspect.Parameter.VAR_KEYWORD in kinds
    named = {"metric": metric} if takes else {}
    function = not takes and not inspect.isclass(optimizer)
    with quiet():
        built = optimizer(*([metric] if function and parameters else ()), **named, **options)
    if not isinstance(built, Teleprompter):
        raise InputError(f"{optimizer!r} gave {type(built).__name__}; expected a DSPy optimizer")
    return built


def own_metric(optimizer: Any) -> Any:
    """The metric that an optimizer was built with, if it is an instance and has one."""
    if not isinstance(optimizer, Teleprompter):
        return None
    return next((getattr(optimizer, n) for n in METRICS if getattr(optimizer, n, None)), None)


def run(
    optimizer: Teleprompter, program: JudgeProgram, metric: GuardedMetric,
    arguments: Mapping[str, Any],
) -> JudgeProgram:  # fmt: skip
    """What the optimizer made of the program.

    Args:
        optimizer: Any.
        program: Copied, never changed.
        metric: The one the optimizer calls.
        arguments: For its ``compile``; those it does not take are left out.

    When the calls are spent before it has come to its end, that is the best prompt it had tried
    on at least half of the validation questions.

    Raises:
        SpentError: The calls are spent, and there are no validation questions.
        CompileError: The metric raised, or the optimizer failed or returned nothing.
        ModelError: The model failed on most questions.
        dspy.LMError: Authentication or configuration is wrong.
    """
    name = type(optimizer).__name__
    accepted = inspect.signature(optimizer.compile).parameters
    given = {n: v for n, v in arguments.items() if n in accepted and v is not None}
    failure: Exception | None = None
    found: Any = None
    with quiet(), dspy.context(max_errors=10**9):
        try:
            found = optimizer.compile(program.deepcopy(), **given)
        except SpentError:
            if "valset" not in arguments:
                raise
            found = program.prompted(metric.tried.best(arguments["valset"]))
        except Exception as error:
            failure = error
    _raise_swallowed(name, metric, program.watch)
    if failure is not None:
        raise CompileError(f"{name} failed: {in_a_line(failure)}") from failure
    if not isinstance(found, JudgeProgram):
        raise CompileError(f"{name} returned {type(found).__name__}; expected the program")
    return found


def _raise_swallowed(name: str, metric: GuardedMetric, watch: Watch) -> None:
    if watch.fatal is not None:
        raise watch.fatal
    if metric.error is not None:
        raise CompileError(
            f"the metric raised {in_a_line(metric.error)}; {name} would have taken that for a "
            "score of 0, so compiling was stopped"
        ) from metric.error
    if watch.lost * 2 > watch.asked:
        raise ModelError(
            f"the model failed on {watch.lost} of {watch.asked} questions, so {name} had nothing "
            f"to learn from; the last error: {watch.last}"
        ) from watch.last


def in_a_line(error: BaseException) -> str:
    """Class and message of an error, cut to one short line."""
    said = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def _with_metric(optimizer: Teleprompter, metric: GuardedMetric) -> Teleprompter:
    """A copy of the optimizer that calls the guarded metric."""
    single = copy.copy(optimizer)
    for name in METRICS:
        if hasattr(single, name):
            setattr(single, name, metric)
    return single


def _positional(metric: Callable[..., Any]) -> int:
    """How many of the five arguments a metric takes."""
    if isinstance(metric, JudgeMetric):
        return 5
    try:
        parameters = inspect.signature(metric).parameters.values()
    except (TypeError, ValueError):
        return 3
    if any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return 5
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return min(5, sum(p.kind in kinds for p in parameters))


@contextmanager
def quiet() -> Iterator[None]:
    """DSPy's optimizers print and log every step; not into another program's output."""
    logger = logging.getLogger("dspy")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            yield
    finally:
        logger.setLevel(before)
