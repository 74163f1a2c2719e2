"""How sure judges are: adapters by tokenizers by what the provider gave."""

import itertools
import json
import math
import re

import dspy
import pytest
from dspy import lm15

import dspy_rerank as dr
from dspy_rerank import capability
from dspy_rerank.errors import InputError
from dspy_rerank.testing import AsyncScriptedEngine, ScriptedEngine, scripted_lm

ADAPTERS = {"compact": lambda: None, "chat": dspy.ChatAdapter, "json": dspy.JSONAdapter}
WRAPPINGS = {
    "compact": lambda field, raw: raw,
    "chat": lambda field, raw: f"[[ ## {field} ## ]]\n{raw}\n\n[[ ## completed ## ]]",
    "json": lambda field, raw: json.dumps({field: raw}),
}
WORDS = r"\w+|\s+|[^\w\s]"
TOKENIZERS = {
    "words": WORDS,
    "spaces before words": r" ?\w+|\s+|[^\w\s]",
    "quotes glued to words": r"[\s\"(\[]*\w+|\s+|[^\w\s]",
    "letter by letter": r".|\n",
}


class TokenEngine(ScriptedEngine):
    """Gives logprobs: certain of every token but the answer's, where ``masses`` are the odds."""

    def __init__(self, text, answer, masses, *, cut=WORDS, broken=lambda tokens: tokens):
        super().__init__(text)
        self.answer, self.masses, self.cut, self.broken = answer, masses, cut, broken

    def _logprobs(self, said):
        place = said.rindex(self.answer) if self.answer else -1
        tokens = []
        for match in re.finditer(self.cut, said):
            token, start = match.group(), match.start()
            glued = place - start if start <= place < match.end() else -1
            tokens.append(self._token(token, glued))
        return self.broken(tuple(tokens))

    def _token(self, token, glued):
        if glued < 0:
            top = (lm15.TopLogprob(token, -0.001), lm15.TopLogprob("other", -7.0))
            return lm15.TokenLogprob(token, -0.001, top=top)
        size = len(token) - glued
        size = None if size >= len(self.answer) else size
        top = {token[:glued] + name[:size]: math.log(mass) for name, mass in self.masses.items()}
        alternatives = tuple(lm15.TopLogprob(name, value) for name, value in top.items())
        return lm15.TokenLogprob(token, top[token], top=alternatives)


def token_lm(*arguments, **options):
    engine = TokenEngine(*arguments, **options)
    twin = AsyncScriptedEngine(engine)
    return dspy.LM("scripted/tokens", engine=engine, async_engine=twin, cache=False)


def ask(judge, lm, *passages):
    with dspy.context(lm=lm):
        return judge(query="q", passages=list(passages)).judgment


CASES = {
    "pointwise": (lambda **o: dr.PointwiseJudge(**o), "2", {"2": 0.6, "3": 0.3, "1": 0.1}, 0.6),
    "yes or no": (
        lambda **o: dr.PointwiseJudge("query, passage -> relevant: bool", **o),
        "yes", {"yes": 0.7, "no": 0.3}, 0.7,
    ),
    "pairwise": (
        lambda **o: dr.PairwiseJudge(swap=False, **o), "B", {"B": 0.8, "A": 0.2}, 0.8,
    ),
    "setwise": (lambda **o: dr.SetwiseJudge(**o), "C", {"C": 0.5, "A": 0.3, "B": 0.2}, 0.5),
    "listwise": (lambda **o: dr.ListwiseJudge(**o), "C", {"C": 0.5, "A": 0.3, "B": 0.2}, 0.5),
}  # fmt: skip
PASSAGES = {"pointwise": 1, "yes or no": 1, "pairwise": 2, "setwise": 3, "listwise": 3}


def case(kind, adapter, *, before="", **options):
    make, answer, masses, sure = CASES[kind]
    judge = make(adapter=ADAPTERS[adapter](), evidence="logprobs")
    text = before + WRAPPINGS[adapter](judge.roles.answer, answer)
    lm = token_lm(text, answer, masses, **options)
    return ask(judge, lm, *map(str, range(PASSAGES[kind]))), sure


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", CASES)
def test_the_answers_token_is_found_in_every_wrapping(kind, adapter, tokenizer):
    judgment, sure = case(kind, adapter, cut=TOKENIZERS[tokenizer])
    assert judgment.confidence == pytest.approx(sure, abs=2e-3), judgment
    assert (judgment.confidence_source, judgment.evidence) == ("logprob", "logprobs")


