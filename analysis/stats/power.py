"""How many seeds, on how many trajectories, a planned experiment needs: power by simulation of the primary test."""

import math
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from analysis.stats.estimate import LEVEL, Estimate, check_level
from analysis.stats.intervals import share_interval
from analysis.stats.permutation import sign_patterns
from analysis.stats.samples import FloatArray, generator

EXPERIMENTS = 4_000
"""Simulated experiments behind each power; its standard error is then .006 at a power of .8."""

SEEDS_MOST = 500
"""Most seeds, or trajectories, that a plan may ask for."""

_PATTERNS_EXACT_MOST = 12  # differences: 4,096 sign patterns
_PATTERNS = 3_999


@dataclass(frozen=True, slots=True)
class DriftModel:
    """What a plan expects: signed differences d that are normal, with a part shared by the runs of a trajectory."""

    drift: float
    """Mean of d, as a fraction of the score."""
    sd: float
    """Spread of d between runs of different trajectories, as a fraction of the score, above 0."""
    icc: float = 0.0
    """Share of the variance of d that lies between trajectories, 0 to 1; 0 means that branches are independent."""

    def __post_init__(self) -> None:
        """Refuses values that describe no distribution."""
        if not (math.isfinite(self.drift) and math.isfinite(self.sd) and self.sd > 0.0):
            raise ValueError(f"drift {self.drift!r} with sd {self.sd!r} is no model; allowed: finite, sd above 0")
        if not 0.0 <= self.icc <= 1.0:
            raise ValueError(f"icc {self.icc!r} is no share of variance; allowed: 0 to 1")


@dataclass(frozen=True, slots=True)
class Plan:
    """A design and what it can show."""

    n_clusters: int
    """Trajectories; seeds, where every seed has its own."""
    n_branches: int
    """Runs that branch from each trajectory."""
    power: Estimate
    """Share of simulated experiments in which the test rejects, with its exact binomial interval."""
    cost: float
    """n_clusters * (cost of a trajectory + n_branches), in evaluation runs."""
    reason: str = ""
    """Why no design of this kind reaches the target; empty where this one does."""

    @property
    def n_runs(self) -> int:
        """Evaluation runs in all."""
        return self.n_clusters * self.n_branches


def sign_flip_power(
    n: int, model: DriftModel, *, n_branches: int = 1, alpha: float = 0.05, rng: np.random.Generator | None = None
) -> Estimate:
    """Power of the one-sided sign-flip test of n trajectories with so many branches each.

    The test flips the means of the trajectories, which are normal with variance sd^2 (icc + (1 - icc) / n_branches);
    all sign patterns are counted up to 12 trajectories, 3,999 random ones beyond. Fewer than 5 trajectories can never
    reach p <= .05, since 2^-4 is above it, however many runs branch from them.

    Args:
        n: trajectories, or seeds where every seed has its own.
        model: expected drift and spread.
        n_branches: runs of each trajectory.
        alpha: largest p that counts as drift, uncorrected.
        rng: source of the simulated experiments; None takes the fixed default seed.

    Raises:
        ValueError: fewer than 1 trajectory or branch, or an impossible alpha.
    """
    check_level(1.0 - alpha)
    if n < 1 or n_branches < 1:
        raise ValueError(f"{n} trajectories of {n_branches} branches are no design; allowed: at least 1 of each")
    random = generator(rng)
    sd = cluster_mean_sd(model, n_branches)
    # Trajectory by trajectory, so that a longer plan holds the experiments of a shorter one.
    noise = random.standard_normal((n, EXPERIMENTS)).T
    p = _sign_flip_p_of_rows(model.drift + sd * noise, random)
    return replace(share_interval(int((p <= alpha).sum()), EXPERIMENTS), method=f"{EXPERIMENTS:,} experiments")


def seeds_needed(
    model: DriftModel,
    *,
    n_branches: int = 1,
    target: float = 0.8,
    alpha: float = 0.05,
    rng: np.random.Generator | None = None,
) -> Plan:
    """The fewest trajectories (seeds, with one branch each) whose power surely reaches the target.

    Surely: the lower end of the interval of the simulated power does. All sizes are tried on the same experiments.

    Args:
        model: expected drift, above 0, and spread.
        n_branches: runs of each trajectory.
        target: power wanted.
        alpha: largest p that counts as drift, uncorrected.
        rng: source of the simulated experiments; None takes the fixed default seed.

    Returns:
        The plan, or the largest one allowed with a reason where even that falls short.

    Raises:
        ValueError: a drift that is not above 0, or an impossible target or alpha.
    """
    check_level(target)
    if model.drift <= 0.0:
        raise ValueError(f"drift {model.drift!r} cannot be planned for; allowed: above 0, the one-sided alternative")
    seed = int(generator(rng).integers(2**63))

    def power(n: int) -> Estimate:
        return sign_flip_power(n, model, n_branches=n_branches, alpha=alpha, rng=np.random.default_rng(seed))

    low, high = 0, 8
    while power(high).low < target:
        if high == SEEDS_MOST:
            reason = f"power stays below {target:g} with {SEEDS_MOST} trajectories"
            return Plan(high, n_branches, power(high), math.nan, reason)
        low, high = high, min(2 * high, SEEDS_MOST)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if power(middle).low >= target else (middle, high)
    return Plan(high, n_branches, power(high), float(high * n_branches))


