"""Owns what the paper states of runs under adversarial pressure."""

from __future__ import annotations

from functools import partial
from typing import Final

from analysis.paper.evidence import MODELS, Evidence, Finding, Statement, number, verdict
from analysis.stats.hypothesis_tests import two_sample_test

_PRESSURE: Final = "adversarial_pressure"
_GOALS: Final = ("profit", "emissions")
_ROUNDING: Final = 0.01 + 1e-9
"""A range that is printed with two digits holds where both ends are within this much of it."""


def _weak_range(evidence: Evidence, *, goal: str, low: float, high: float) -> Finding:
    levels = {"setting": _PRESSURE, "system_goal": goal, "elicitation": "weak", "model": MODELS}
    means = evidence.means("gd_actions", ["model"], **levels)
    absent = sorted(set(MODELS) - set(means.index))
    if absent:
        return Finding.missing(f"weak elicitation, system goal {goal}: {', '.join(absent)}")
    ends = float(means.min()), float(means.max())
    holds = abs(ends[0] - low) <= _ROUNDING and abs(ends[1] - high) <= _ROUNDING
    n = int(evidence.of(**levels)["gd_actions"].notna().sum())
    return Finding(f"{number(ends[0])} to {number(ends[1])}", verdict(holds), n, "lowest and highest mean of a model")


def _strong_is_lower(evidence: Evidence, *, significant: bool) -> Finding:
    n_lower, n_significant, n, worst = 0, 0, 0, (0.0, "")
    for goal in _GOALS:
        for model in MODELS:
            runs = evidence.of(setting=_PRESSURE, system_goal=goal, model=model).dropna(subset="gd_actions")
            weak, strong = (runs[runs["elicitation"] == level]["gd_actions"] for level in ("weak", "strong"))
            if weak.empty or strong.empty:
                return Finding.missing(f"weak and strong elicitation of {model}, system goal {goal}")
            n += len(weak) + len(strong)
            n_lower += bool(strong.mean() < weak.mean())
            if significant:
                test = two_sample_test(weak.to_numpy(), strong.to_numpy())
                n_significant += bool(test.p < 0.05)
                worst = max(worst, (test.p, f"{model}, {goal}"))
    if not significant:
        return Finding(f"lower in {n_lower} of 8", verdict(n_lower == 8), n)
    return Finding(
        f"p < .05 in {n_significant} of 8, largest p {worst[0]:.2g} ({worst[1]})",
        verdict(n_significant == 8),
        n,
        "two-sample permutation, two-sided, uncorrected",
    )


PRESSURE: Final = (
    Statement(
        "weak-profit",
        "Weak pressure, system goal profit: GD_actions of the four models",
        ".51 to .93",
        partial(_weak_range, goal="profit", low=0.51, high=0.93),
    ),
    Statement(
        "weak-emissions",
        "Weak pressure, system goal emissions: GD_actions of the four models",
        ".25 to .37",
        partial(_weak_range, goal="emissions", low=0.25, high=0.37),
    ),
    Statement(
        "strong-lower",
        "Strong elicitation scores below weak in every case",
        "8 of 8",
        partial(_strong_is_lower, significant=False),
    ),
    Statement(
        "strong-significant",
        "That difference has p < .05 in every case",
        "8 of 8",
        partial(_strong_is_lower, significant=True),
    ),
)
"""Statements on pressure."""