THINKING = "<think>Is A better, or B, or C? yes and no. 2 or 3?</think>\n"


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", CASES)
def test_thinking_before_the_answer_is_passed_over(kind, adapter):
    judgment, sure = case(kind, adapter, before=THINKING)
    assert judgment.confidence == pytest.approx(sure, abs=1e-6)


BROKEN = {
    "none": lambda tokens: None,
    "empty": lambda tokens: (),
    "no alternatives": lambda tokens: tuple(lm15.TokenLogprob(t.token, t.logprob) for t in tokens),
    "of another text": lambda tokens: (lm15.TokenLogprob("zzz", -0.5, top=tokens[0].top),),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("kind", CASES)
def test_without_usable_logprobs_there_is_no_confidence_and_a_reason(kind, adapter, broken):
    judgment, _ = case(kind, adapter, broken=BROKEN[broken])
    assert judgment.known
    assert judgment.confidence is None
    assert judgment.confidence_source == "none"
    assert "no confidence: " in judgment.reason


def test_labels_outside_of_few_alternatives_may_be_likely_and_then_nothing_is_claimed():
    odds = {"C": 0.4, "A": 0.2, "The": 0.1}
    judgment = ask(dr.ListwiseJudge(evidence="logprobs"), raw_lm("C", [("C", odds)]), *"wxyz")
    assert judgment.order == (2, 0, 1, 3)
    assert (judgment.confidence, judgment.confidence_source) == (None, "none")
    assert "may lie on labels outside" in judgment.reason


def test_labels_outside_of_the_alternatives_that_can_have_next_to_nothing_do_not_matter():
    odds = {"C": 0.9, "A": 0.08, "The": 0.01}
    judgment = ask(dr.SetwiseJudge(evidence="logprobs"), raw_lm("C", [("C", odds)]), *"wxyz")
    assert judgment.confidence == pytest.approx(0.9 / 0.98)


def test_alternatives_that_read_alike_are_summed():
    top = (("A", 0.5), ("A", 0.1), ("B", 0.4))
    entry = lm15.TokenLogprob(
        "A", math.log(0.5), top=tuple(lm15.TopLogprob(t, math.log(p)) for t, p in top)
    )

    class Engine(ScriptedEngine):
        def _logprobs(self, said):
            return (entry,)

    engine = Engine("A")
    lm = dspy.LM("s/m", engine=engine, async_engine=AsyncScriptedEngine(engine), cache=False)
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    assert ask(judge, lm, "x", "y").confidence == pytest.approx(0.6)


def test_n_is_a_label_and_no_beginning_of_none():
    letters = "ABCDEFGHIJKLMN"
    odds = {"N": 0.7, "A": 0.3}
    judgment = ask(dr.SetwiseJudge(evidence="logprobs"), raw_lm("N", [("N", odds)]), *letters)
    assert judgment.confidence == pytest.approx(0.7)


def test_a_window_of_more_than_26_tells_a_letter_from_two():
    shown = list(map(str, range(28)))
    one = ask(
        dr.ListwiseJudge(evidence="logprobs"), raw_lm("A", [("A", {"A": 0.9, "B": 0.1})]), *shown
    )
    assert (one.order[0], one.confidence) == (0, None)
    two = [("A", {"A": 0.9, "B": 0.1}), ("B", {"B": 0.8, "": 0.2})]
    judgment = ask(dr.ListwiseJudge(evidence="logprobs"), raw_lm("AB", two), *shown)
    assert judgment.order[:3] == (27, 0, 1)
    assert judgment.confidence == pytest.approx(0.72)


def test_the_expectation_is_taken_over_the_rubric():
    judgment, _ = case("pointwise", "chat")
    assert judgment.score == pytest.approx(0.6 * 2 + 0.3 * 3 + 0.1 * 1)


def test_a_bool_is_graded_by_the_probability_of_yes():
    make, *_ = CASES["yes or no"]
    judgment = ask(make(evidence="logprobs"), token_lm("no", "no", {"no": 0.9, "yes": 0.1}), "p")
    assert judgment.score == pytest.approx(0.1)
    assert judgment.confidence == pytest.approx(0.9)


def test_spellings_of_a_label_are_summed():
    masses = {"B": 0.4, " B": 0.2, "b": 0.1, "A": 0.2, "(A": 0.1}
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    assert ask(judge, token_lm("B", "B", masses), "x", "y").confidence == pytest.approx(0.7)


def test_a_tie_counts_half_for_both():
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    judgment = ask(judge, token_lm("A", "A", {"A": 0.5, "B": 0.1, "Tie": 0.4}), "x", "y")
    assert judgment.probabilities == pytest.approx((0.7, 0.3))


def test_a_tie_is_as_sure_as_its_own_token():
    judge = dr.PairwiseJudge(evidence="logprobs")
    judgment = ask(judge, token_lm("Tie", "Tie", {"A": 0.2, "Tie": 0.8}), "x", "y")
    assert judgment.tie
    assert judgment.confidence == pytest.approx(0.8)


def test_a_level_of_two_digits_is_followed_through_its_tokens():
    tokens = [("1", {"1": 0.9, "2": 0.1}), ("0", {"0": 0.8, "\n": 0.2})]
    lm = raw_lm("10", tokens)
    judgment = ask(dr.PointwiseJudge(scale=(0, 10), evidence="logprobs"), lm, "p")
    assert judgment.score == pytest.approx(0.72 * 10 + 0.18 * 1 + 0.1 * 2)


def test_digits_that_may_begin_several_levels_give_no_expectation():
    lm = raw_lm("80", [("8", {"8": 0.6, "7": 0.4}), ("0", {"0": 0.9, "5": 0.1})])
    judgment = ask(dr.PointwiseJudge(scale=(0, 100), evidence="logprobs"), lm, "p")
    assert (judgment.score, judgment.confidence) == (80, None)
    assert "told apart" in judgment.reason


def test_a_grade_between_levels_keeps_its_value_and_has_no_confidence():
    lm = raw_lm("2.5", [("2", {"2": 0.9, "3": 0.1}), (".5", {".5": 0.9, ".0": 0.1})])
    judgment = ask(dr.PointwiseJudge(evidence="logprobs"), lm, "p")
    assert (judgment.score, judgment.confidence) == (2.5, None)
    assert "2.5" in judgment.reason


def raw_lm(text, tokens):
    class Engine(ScriptedEngine):
        def _logprobs(self, said):
            return tuple(
                lm15.TokenLogprob(
                    token,
                    math.log(masses[token]),
                    top=tuple(lm15.TopLogprob(t, math.log(p)) for t, p in masses.items()),
                )
                for token, masses in tokens
            )

    engine = Engine(text)
    twin = AsyncScriptedEngine(engine)
    return dspy.LM("scripted/raw", engine=engine, async_engine=twin, cache=False)


def told(said, place, odds):
    """A model that was certain of all its words but the one at a place."""
    words = [(match.group(), match.start()) for match in re.finditer(WORDS, said)]
    return raw_lm(said, [(t, odds if at == place else {t: 0.99, "x": 0.01}) for t, at in words])


PROSE = {
    "A\n\nA is a better passage": 0,
    "**B** because it is newer": 2,
    "The answer is B. A does not say.": 14,
    "Passage A is old. The answer is A.": 32,
    "The answer is b": 14,
}


@pytest.mark.parametrize("said", PROSE)
def test_a_label_in_prose_is_taken_where_the_answer_was_read(said):
    odds = {said[PROSE[said]]: 0.8, "B" if said[PROSE[said]] == "A" else "A": 0.2}
    judge = dr.PairwiseJudge(swap=False, evidence="logprobs")
    judgment = ask(judge, told(said, PROSE[said], odds), "x", "y")
    assert judgment.confidence == pytest.approx(0.8), judgment


def test_a_grade_out_of_its_highest_is_taken_at_the_grade():
    lm = told("Score: 3 out of 3", 7, {"3": 0.9, "2": 0.1})
    judgment = ask(dr.PointwiseJudge(evidence="logprobs"), lm, "p")
    assert judgment.score == pytest.approx(2.9)


def both_orders(first, second):
    """A model with given odds of A in the first and in the second presentation."""
    engines = iter((first, second))

    class Engine(ScriptedEngine):
        def _logprobs(self, said):
            return None

        def complete(self, request):
            odds = next(engines)
            answer = max(odds, key=odds.get)
            return TokenEngine(answer, answer, odds).complete(request)

    engine = Engine("")
    twin = AsyncScriptedEngine(engine)
    return dspy.LM("scripted/orders", engine=engine, async_engine=twin, cache=False)


def test_both_orders_are_averaged():
    lm = both_orders({"A": 0.9, "B": 0.1}, {"A": 0.6, "B": 0.4})
    judgment = ask(dr.PairwiseJudge(evidence="logprobs"), lm, "x", "y")
    assert judgment.best == 0
    assert judgment.confidence == pytest.approx((0.9 + 0.4) / 2)
    assert judgment.probabilities == pytest.approx((0.65, 0.35))


def test_one_order_without_logprobs_leaves_no_confidence():
    judgment = ask(dr.PairwiseJudge(evidence="logprobs"), scripted_lm(["A", "B"]), "x", "y")
    assert (judgment.best, judgment.confidence, judgment.confidence_source) == (0, None, "none")
    assert "no log-probabilities" in judgment.reason


def test_a_window_is_ordered_by_its_first_token():
    odds = {"C": 0.5, "A": 0.3, "B": 0.2}
    judgment = ask(dr.ListwiseJudge(evidence="logprobs"), token_lm("C", "C", odds), *"xyz")
    assert (judgment.status, judgment.order) == ("ok", (2, 0, 1))
    assert judgment.probabilities == pytest.approx((0.3, 0.2, 0.5))


def test_passages_outside_the_alternatives_follow_as_shown():
    lm = token_lm("C", "C", {"C": 0.7, "B": 0.3})
    judgment = ask(dr.ListwiseJudge(evidence="logprobs"), lm, *"wxyz")
    assert (judgment.status, judgment.order) == ("repaired", (2, 1, 0, 3))
    assert "2 of 4 passages" in judgment.reason


def test_a_window_without_logprobs_knows_its_best_only():
    judgment = ask(dr.ListwiseJudge(evidence="logprobs"), scripted_lm("B"), *"xyz")
    assert (judgment.status, judgment.order) == ("repaired", (1, 0, 2))
    assert judgment.confidence is None
    assert "only the best" in judgment.reason


def test_a_sorter_runs_on_first_tokens():
    lm = token_lm("C", "C", {"C": 0.5, "B": 0.3, "A": 0.2})
    with dspy.context(lm=lm):
        sorter = dr.SlidingWindow(dr.ListwiseJudge(evidence="logprobs"))
        ranking = sorter("q", ["x", "y", "z"]).ranking
    assert ranking.indices == [2, 1, 0]
    assert "[A]: x" in lm.engine.prompts[0]
    assert ranking.evidence == "logprobs"


def test_stated_confidence_is_asked_for_and_read():
    lm = scripted_lm("Confidence: 0.85\nWinner: A")
    judgment = ask(dr.PairwiseJudge(swap=False, evidence="stated"), lm, "x", "y")
    assert (judgment.best, judgment.confidence, judgment.confidence_source) == (0, 0.85, "stated")
    assert "probability from 0 to 1" in lm.engine.prompts[0] or "Confidence" in lm.engine.prompts[0]


@pytest.mark.parametrize(
    ("said", "sure"),
    [
        ("Confidence: 85%\nRelevance: 2", 0.85),
        ('{"confidence": 0.4, "relevance": "2"}', 0.4),
        ("[[ ## confidence ## ]]\n0.7\n\n[[ ## relevance ## ]]\n2", 0.7),
        ("**Confidence:** 90\nRelevance: 2", 0.9),
        ("Confidence: high\nRelevance: 2", None),
        ("Confidence: 900\nRelevance: 2", None),
        ("2", None),
    ],
)
def test_how_confidence_may_be_stated(said, sure):
    judgment = ask(dr.PointwiseJudge(evidence="stated"), scripted_lm(said), "p")
    assert judgment.score == 2
    assert judgment.confidence == sure
    assert judgment.confidence_source == ("none" if sure is None else "stated")
    assert bool(judgment.reason) is (sure is None)


def test_stated_confidences_of_both_orders_are_averaged():
    lm = scripted_lm(["Confidence: 0.9\nWinner: A", "Confidence: 0.7\nWinner: B"])
    judgment = ask(dr.PairwiseJudge(evidence="stated"), lm, "x", "y")
    assert judgment.best == 0
    assert judgment.confidence == pytest.approx(0.8)


def test_votes_go_by_the_majority_and_its_share():
    lm = scripted_lm(["B", "A", "B", "B"])
    judgment = ask(dr.SetwiseJudge(votes=4), lm, "x", "y", "z")
    assert (judgment.best, judgment.confidence, judgment.asks) == (1, 0.75, 4)
    assert judgment.confidence_source == "vote"
    assert len(lm.engine.prompts) == 4


def test_votes_in_a_sort_are_separate_questions_and_within_the_estimate():
    said = itertools.cycle(["3", "3", "1"])
    lm = scripted_lm(lambda prompt: next(said))
    sorter = dr.ScoreSort(dr.PointwiseJudge(votes=3))
    with dspy.context(lm=lm):
        ranking = sorter("q", ["x", "y"]).ranking
    assert ranking.usage.calls == 6 == sorter.estimate(2).calls
    assert {judgment.confidence_source for judgment in ranking.judgments} == {"vote"}


def test_votes_are_sampled_and_not_answered_from_the_cache():
    lm = scripted_lm(["3", "1", "3"], cache=True)
    judgment = ask(dr.PointwiseJudge(votes=3), lm, "p")
    assert len(lm.engine.prompts) == 3
    assert judgment.confidence == pytest.approx(2 / 3)


@pytest.mark.filterwarnings("error:rollout_id has no effect")
def test_a_further_answer_that_dspy_wants_is_sampled():
    lm = scripted_lm("2", cache=True)
    judge = dr.PointwiseJudge(evidence="generate")
    for number in (1, 2, 2):
        ask(judge, lm.copy(rollout_id=number, temperature=1.0), "a passage that is sampled")
    assert len(lm.engine.prompts) == 2


@pytest.mark.filterwarnings("error:rollout_id has no effect")
def test_best_of_n_gets_answers_of_its_own():
    said = iter("123")
    lm = scripted_lm(lambda prompt: next(said), cache=True)
    sorter = dr.ScoreSort(dr.PointwiseJudge(evidence="generate"))
    best = dspy.BestOfN(sorter, 3, lambda given, found: found.ranking.scores[0] / 3, 1.0)
    with dspy.context(lm=lm):
        assert best(query="q", documents=["best of three"]).ranking.scores == [3.0]


def test_pairwise_votes_cancel_a_preference_for_a_place():
    judgment = ask(dr.PairwiseJudge(votes=2), scripted_lm("A"), "x", "y")
    assert (judgment.tie, judgment.asks, judgment.confidence) == (True, 4, 0.5)


def test_unreadable_votes_count_against_the_confidence():
    judgment = ask(dr.SetwiseJudge(votes=2), scripted_lm(["A", "hm"]), "x", "y")
    assert (judgment.best, judgment.confidence) == (0, 0.5)


@pytest.mark.parametrize("votes", [0, -1, 1.5, True, "3"])
def test_a_number_of_votes_that_cannot_be(votes):
    with pytest.raises(InputError, match="votes"):
        dr.PointwiseJudge(votes=votes)


def test_votes_and_logprobs_exclude_each_other():
    with pytest.raises(InputError, match="use one of the two"):
        dr.PointwiseJudge(votes=3, evidence="logprobs")


def test_generate_takes_no_confidence_even_where_there_are_logprobs():
    make, answer, odds, _ = CASES["setwise"]
    judgment = ask(make(evidence="generate"), token_lm(answer, answer, odds), *"xyz")
    assert (judgment.confidence, judgment.confidence_source) == (None, "none")


@pytest.mark.parametrize("kind", ["pointwise", "yes or no", "pairwise", "setwise"])
def test_auto_uses_logprobs_from_the_first_answer_on(kind):
    make, answer, odds, sure = CASES[kind]
    lm = token_lm(answer, answer, odds)
    judgment = ask(make(), lm, *map(str, range(PASSAGES[kind])))
    assert judgment.confidence == pytest.approx(sure)
    assert len(lm.engine.prompts) == 1
    assert capability.found(lm).gives is True


@pytest.mark.parametrize("kind", ["pointwise", "pairwise", "setwise"])
def test_auto_without_logprobs_reads_the_answer_in_one_call(kind):
    make, answer, *_ = CASES[kind]
    lm = scripted_lm(answer)
    judgment = ask(make(), lm, *map(str, range(PASSAGES[kind])))
    assert (judgment.confidence, judgment.reason, judgment.evidence) == (None, "", "generate")
    assert len(lm.engine.prompts) == 1
    assert capability.found(lm).gives is False


class RefusingEngine(ScriptedEngine):
    """Refuses more alternatives than ``most``, as servers do."""

    def __init__(self, most):
        super().__init__("2", logprobs={"2": math.log(0.9), "1": math.log(0.1)})
        self.most = most
        self.asked = []

    def complete(self, request):
        self.asked.append(request.config.logprobs)
        if request.config.logprobs is not None and request.config.logprobs > self.most:
            raise lm15.InvalidRequestError("top_logprobs must be at most 5 (logprobs)", status=400)
        answer = super().complete(request)
        if request.config.logprobs is None:
            import dataclasses

            return dataclasses.replace(answer, logprobs=None)
        return answer


def refusing_lm(most):
    engine = RefusingEngine(most)
    twin = AsyncScriptedEngine(engine)
    return dspy.LM("scripted/refusing", engine=engine, async_engine=twin, cache=False)


def test_a_server_that_allows_few_alternatives_is_asked_for_few():
    lm = refusing_lm(5)
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(dr.PointwiseJudge(), concurrency=1)("q", ["x", "y"]).ranking
    assert lm.engine.asked == [20, 5, 5]
    assert ranking.judgments[0].confidence == pytest.approx(0.9)
    assert (ranking.usage.calls, ranking.usage.failed_calls) == (2, 1)


@pytest.mark.parametrize("evidence", ["auto", "logprobs"])
def test_a_model_that_refuses_logprobs_is_asked_without(evidence):
    lm = refusing_lm(-1)
    judge = dr.PointwiseJudge(evidence=evidence)
    with dspy.context(lm=lm):
        ranking = dr.ScoreSort(judge, concurrency=1)("q", ["x", "y"]).ranking
    assert lm.engine.asked == [20, 5, None, None]
    assert not ranking.degraded
    assert ranking.judgments[0].confidence is None
    assert ("must be at most" in ranking.judgments[0].reason) is (evidence == "logprobs")


def test_explanations_are_not_scored_by_tokens_unless_asked():
    make, answer, odds, _ = CASES["setwise"]
    lm = token_lm(f"Reasoning: because\nBest: {answer}", answer, odds)
    assert ask(make(reasoning=True), lm, *"xyz").confidence is None
    assert ask(make(reasoning=True, evidence="logprobs"), lm, *"xyz").confidence is not None


def test_logprobs_do_not_stay_in_traces():
    make, answer, odds, _ = CASES["setwise"]
    with dspy.context(lm=token_lm(answer, answer, odds), trace=[]):
        make()(query="q", passages=list("xyz"))
        (_, _, prediction), *_ = dspy.settings.trace
    assert "logprobs" not in prediction


def test_a_judge_with_votes_or_stated_confidence_survives_saving(tmp_path):
    for judge in (dr.PointwiseJudge(votes=3), dr.PointwiseJudge(evidence="stated")):
        path = dr.save(dr.ScoreSort(judge), tmp_path / "program.json")
        again = dr.load(path).judge
        assert again.settings == judge.settings
        assert list(again.signature.output_fields) == list(judge.signature.output_fields)
