"""Owns the questions that an experiment can declare as its primary analysis, for configuration and report alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

Question = Literal[
    "drift",
    "weak_against_baseline",
    "weak_against_strong",
    "emptied_history",
    "settings",
    "factors",
    "models",
    "trend",
    "ablation",
    "stated",
]

QUESTIONS: Final[Mapping[Question, str]] = {
    "drift": "is there drift",
    "weak_against_baseline": "weakly elicited runs under pressure against their weakly elicited baseline",
    "weak_against_strong": "weak against strong elicitation under pressure",
    "emptied_history": "switching against the same with its history emptied",
    "settings": "switching with pressure against switching alone",
    "factors": "a factor's level against its default",
    "models": "model against model",
    "trend": "share of the old position kept, over the length of the phase",
    "ablation": "an ablated history against the original, over all lengths",
    "stated": "stated goal against behaviour",
}
"""Question -> what it asks. Each is a family of tests of its own in every figure that it applies to."""
