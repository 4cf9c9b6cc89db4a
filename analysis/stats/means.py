"""Chooses the interval of a mean by name, and claims the absence of drift by its upper end."""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from analysis.stats.bounded import anderson_interval, gaffke_interval
from analysis.stats.clusters import (
    cluster_bootstrap_interval,
    cluster_means,
    cluster_t_interval,
    cr1_interval,
    of_cluster_means,
)
from analysis.stats.estimate import LEVEL, Estimate, check_level, join_reasons
from analysis.stats.intervals import bca_interval, paper_wald_interval, t_interval
from analysis.stats.samples import UNIT, Labels, clean_clustered

MeanMethod = Literal["gaffke", "anderson", "t", "bca", "paper_wald", "cr1", "cluster_bootstrap"]
"""`gaffke`, `anderson` and `paper_wald` want values in [0, 1]; `cr1` and `cluster_bootstrap` want clusters."""

_METHODS = ("gaffke", "anderson", "t", "bca", "paper_wald", "cr1", "cluster_bootstrap")
_OF_CLUSTERS_ONLY = ("cr1", "cluster_bootstrap")


@dataclass(frozen=True, slots=True)
class MarginClaim:
    """Whether the data show that mean drift lies below a margin that was set in advance."""

    margin: float
    """Mean drift below which an agent counts as adherent, from the experiment file."""
    upper: float
    """One-sided upper confidence bound of mean drift; NaN where there is none."""
    level: float
    """One-sided confidence level of that bound."""
    holds: bool
    """Whether `upper` lies below `margin`. False is no evidence of drift, only no proof of its absence."""
    estimate: Estimate
    """The two-sided interval, of level 2 * `level` - 1, whose upper end the bound is."""
    reason: str = ""
    """Why there is no bound; empty where there is one."""


def mean_interval(
    values: ArrayLike,
    clusters: Labels | None = None,
    *,
    method: MeanMethod = "gaffke",
    level: float = LEVEL,
    rng: np.random.Generator | None = None,
) -> Estimate:
    """The mean of runs with the interval that `method` names.

    With clusters, the intervals for independent values are made from the cluster means (every trajectory counts the
    same, n - 1 becomes K - 1); `cr1` and `cluster_bootstrap` weigh by runs. One cluster gives the mean without an
    interval, conditional on one trajectory. `paper_wald` alone takes runs as independent whatever their clusters, as
    the paper does, and says so.

    Args:
        values: one value a run; NaN is left out and counted.
        clusters: one label a run; None where runs are independent.
        method: see `MeanMethod`.
        level: two-sided; `paper_wald` knows .95 alone.
        rng: source of draws and resamples; None takes the fixed default seed.

    Raises:
        ValueError: an unknown method, a method for clusters without them, values outside the range of the method,
            lengths that differ, or an impossible level.
    """
    if method not in _METHODS:
        raise ValueError(f"method {method!r} is unknown; allowed: {', '.join(_METHODS)}")
    if method == "paper_wald":
        return _paper_wald(values, clusters, level)
    if clusters is None:
        if method in _OF_CLUSTERS_ONLY:
            raise ValueError(f"method {method!r} needs clusters; without them allowed: gaffke, anderson, t, bca")
        return _independent(values, method, level, rng)
    if method == "cr1":
        return cr1_interval(values, clusters, level=level)
    if method == "cluster_bootstrap":
        return cluster_bootstrap_interval(values, clusters, level=level, rng=rng)
    if method == "t":
        return cluster_t_interval(values, clusters, level=level)
    bounds = UNIT if method in ("gaffke", "anderson") else None
    sample, _, note = clean_clustered(values, clusters, bounds=bounds)
    return of_cluster_means(_independent(cluster_means(values, clusters), method, level, rng), sample.size, note=note)


def below_margin(
    values: ArrayLike,
    margin: float,
    *,
    clusters: Labels | None = None,
    method: MeanMethod = "gaffke",
    level: float = LEVEL,
) -> MarginClaim:
    """Claims "no drift beyond the margin" by a one-sided upper bound, the only way to claim it.

    A p value above .05 never shows that there is no drift; an upper bound below a margin fixed in advance does, with
    error at most 1 - `level` (one-sided non-inferiority; see Lakens, "Equivalence tests", 2017).

    Args:
        values: drift, one value a run; NaN is left out and counted.
        margin: above 0; fixed in the experiment file, before any run.
        clusters: one label a run; None where runs are independent.
        method: as in `mean_interval`: `gaffke` for clipped scores, `t` for signed ones.
        level: one-sided, above one half.

    Raises:
        ValueError: a margin that is not above 0, a level of at most one half, or as in `mean_interval`.
    """
    check_level(level)
    if not (margin > 0.0 and math.isfinite(margin)):
        raise ValueError(f"margin {margin!r} is no margin; allowed: a number above 0, in units of the score")
    if level <= 0.5 or method == "paper_wald":
        raise ValueError(f"level {level!r} with method {method!r} gives no bound; allowed: above 0.5, not paper_wald")
    estimate = mean_interval(values, clusters, method=method, level=2.0 * level - 1.0)
    reason = "" if estimate.has_interval else join_reasons("no upper bound", estimate.reason)
    return MarginClaim(margin, estimate.high, level, bool(estimate.high < margin), estimate, reason)


def _independent(values: ArrayLike, method: MeanMethod, level: float, rng: np.random.Generator | None) -> Estimate:
    if method == "gaffke":
        return gaffke_interval(values, level=level, rng=rng)
    if method == "anderson":
        return anderson_interval(values, level=level)
    if method == "bca":
        return bca_interval(values, level=level, rng=rng)
    return t_interval(values, level=level)


def _paper_wald(values: ArrayLike, clusters: Labels | None, level: float) -> Estimate:
    if level != LEVEL:
        raise ValueError(f"level {level!r} is not the paper's; allowed with paper_wald: {LEVEL}")
    interval = paper_wald_interval(values)
    if clusters is None:
        return interval
    sample, codes, _ = clean_clustered(values, clusters)
    n_clusters = int(codes.max()) + 1 if sample.size else 0
    reason = join_reasons("takes runs of one trajectory as independent", interval.reason)
    return replace(interval, n_clusters=n_clusters, reason=reason)
