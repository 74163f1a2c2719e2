"""What a report says of the prompts that an optimizer has tried."""

import dspy

from dspy_rerank.optimizers.judge_program import Prompt
from dspy_rerank.optimizers.tried import Tried

QUESTIONS = [dspy.Example(q=str(i)).with_inputs("q") for i in range(4)]


def note(tried, wording, scores, demos=0, questions=QUESTIONS):
    prediction = dspy.Prediction()
    prediction._prompt = Prompt(wording, ({"q": "x"},) * demos)
    for question, score in zip(questions, scores, strict=False):
        tried.note(question, prediction, score)


def test_prompts_are_listed_in_the_order_of_trying_with_the_answers_it_took():
    tried = Tried()
    note(tried, "own", [0, 1, 0, 1])
    note(tried, "better", [1, 1, 1, 0], demos=2)
    note(tried, "own", [0, 1, 0, 1])
    first, second = tried.listed(QUESTIONS)
    assert (first["instructions"], first["value"], first["after"]) == ("own", 0.5, 4)
    assert second == {
        "instructions": "better", "demos": 2, "value": 0.75, "questions": 4, "after": 8,
    }  # fmt: skip


def test_prompts_tried_at_the_same_time_are_listed_best_last_whatever_the_threads():
    def mixed(order):
        tried = Tried()
        for question in QUESTIONS:
            for wording in order:
                note(tried, wording, [float(wording == "good")], questions=[question])
        return tried.listed(QUESTIONS)

    assert mixed(["good", "bad"]) == mixed(["bad", "good"])
    assert [each["instructions"] for each in mixed(["good", "bad"])] == ["bad", "good"]


def test_prompts_asked_less_than_half_of_the_questions_are_left_out():
    tried = Tried()
    note(tried, "own", [0, 0, 0, 0])
    note(tried, "lucky", [1])
    assert [each["instructions"] for each in tried.listed(QUESTIONS)] == ["own"]
    assert tried.best(QUESTIONS).instructions == "own"


def test_of_equally_good_prompts_the_shortest_is_best():
    tried = Tried()
    note(tried, "own, at length", [1, 1, 1, 1])
    note(tried, "own", [1, 1, 1, 1])
    assert tried.best(QUESTIONS).instructions == "own"
    assert Tried().best(QUESTIONS) is None
