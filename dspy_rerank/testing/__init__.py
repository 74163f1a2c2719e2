"""For tests of code that embeds rerankers: scripted models, oracles, faults, conformance checks.

Nothing here needs a network beyond loopback, a key or a model file.
"""

from . import faults
from .completions import completion
from .conformance import check_estimate, check_reranker
from .faults import Fault
from .oracles import oracle_answers, oracle_judge
from .requests import Asked
from .schedules import at_random, tailed
from .scripted import AsyncScriptedEngine, Script, ScriptedEngine, prompt_text, scripted_lm
from .server import FaultServer
from .windows import limited

__all__ = [
    "Asked",
    "AsyncScriptedEngine",
    "Fault",
    "FaultServer",
    "Script",
    "ScriptedEngine",
    "at_random",
    "check_estimate",
    "check_reranker",
    "completion",
    "faults",
    "limited",
    "oracle_answers",
    "oracle_judge",
    "prompt_text",
    "scripted_lm",
    "tailed",
]
