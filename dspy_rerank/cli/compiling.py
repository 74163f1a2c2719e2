"""``dspy-rerank compile``: turn labels into a better reranker, and prove it."""

import argparse
import warnings
from typing import Any

import dspy

from ..binding import named_in
from ..datasets import Dataset
from ..datasets.checks import ERRORS, check
from ..errors import InputError
from ..program import save
from ..shown import count, dollars
from ..sorters import Reranker
from ._common import add_data, add_json, add_model, read_data, writable
from ._compile_options import add_proof, add_search, options_of
from ._problems import measured_part, warned
from ._progress import progress
from ._rerankers import add_reranker, reranker_and_model
from ._show import complain, emit, say, show_evaluation, unlogged

FRACTIONS = (0.35, 0.3, 0.35)


def add_to(commands: Any) -> None:
    """Register the command."""
    command = commands.add_parser("compile", help="compile a reranker from labelled queries")
    add_data(command)
    command.add_argument(
        "--out", default="reranker.json", metavar="FILE", help="where to save it (reranker.json)"
    )
    add_reranker(command, "start from a saved program (default: built in)")
    command.add_argument(
        "--recipe", metavar="TOML", help="how to compile, such as optimizers/gepa.toml"
    )
    command.add_argument(
        "--report", metavar="FOLDER", help="write report.html and report.json there"
    )
    command.add_argument("--metric", default="nDCG@10")
    command.add_argument(
        "--unchecked", action="store_true", help="go on although the labels have errors"
    )
    add_proof(command)
    add_search(command)
    add_model(command)
    command.add_argument(
        "--reflection-lm", metavar="NAME",
        help="model that writes instructions for the recipe (default: the same)",
    )  # fmt: skip
    add_json(command)
    command.set_defaults(command=run)


def run(arguments: argparse.Namespace) -> int:
    """Compile, save, and measure on queries that the search never saw."""
    from ..optimizers import read_recipe, write_report

    target = writable(arguments.out)
    recipe = read_recipe(arguments.recipe) if arguments.recipe else None
    options = options_of(arguments)
    data = read_data(arguments)
    problems = checked(data, refuse=not arguments.unchecked)
    data = measured_part(data, ("train", "validation", arguments.test_split))
    train, validation, test = parts(data, arguments.seed, arguments.test_split)
    if not arguments.json:
        say(f"{len(train)} training, {len(validation)} validation and {len(test)} test queries")
    student, lm = reranker_and_model(arguments)
    name = arguments.lm or student.card.get("lm")
    student.set_lm(None)  # it is asked with that model all the same
    proven = compiled_and_proved(
        student, train, validation, test, lm, options, recipe=recipe, metric=arguments.metric,
        seeds=arguments.seeds, plain=arguments.plain, quiet=arguments.json,
    )  # fmt: skip
    save(named_in(proven.program, lm, name), target)
    page = None
    if arguments.report:
        page = write_report(
            arguments.report, student, proven.program, proven.found, test, runs=proven.runs,
            plain=proven.plain, lm=lm,
        )  # fmt: skip
    if arguments.json:
        emit(result(proven, target, problems, page))
    else:
        show(proven)
        say(f"saved {target}" + ("" if page is None else f"; report in {page}"))
    return 0


def result(proven: Any, target: Any, problems: list[str], page: Any) -> dict[str, Any]:
    """All that ``--json`` prints; seeds and plain DSPy where they were asked for."""
    from ..optimizers.proof import plain_values
    from ..optimizers.spread import spread

    told: dict[str, Any] = {
        "program": str(target), "card": proven.program.card, "test": proven.found.to_dict(),
        "problems": problems, "report": None if page is None else str(page),
    }  # fmt: skip
    if len(proven.runs) > 1:
        told["seeds"] = spread(proven.runs, proven.found)
    if proven.plain is not None:
        told["plain"] = plain_values(proven.plain, proven.found)
    return told


def show(proven: Any) -> None:
    """What was chosen, how good it is, and beside what."""
    show_card(proven.program)
    if len(proven.runs) > 1:
        say(f"all {len(proven.runs)} seeds took {sum(run.calls for run in proven.runs)} LM calls")
    if proven.plain is not None:
        say(f"plain DSPy took {proven.plain.calls} LM calls, for the comparison")
    show_evaluation(proven.found)
    say(verdict(proven))


def parts(data: Dataset, seed: int, test: str = "test") -> tuple[Dataset, Dataset, Dataset]:
    """Train, validation and test queries: the data set's own splits, or a seeded deal."""
    if test in ("train", "validation"):
        raise InputError(f"--test-split {test}: compiling learns from it; expected another")
    if test != "test" or {"train", "validation", "test"} <= set(data.splits):
        return data.part("train"), data.part("validation"), data.part(test)
    if len(data) < 6:
        raise InputError(
            f"{data.name} has {count(len(data), 'query')}; expected at least 6 to train, validate "
            "and test"
        )
    learned, validation, held_out = data.split(*FRACTIONS, seed=seed)
    return learned, validation, held_out


