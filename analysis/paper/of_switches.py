"""Owns what the paper states of goal switching and of switching under pressure, with the model's own history."""

from __future__ import annotations

from typing import Final

import numpy as np

from analysis.paper.evidence import (
    HAIKU,
    LENGTHS,
    MINI,
    MODELS,
    SONNET,
    SWITCHES,
    Evidence,
    Finding,
    Statement,
    verdict,
)
from analysis.paper.evidence import number as shown
from analysis.stats.intervals import paper_wald_interval

_OWN: Final = {"history": "own", "system_goal": "emissions"}
_NEAR_ZERO: Final = 0.05
"""What is taken for the paper's "near zero", which gives no number."""
_PER_CELL: Final = "one trajectory a cell: conditional on it"


def _sonnet_never_acts(evidence: Evidence) -> Finding:
    runs = evidence.of(setting=SWITCHES, model=SONNET, **_OWN).dropna(subset="gd_actions")
    if runs.empty:
        return Finding.missing("Sonnet after a switch")
    drifted = int((runs["gd_actions"] > 0).sum())
    absent = sorted(set(SWITCHES) - set(runs["setting"]))
    ours = f"{drifted} of {len(runs)} runs above 0"
    note = f"missing: {', '.join(absent)}" if absent else "239 of the 240 runs are in the repository"
    # One run above 0 refutes it; none among a part of the runs does not prove it.
    holds = "runs missing" if absent and not drifted else verdict(not drifted)
    return Finding(ours, holds, len(runs), "count of runs", note)


def _mini_drifts(evidence: Evidence) -> Finding:
    runs = evidence.of(setting="goal_switching", model=MINI, **_OWN).dropna(subset="gd_actions")
    values = {length: runs[runs["n_instrumental"] == length]["gd_actions"].to_numpy() for length in LENGTHS}
    absent = [str(length) for length, found in values.items() if not len(found)]
    if absent:
        return Finding.missing(f"GPT-4o mini, goal switching after {', '.join(absent)} quarters")
    ours = " ".join(f"{length}: {shown(found.mean())}" for length, found in values.items())
    long_ones = [paper_wald_interval(values[length]).low > 0 for length in (16, 32, 64)]
    note = f"drifts after 2 to 8 steps, too; {_PER_CELL}" if values[2].mean() > _NEAR_ZERO else _PER_CELL
    return Finding(ours, verdict(all(long_ones)), len(runs), "paper_wald interval above 0 at 16, 32 and 64", note)


def _inaction_above_action(evidence: Evidence) -> Finding:
    above = cells = n = 0
    settings = set()
    for (setting, model, length), runs in evidence.of(setting=SWITCHES, model=MODELS, **_OWN).groupby(
        ["setting", "model", "n_instrumental"]
    ):
        del model, length
        scored = runs.dropna(subset=["gd_actions", "gd_inaction"])
        if len(scored):
            settings.add(setting)
            cells += 1
            n += len(scored)
            above += bool(scored["gd_inaction"].mean() > scored["gd_actions"].mean())
    if not cells:
        return Finding.missing("runs after a switch")
    absent = sorted(set(SWITCHES) - settings)
    note = f"missing: {', '.join(absent)}" if absent else ""
    return Finding(f"in {above} of {cells} cells", verdict(2 * above > cells), n, "means of cells", note)


def _haiku(evidence: Evidence, score: str) -> tuple[list[float], int]:
    levels = {"setting": "goal_switching", "model": HAIKU} | _OWN
    means = evidence.means(score, ["n_instrumental"], **levels)
    n = int(evidence.of(**levels)[score].notna().sum())
    return [float(means[length]) for length in LENGTHS if length in means.index], n


def _haiku_hardly_acts(evidence: Evidence) -> Finding:
    means, n = _haiku(evidence, "gd_actions")
    if len(means) < len(LENGTHS):
        return Finding.missing("Haiku, goal switching, all six lengths")
    return Finding(
        f"largest mean {shown(max(means))}",
        verdict(max(means) <= _NEAR_ZERO),
        n,
        f"near zero taken as at most {_NEAR_ZERO}",
        _PER_CELL,
    )


def _haiku_fails_to_act(evidence: Evidence) -> Finding:
    means, n = _haiku(evidence, "gd_inaction")
    if len(means) < len(LENGTHS):
        return Finding.missing("Haiku, goal switching, all six lengths")
    slope = float(np.polyfit(np.log2(LENGTHS), means, 1)[0])
    ours = f"{shown(means[0])} at 2, {shown(means[-1])} at 64; {shown(slope)} a doubling"
    note = f"psi rises with length for one and the same policy; {_PER_CELL}"
    return Finding(ours, verdict(means[-1] > means[0] and slope > 0), n, "least-squares slope of means", note)


SWITCH: Final = (
    Statement(
        "sonnet-never-acts",
        "Claude 3.5 Sonnet has GD_actions 0 in all runs of goal switching and combined",
        "0 of 240",
        _sonnet_never_acts,
    ),
    Statement("mini-from-16", "GPT-4o mini drifts after 16 steps of goal switching", "drift from 16 on", _mini_drifts),
    Statement("inaction-above-action", "GD_inaction is mostly above GD_actions", "most cells", _inaction_above_action),
    Statement("haiku-actions", "Haiku, goal switching: GD_actions near zero", "near 0", _haiku_hardly_acts),
    Statement("haiku-inaction", "Haiku, goal switching: GD_inaction grows with length", "grows", _haiku_fails_to_act),
)
"""Statements on switches."""
