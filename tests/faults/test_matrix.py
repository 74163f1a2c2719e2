"""Every fault, by every engine, sync and async, under both policies, met once and always.

DSPy's own client, which is neither ours nor LiteLLM, is asked asynchronously only. One judge and
sorter; the others meet every fault in ``test_sorters``.
"""

import pytest

import dspy_rerank as dr
from dspy_rerank.errors import ModelError
from dspy_rerank.testing.faults import CATALOGUE
from tests.faults import effects
from tests.faults.effects import effect
from tests.faults.harness import AMPLE, ENGINES, MODES, STALLED, best_first, ranked, serving

DOCUMENTS = ("text 0", "text 1", "text 2")
POLICIES = ("original", "raise")
EVERY = [
    pytest.param(fault, engine, mode, on_error, id=f"{fault}-{engine}-{mode}-{on_error}")
    for fault in CATALOGUE for engine in ENGINES for mode in MODES for on_error in POLICIES
    if engine != "native" or mode == "async"
]  # fmt: skip


def judged(server, lm, outcome, mode, on_error):
    deadline = STALLED if outcome == effects.STALLED else AMPLE
    sorter = dr.ScoreSort(
        dr.PointwiseJudge(), concurrency=1, error_retries=1, on_error=on_error, deadline=deadline
    )
    return ranked(sorter, lm, mode, DOCUMENTS)


@pytest.mark.parametrize(("fault", "engine", "mode", "on_error"), EVERY)
def test_a_fault_that_passes(fault, engine, mode, on_error):
    outcome = effect(fault, engine)
    with serving(engine, faults=[CATALOGUE[fault]]) as (server, lm):
        if outcome == effects.FATAL:
            with pytest.raises(effects.FATAL_TYPES):
                judged(server, lm, outcome, mode, on_error)
            return
        if outcome == effects.LASTING and on_error == "raise":
            with pytest.raises(ModelError):
                judged(server, lm, outcome, mode, on_error)
            return
        ranking = judged(server, lm, outcome, mode, on_error)
        assert sorted(ranking.indices) == [0, 1, 2]
        usage = ranking.usage
        if outcome in (effects.LASTING, effects.STALLED):
            assert (ranking.indices, ranking.degraded, len(ranking.reasons)) == ([0, 1, 2], True, 1)
            return
        assert ranking.indices == best_first(DOCUMENTS)
        assert (ranking.degraded, ranking.reasons, ranking.unknowns) == (False, (), 0)
        assert usage.failed_calls == (outcome in (effects.RETRIED, effects.REFUSED))
        assert usage.calls == 3 + (outcome == effects.UNREAD)
        assert server.requests == usage.calls + usage.failed_calls


@pytest.mark.parametrize(("fault", "engine", "mode", "on_error"), EVERY)
def test_a_fault_that_lasts(fault, engine, mode, on_error):
    outcome = effect(fault, engine)
    with serving(engine, faults=CATALOGUE[fault]) as (server, lm):
        if outcome == effects.FATAL:
            with pytest.raises(effects.FATAL_TYPES):
                judged(server, lm, outcome, mode, on_error)
            return
        fails = outcome in (effects.RETRIED, effects.LASTING, effects.REFUSED)
        if fails and on_error == "raise":
            with pytest.raises(ModelError) as caught:
                judged(server, lm, outcome, mode, on_error)
            assert caught.value.__cause__ is not None
            return
        ranking = judged(server, lm, outcome, mode, on_error)
        usage = ranking.usage
        if outcome == effects.HARMLESS:
            assert ranking.indices == best_first(DOCUMENTS)
            assert (ranking.degraded, ranking.unknowns, usage.failed_calls) == (False, 0, 0)
            assert server.requests == usage.calls == 3
            return
        assert ranking.indices == [0, 1, 2]
        assert all(item.score is None or outcome == effects.UNREAD for item in ranking)
        if outcome == effects.UNREAD:
            assert (ranking.degraded, ranking.unknowns, usage.failed_calls) == (False, 3, 0)
            assert server.requests == usage.calls == 6
            assert all(judgment.reason for judgment in ranking.judgments)
        elif outcome == effects.STALLED:
            assert (ranking.degraded, ranking.unknowns, usage.calls) == (True, 3, 0)
            assert ranking.reasons == (f"deadline={STALLED}s was reached",)
            assert server.requests <= 1  # on a busy machine the deadline may come before it left
        else:
            assert ranking.degraded
            assert ranking.usage.failed_calls >= 1
            assert any(word in ranking.reasons[0] for word in ("LM", "ContextWindow"))