def compiled_and_proved(
    student: Reranker, train: Any, validation: Any, test: Any, lm: Any, options: dict[str, Any],
    *, recipe: Any = None, metric: str = "nDCG@10", seeds: int = 1, plain: bool = False,
    quiet: bool = False,
) -> Any:  # fmt: skip
    """:func:`~dspy_rerank.optimizers.compile_and_prove`, with progress bars."""
    from ..optimizers import compile_and_prove
    from ..optimizers.counting import counting

    with warnings.catch_warnings(), unlogged(), progress(quiet) as bars, dspy.context(lm=lm):
        warnings.filterwarnings("ignore", ".* was compiled on ", UserWarning)  # said below
        live = Live(bars)
        with counting(tell=live.called):
            proven = compile_and_prove(
                student, trainset=train, valset=validation, testset=test, recipe=recipe, lm=lm,
                metric=metric, seeds=seeds, plain=plain, progress=live.tried,
                measured=live.measured, **options,
            )  # fmt: skip
    for row in proven.found.rows:
        if row.seen.queries:
            complain(row.seen.words(row.name, len(test)))
    return proven


class Live:
    """What compiling has found and spent so far, after every call to a model.

    Args:
        show: As :func:`~dspy_rerank.cli._progress.progress` gives it.
    """

    def __init__(self, show: Any):
        self.show = show
        self._state: Any = None
        self._spent = ["0 new calls"]
        self._proving = False

    def tried(self, state: Any) -> None:
        """A setting of a search, or a judge that is weighed, is done."""
        self._state = state
        self._tell()

    def called(self, counter: Any) -> None:
        """A call has come to its end; those under way may yet be a cache's."""
        paid = counter.usage.cost
        self._spent = [count(counter.usage.paid_calls + counter.failed, "new call")]
        self._spent += [f"${dollars(paid)}"] if paid else []
        self._tell()

    def measured(self, what: str, done: int, total: int) -> None:
        """A test query is ranked; compiling is over."""
        self._proving = True
        self.show(what, done, total)

    def _tell(self) -> None:
        if self._proving:
            return
        state, best = self._state, list[str]()
        if state is not None and state.best == state.best:
            best = [f"best {state.best:.4f}"]
        done, trials = (0, None) if state is None else (state.done, state.trials)
        self.show("compiling", done, trials, f" ({', '.join(best + self._spent)})")


def checked(data: Dataset, *, refuse: bool) -> list[str]:
    """What is wrong with the labels, said before anything is spent on them.

    Raises:
        InputError: There are errors, as opposed to warnings.
    """
    problems = check(data)
    errors = [problem for problem in problems if problem.kind in ERRORS]
    if errors and refuse:
        more = f", and {len(errors) - 1} more such" if len(errors) > 1 else ""
        raise InputError(f"{data.name}: {errors[0]}{more}; mend the labels, or pass --unchecked")
    return warned(problems)


def show_card(compiled: Reranker) -> None:
    """What was chosen and what it cost."""
    card = compiled.card
    chosen, spent, val = card["chosen"], card["spent"], card["validation"]
    if "judge" in card:
        gain = card["judge"]["validation"]
        say(
            f"{card['judge']['optimizer']}: {gain['uncompiled']:.4f} to {gain['compiled']:.4f} on "
            f"{gain['questions']} single questions, {card['judge']['spent']['calls']} new calls"
        )
    say(f"chosen: {chosen_words(chosen)}")
    if chosen.get("why"):
        say(f"because {chosen['why']}")
    checked = card.get("cross_validation")
    if checked:
        mean, lo, hi = checked["gain_over_uncompiled"]
        say(
            f"cross-validated gain over uncompiled: {mean:+.4f} [{lo:+.4f}, {hi:+.4f}] on "
            f"{count(checked['queries'], 'query')}, each left out of the choice"
        )
    incoming = f"incoming {val['incoming']:.4f}, " if "incoming" in val else ""
    say(
        f"validation ({count(val['queries'], 'query')}): {incoming}"
        f"uncompiled {val['uncompiled']:.4f}, compiled {val['compiled']:.4f}"
    )
    say(
        f"compiling took {spent['calls']} new calls ({spent['cached_calls']} more were in DSPy's "
        f"cache) for {spent['questions']} questions, {spent['prompt_tokens']} prompt tokens, "
        f"{money_words(spent)}, {spent['seconds']:.0f} s"
    )


def money_words(spent: dict[str, Any]) -> str:
    """US dollars, or why nobody knows."""
    why = f" ({spent['cost_reason']})" if spent["cost_reason"] else ""
    return f"cost unknown{why}" if spent["cost"] is None else f"${dollars(spent['cost'])}"


def chosen_words(chosen: dict[str, Any]) -> str:
    """What of the program was changed."""
    if "weights" in chosen:
        judges = [f"{each['weight']:g} x {each['judge']}" for each in chosen["weights"]]
        return f"{', '.join(judges)}; prior weight {chosen['prior']:g}"
    if "variant" in chosen:
        return f"{chosen['variant']}; prior weight {chosen['prior']:g}"
    kept = "the compiled prompt" if chosen["kept"] else "the prompt as it was"
    return f"{kept}, {chosen['demos']} demonstrations"


def verdict(proven: Any) -> str:
    """What the test queries say, in words."""
    from ..optimizers.spread import spread, spread_words
    from ..optimizers.verdicts import unsure, verdicts

    found = proven.found
    seeds = spread_words(spread(proven.runs, found)) if len(proven.runs) > 1 else []
    said = [*verdicts(found, proven.plain), *seeds, *unsure(proven.program.card)]
    head = f"compiled, on {count(found.queries, 'query')} that the search never saw:"
    return "\n".join([head, *(f"- {sentence}" for sentence in said)])
