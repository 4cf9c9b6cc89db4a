"""The frozen values that every statistic returns, so that no number travels without its interval and its caveat."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

Alternative = Literal["greater", "less", "two-sided"]
"""`greater`: the statistic is larger than it would be without an effect; `two-sided`: further from its null centre."""

ONE_TRAJECTORY = "conditional on one trajectory"
"""Reason of an estimate whose runs all branch from one instrumental trajectory: nothing is known of the others."""

LEVEL = 0.95
"""Confidence level wherever a caller names none."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, or NaN with the reason why it has none."""

    value: float
    """The point estimate; NaN where it is undefined."""
    low: float
    """Lower end of the interval; NaN where there is none."""
    high: float
    """Upper end of the interval; NaN where there is none."""
    n: int
    """Values used: runs, pairs or cells, undefined ones left out."""
    n_clusters: int | None
    """Clusters among them; None where every value was taken as independent."""
    level: float
    """Confidence level of the interval, two-sided, such as 0.95."""
    method: str
    """How the interval was made, in words that a figure's caption can print."""
    reason: str = ""
    """Why something is NaN, left out or conditional; empty where there is nothing to say."""

    @property
    def has_interval(self) -> bool:
        """Whether both ends are numbers."""
        return not (math.isnan(self.low) or math.isnan(self.high))


@dataclass(frozen=True, slots=True)
class TestResult:
    """The outcome of one hypothesis test, uncorrected for any other."""

    __test__: ClassVar[bool] = False  # pytest would collect the class by its name

    statistic: float
    """The test statistic; NaN where it is undefined."""
    p: float
    """The p value; NaN where the test cannot be made."""
    method: str
    """The test in words, with the number of resamples where it was not enumerated."""
    alternative: Alternative
    """Against what the null hypothesis was tested."""
    n: int
    """Independent units used: pairs, runs of all groups together, blocks or clusters."""
    exact: bool
    """Whether p comes from the whole permutation distribution and not from a sample or an approximation of it."""
    reason: str = ""
    """Why p is NaN, what was left out, or how small p can get; empty where there is nothing to say."""


def join_reasons(*reasons: str) -> str:
    """Joins the reasons that are not empty.

    >>> join_reasons("", "one run", "2 of 3 values undefined")
    'one run; 2 of 3 values undefined'
    """
    return "; ".join(reason for reason in reasons if reason)


def check_level(level: float) -> None:
    """Raises ValueError unless `level` is strictly between 0 and 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level {level!r} is no confidence level; allowed: above 0 and below 1, such as 0.95")


def check_alternative(alternative: str) -> None:
    """Raises ValueError unless `alternative` is one of `greater`, `less` and `two-sided`."""
    if alternative not in ("greater", "less", "two-sided"):
        raise ValueError(f"alternative {alternative!r} is unknown; allowed: 'greater', 'less', 'two-sided'")
