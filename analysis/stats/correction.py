"""Corrects the p values of a declared family of tests, and keeps what a reader must know of the family."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy import stats

from analysis.stats.estimate import TestResult

Correction = Literal["holm", "bh"]
"""`holm`: error of the whole family, within a figure; `bh`: false discovery rate, across a sweep."""

_NAMES = {"holm": "Holm", "bh": "Benjamini-Hochberg"}


@dataclass(frozen=True, slots=True)
class Family:
    """Tests that are corrected together, named before the data were seen."""

    name: str
    """What the tests have in common, such as `figure 3: is there drift`."""
    correction: Correction
    """How their p values were corrected."""
    size: int
    """Tests declared, those that could not be made among them."""
    p: Mapping[str, float]
    """The p value of each test by label, uncorrected; NaN where the test could not be made."""
    p_adjusted: Mapping[str, float]
    """The corrected p values by label; NaN where the test could not be made."""

    @property
    def undefined(self) -> tuple[str, ...]:
        """Labels of the tests that could not be made."""
        return tuple(label for label, p in self.p.items() if math.isnan(p))

    def describe(self) -> str:
        """One line for a caption: family, size, correction, and tests that could not be made."""
        line = f"{self.name}: {self.size} {'test' if self.size == 1 else 'tests'}, {_NAMES[self.correction]}"
        if self.undefined:
            line += f"; {len(self.undefined)} could not be made, counted in the correction"
        return line


def correct_family(name: str, tests: Mapping[str, TestResult | float], *, correction: Correction = "holm") -> Family:
    """Corrects the p values of a family.

    A test that could not be made keeps NaN, and counts as p = 1 for the others: the family is as large as it was
    declared, so that a missing cell can never make another one significant.

    Sources: Holm (1979) by `statsmodels.stats.multitest.multipletests`; Benjamini and Hochberg (1995) by
    `scipy.stats.false_discovery_control`.

    Args:
        name: what the tests have in common.
        tests: results or bare p values by label, in the order of the table.
        correction: see `Correction`.

    Raises:
        ValueError: a p value outside [0, 1] or an unknown correction.

    >>> family = correct_family("figure 2: is there drift", {"mini": 0.01, "large": 0.04})
    >>> family.describe()
    'figure 2: is there drift: 2 tests, Holm'
    >>> {label: round(p, 4) for label, p in family.p_adjusted.items()}
    {'mini': 0.02, 'large': 0.04}
    """
    if correction not in _NAMES:
        raise ValueError(f"correction {correction!r} is unknown; allowed: {', '.join(_NAMES)}")
    p = {label: test.p if isinstance(test, TestResult) else float(test) for label, test in tests.items()}
    for label, value in p.items():
        if not (math.isnan(value) or 0.0 <= value <= 1.0):
            raise ValueError(f"p value {value!r} of {label!r} is no probability; allowed: 0 to 1, NaN for no test")
    if not p:
        return Family(name, correction, 0, {}, {})
    given = np.array(list(p.values()))
    counted = np.where(np.isnan(given), 1.0, given)
    if correction == "holm":
        # Imported late: statsmodels takes longer to load than all else that a command needs.
        from statsmodels.stats.multitest import multipletests

        corrected = np.asarray(multipletests(counted, method="holm")[1], dtype=np.float64)
    else:
        corrected = np.asarray(stats.false_discovery_control(counted, method="bh"), dtype=np.float64)
    corrected = np.where(np.isnan(given), np.nan, corrected)
    return Family(name, correction, len(p), p, {label: float(value) for label, value in zip(p, corrected, strict=True)})
