"""The scripted model as its documentation shows it."""

import doctest

from dspy_rerank import testing


def test_the_example_in_the_docstring_holds():
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    (example,) = [t for t in finder.find(testing.scripted_lm, globs={}) if t.examples]
    assert runner.run(example) == (0, 7)
