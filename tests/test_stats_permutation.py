"""Counting permutations: halves against whole lists, tolerance, and blocks that fit into memory."""

import math
from itertools import combinations

import numpy as np
import pytest

from analysis.stats.permutation import RESAMPLES, describe, permutation_blocks, sign_flip_p, sign_patterns, split_p


def test_sign_patterns_are_all_and_different() -> None:
    patterns = sign_patterns(6)
    assert patterns.shape == (64, 6)
    assert len({tuple(row) for row in patterns}) == 64
    assert sign_patterns(0).shape == (1, 0)


def test_halves_of_unequal_size_count_the_whole() -> None:
    rng = np.random.default_rng(1)
    d = rng.normal(0.1, 0.5, 11)
    sums = sign_patterns(11) @ d
    p, exact = sign_flip_p(d, alternative="greater", rng=rng)
    assert exact
    assert p == (sums >= d.sum() - 1e-12).mean()


@pytest.mark.parametrize(("n_a", "n_b"), [(1, 9), (9, 1), (3, 6), (5, 5)])
def test_splits_of_any_sizes_count_the_whole(n_a: int, n_b: int) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.3, 1.0, n_a), rng.normal(0.0, 1.0, n_b)
    pooled = np.concatenate([a, b])
    differences = []
    for chosen in combinations(range(n_a + n_b), n_a):
        inside = pooled[list(chosen)].sum()
        differences.append(inside / n_a - (pooled.sum() - inside) / n_b)
    observed = a.mean() - b.mean()
    for alternative, reached in (
        ("greater", np.array(differences) >= observed - 1e-12),
        ("less", np.array(differences) <= observed + 1e-12),
        ("two-sided", np.abs(differences) >= abs(observed) - 1e-12),
    ):
        p, exact = split_p(a, b, alternative=alternative, rng=rng)  # type: ignore[arg-type]
        assert exact
        assert p == pytest.approx(reached.mean())


def test_equal_means_are_never_extreme() -> None:
    rng = np.random.default_rng(3)
    assert split_p(np.array([0.1, 0.3]), np.array([0.2, 0.2]), alternative="two-sided", rng=rng)[0] == 1.0
    assert sign_flip_p(np.array([0.1, -0.1]), alternative="two-sided", rng=rng)[0] == 1.0


def test_random_orders_are_permutations_in_the_number_promised() -> None:
    n_orders = 0
    for block in permutation_blocks(300, np.random.default_rng(4)):
        assert block.nbytes <= 2**24
        assert (np.sort(block[::997], axis=1) == np.arange(300)).all()
        n_orders += len(block)
    assert n_orders == RESAMPLES


def test_random_first_places_are_uniform() -> None:
    first = np.concatenate([block[:, 0] for block in permutation_blocks(5, np.random.default_rng(5))])
    shares = np.bincount(first) / RESAMPLES
    assert shares == pytest.approx([0.2] * 5, abs=5.0 * math.sqrt(0.16 / RESAMPLES))


def test_a_method_says_how_its_distribution_was_made() -> None:
    assert describe("sign-flip", True) == "sign-flip, exact"
    assert describe("sign-flip", False, resamples=999) == "sign-flip, 999 random permutations"
