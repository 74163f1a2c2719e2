"""The questions that the four judges ask when the caller brings no signature of their own."""

import dspy


class GradeRelevance(dspy.Signature):
    """Grade how well the passage answers the query.

    0 = off-topic, 1 = tangential, 2 = partial answer, 3 = fully answers.
    A number between two grades is allowed. Answer with the number only.
    """

    query: str = dspy.InputField()
    passage: str = dspy.InputField()
    relevance: str = dspy.OutputField(desc="a number from 0 to 3")


class QueryFromPassage(dspy.Signature):
    """The query given the passage; scored, not generated, and best without any instructions.

    A sentence of instructions took the embedded model's nDCG@10 on noveleval from 0.69 to 0.62.
    """

    passage: str = dspy.InputField()
    query: str = dspy.OutputField(desc="A question this passage answers")


QueryFromPassage.instructions = ""


class ClaimOfPassage(dspy.Signature):
    """A statement about the passage; scored, not generated."""

    passage: str = dspy.InputField()
    claim: str = dspy.OutputField(desc="About this passage")


ClaimOfPassage.instructions = ""


class PreferPassage(dspy.Signature):
    """Decide which of two passages answers the query better.

    Answer with the letter of the better passage only, or Tie when they are equally good.
    """

    query: str = dspy.InputField()
    passages: str = dspy.InputField()
    winner: str = dspy.OutputField(desc="A, B or Tie")


class ChoosePassage(dspy.Signature):
    """Choose the passage that answers the query best.

    Answer with its letter only, or None when no passage is relevant.
    """

    query: str = dspy.InputField()
    passages: str = dspy.InputField()
    best: str = dspy.OutputField(desc="the letter of the best passage, or None")


class OrderPassages(dspy.Signature):
    """Rank the passages by how well they answer the query, best first.

    Answer with all passage numbers in the form [2] > [1] > [3] and nothing else, or [] when no
    passage is relevant.
    """

    query: str = dspy.InputField()
    passages: str = dspy.InputField()
    ranking: str = dspy.OutputField(desc="all passage numbers, best first: [2] > [1] > [3]")


class FirstPassage(dspy.Signature):
    """Choose the passage that answers the query best.

    Answer with its letter only, or None when no passage is relevant.
    """

    query: str = dspy.InputField()
    passages: str = dspy.InputField()
    ranking: str = dspy.OutputField(desc="the letter of the best passage, or None")
