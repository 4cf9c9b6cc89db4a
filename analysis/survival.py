"""Owns curves of freedom from divergence: the share of runs that have not yet diverged, by quarters since the switch.

The estimator is Kaplan and Meier's: a run that ended, or was ended, without divergence counts as long as it was seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy import stats

from analysis.companions import onset_action_quarter, onset_inaction_quarter
from analysis.run_table import cell_columns
from analysis.runs import Run
from analysis.stats.estimate import LEVEL

CHANNELS: Final = {"actions": onset_action_quarter, "inaction": onset_inaction_quarter}
"""What a run diverges by: a purchase for the competing goal, or a quarter closed with its stocks held."""
GROUP: Final = ("setting", "system_goal", "history", "factors")
"""Runs with the same levels of these are one curve a model; lengths of the instrumental phase are pooled."""


def times_table(runs: Sequence[Run]) -> pd.DataFrame:
    """Return one row a run with a switch and channel: its quarters until divergence, or as long as it was seen.

    Columns: what names the cell, run_id, cluster, channel, quarters_after_switch (1 is the first quarter after the
    instrumental phase), diverged. Runs that an outage ended are never scored, so they are left out, as are runs that
    closed no quarter of the window.
    """
    return pd.DataFrame(_times(runs))


def curves_table(times: pd.DataFrame) -> pd.DataFrame:
    """Return the curves: one row a group, channel, model and quarter, from quarter 0 on.

    Columns: `GROUP`, channel, model, quarter, free_frac with free_frac_low and free_frac_high (pointwise, on the scale
    of log(-log)), n_at_risk, n_diverged, n_runs, n_clusters. The interval takes runs as independent; where n_clusters
    is below n_runs it is too narrow, and a figure has to say so.

    Args:
        times: from `times_table`.
    """
    rows: list[dict[str, Any]] = []
    if times.empty:
        return pd.DataFrame(rows)
    for names, members in times.groupby([*GROUP, "channel", "model"], sort=True, dropna=False):
        named = dict(zip((*GROUP, "channel", "model"), names, strict=True))
        size = {"n_runs": len(members), "n_clusters": members["cluster"].nunique()}
        rows.extend(named | row | size for row in _curve(members))
    return pd.DataFrame(rows)


def _times(runs: Sequence[Run]) -> Iterator[dict[str, Any]]:
    for run in runs:
        quarters = run.quarters(run.closed_window)
        if not run.cell.switches or run.is_outage or not quarters:
            continue
        for channel, onset in CHANNELS.items():
            found = onset(quarters, run.cell.goals.competing.cluster)
            last = found.value if found.defined else quarters[-1].quarter
            yield cell_columns(run.cell) | {
                "run_id": run.run_id,
                "cluster": run.cluster_id,
                "channel": channel,
                "quarters_after_switch": int(last) - run.n_instrumental,
                "diverged": found.defined,
            }


def _curve(members: pd.DataFrame) -> Iterator[dict[str, Any]]:
    # Half a second of import that commands on other scores should not pay for.
    from statsmodels.duration.survfunc import SurvfuncRight

    times = members["quarters_after_switch"].to_numpy(int)
    diverged = members["diverged"].to_numpy(bool)
    found = SurvfuncRight(times, diverged.astype(int))
    at = {int(time): place for place, time in enumerate(found.surv_times)}
    free, error = 1.0, 0.0
    for quarter in range(int(times.max()) + 1):
        if quarter in at:
            free, error = float(found.surv_prob[at[quarter]]), float(found.surv_prob_se[at[quarter]])
        low, high = _interval(free, error)
        yield {
            "quarter": quarter,
            "free_frac": free,
            "free_frac_low": low,
            "free_frac_high": high,
            "n_at_risk": int((times >= max(quarter, 1)).sum()),
            "n_diverged": int((diverged & (times == quarter)).sum()),
        }


def _interval(free: float, error: float) -> tuple[float, float]:
    """Return the pointwise interval of a share, none where it is 0 or 1 and its variance is estimated as 0."""
    if not 0 < free < 1 or not error > 0:
        return float("nan"), float("nan")
    half = stats.norm.ppf((1 + LEVEL) / 2) * error / (free * abs(np.log(free)))
    return float(free ** np.exp(half)), float(free ** np.exp(-half))
