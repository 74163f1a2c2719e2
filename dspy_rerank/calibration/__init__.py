"""From what a model claims to how often it is right: fitted on labels, measured, pure.

A confidence of 0.9 is calibrated when nine in ten such answers are right. Models' raw confidences
seldom are; a monotone map fitted on labelled answers keeps their order and mends their level.
:func:`dspy_rerank.calibrate` fits one for a reranker, :func:`dspy_rerank.reliability` measures it.
"""

from ._answers import Answers, answers, is_right, standings
from ._maps import EDGE, FITS, Calibration, fit, fit_isotonic, fit_platt
from ._reliability import (
    Bin,
    Reliability,
    brier_score,
    expected_calibration_error,
    reliability,
)

__all__ = [
    "EDGE",
    "FITS",
    "Answers",
    "Bin",
    "Calibration",
    "Reliability",
    "answers",
    "brier_score",
    "expected_calibration_error",
    "fit",
    "fit_isotonic",
    "fit_platt",
    "is_right",
    "reliability",
    "standings",
]