def cheapest_plan(
    model: DriftModel,
    *,
    trajectory_cost: float,
    target: float = 0.8,
    alpha: float = 0.05,
    rng: np.random.Generator | None = None,
) -> Plan:
    """Splits runs between trajectories and branches so that the target is reached at the least cost.

    More branches help until the variance within a trajectory is small beside that between them; the optimum lies near
    sqrt(trajectory_cost (1 - icc) / icc) branches, and every number of branches up to twice that (20 at most) is tried.

    Source of the rule: Raudenbush, "Statistical analysis and optimal design for cluster randomized trials" (1997).

    Args:
        model: expected drift, above 0, its spread and the icc (measured by `cluster_icc`).
        trajectory_cost: cost of one instrumental phase, in evaluation runs, from 0.
        target: power wanted.
        alpha: largest p that counts as drift, uncorrected.
        rng: source of the simulated experiments; None takes the fixed default seed.

    Raises:
        ValueError: a negative cost, or as in `seeds_needed`.
    """
    if not (math.isfinite(trajectory_cost) and trajectory_cost >= 0.0):
        raise ValueError(
            f"trajectory_cost {trajectory_cost!r} is no cost; allowed: a number from 0, in evaluation runs"
        )
    random = generator(rng)
    rule = math.sqrt(trajectory_cost * (1.0 - model.icc) / model.icc) if model.icc > 0.0 else 20.0
    plans = []
    for n_branches in range(1, min(20, max(2, math.ceil(2.0 * rule))) + 1):
        plan = seeds_needed(model, n_branches=n_branches, target=target, alpha=alpha, rng=random)
        plans.append(replace(plan, cost=plan.n_clusters * (trajectory_cost + n_branches)))
    # A plan that falls short is worse than any that does not, whatever it costs.
    return min(plans, key=lambda plan: (bool(plan.reason), plan.cost, plan.n_runs))


def split_plans(n_runs: int, model: DriftModel, *, rng: np.random.Generator | None = None) -> tuple[Plan, ...]:
    """Every even split of so many runs between trajectories and branches, with its power at p <= .05.

    Args:
        n_runs: evaluation runs in all.
        model: expected drift, spread and icc.
        rng: source of the simulated experiments; None takes the fixed default seed.

    Returns:
        One plan for each number of trajectories that divides `n_runs`, fewest trajectories first; the first, with one
        trajectory, has no power over trajectories at all.

    Raises:
        ValueError: fewer than 1 run.
    """
    if n_runs < 1:
        raise ValueError(f"n_runs {n_runs} is no number of runs; allowed: at least 1")
    random = generator(rng)
    plans = []
    for n_clusters in (k for k in range(1, n_runs + 1) if n_runs % k == 0):
        n_branches = n_runs // n_clusters
        power = sign_flip_power(n_clusters, model, n_branches=n_branches, rng=random)
        plans.append(Plan(n_clusters, n_branches, power, float(n_runs)))
    return tuple(plans)


def cluster_mean_sd(model: DriftModel, n_branches: int) -> float:
    """Spread of the mean of the branches of one trajectory around the drift of all trajectories."""
    return model.sd * math.sqrt(model.icc + (1.0 - model.icc) / n_branches)


def one_trajectory_coverage(n_branches: int, icc: float, *, level: float = LEVEL) -> float:
    """How often a naive interval of the branches of one trajectory holds the mean over all trajectories.

    For normal d the interval's centre has variance icc + (1 - icc) / m, while its width is made from (1 - icc) / m, so
    that the coverage is P(|T| < t sqrt(((1 - icc) / m) / (icc + (1 - icc) / m))) with T Student's t of m - 1 degrees of
    freedom.

    Args:
        n_branches: runs that branch from the trajectory, at least 2.
        icc: share of the variance that lies between trajectories, 0 up to, but not including, 1.
        level: what the naive interval claims.

    Raises:
        ValueError: fewer than 2 branches, or an impossible icc or level.

    >>> [round(one_trajectory_coverage(20, icc), 2) for icc in (0.1, 0.3, 0.6)]
    [0.74, 0.49, 0.29]
    """
    check_level(level)
    if n_branches < 2 or not 0.0 <= icc < 1.0:
        raise ValueError(f"{n_branches} branches with icc {icc!r}: allowed: at least 2, and an icc from 0 to below 1")
    within = (1.0 - icc) / n_branches
    shrunk = float(stats.t.ppf((1.0 + level) / 2.0, n_branches - 1)) * math.sqrt(within / (icc + within))
    return 1.0 - 2.0 * float(stats.t.sf(shrunk, n_branches - 1))


def _sign_flip_p_of_rows(rows: FloatArray, rng: np.random.Generator) -> FloatArray:
    """One-sided sign-flip p of each row: many experiments under the same sign patterns, which costs one product."""
    n = rows.shape[1]
    exact = n <= _PATTERNS_EXACT_MOST
    signs = sign_patterns(n) if exact else 2.0 * rng.integers(0, 2, size=(_PATTERNS, n)) - 1.0
    sums = rows.sum(axis=1)
    slack = 1e-10 * np.abs(rows).sum(axis=1)
    reached = np.zeros(len(rows))
    for part in np.array_split(signs, math.ceil(len(signs) / 256)):
        reached += (rows @ part.T >= (sums - slack)[:, None]).sum(axis=1)
    return reached / len(signs) if exact else (reached + 1.0) / (_PATTERNS + 1.0)
