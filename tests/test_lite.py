"""LiteLLM is never half imported, whoever needs it first."""

import subprocess
import sys

TWO_THREADS = """
import sys, threading, time
from dspy.clients import get_litellm
from dspy_rerank.prices import litellm_entry

first = threading.Thread(target=litellm_entry, args=["mistral/mistral-small-latest"])
first.start()
while "litellm" not in sys.modules:
    time.sleep(0.001)
print(callable(get_litellm(feature="test").acompletion))
first.join()
"""
SETTINGS = """
import litellm
litellm.cache = "the user's"
from dspy_rerank import lite
print(lite.litellm() is litellm, litellm.cache)
"""


def printed(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_dspy_finds_it_whole_while_another_thread_imports_it():
    assert printed(TWO_THREADS) == "True"


def test_what_the_user_has_set_stays():
    assert printed(SETTINGS) == "True the user's"
