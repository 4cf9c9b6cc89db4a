"""Owns `apex power`: seeds and trajectories that a planned experiment needs, with a spread given or measured."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from analysis.stats.power import DriftModel, Plan

_ICCS = (0.1, 0.3, 0.6)


def main(argv: Sequence[str]) -> int:
    """Say how many runs a drift needs; exit code 0 done, 1 no plan reaches the target, 2 bad input."""
    parser = argparse.ArgumentParser(
        prog="apex power",
        description="Seeds that show a mean drift with some power, by simulation of the one-sided sign-flip test; how "
        "to split runs between instrumental trajectories and branches; what the branches of one trajectory can show.",
    )
    parser.add_argument("--drift", type=float, required=True, metavar="D", help="mean signed drift to be found, 0 to 1")
    spread = parser.add_mutually_exclusive_group(required=True)
    spread.add_argument("--sd", type=float, help="spread of signed drift between runs of one cell")
    spread.add_argument("--results", metavar="SOURCE", help="records or ledger from which spread and ICC are measured")
    parser.add_argument("--icc", type=float, help="share of the variance that lies between trajectories, 0 to below 1")
    parser.add_argument("--score", choices=("actions", "inaction"), default="actions", help="whose spread is measured")
    parser.add_argument("--power", type=float, default=0.8, help="power wanted (default: .8)")
    parser.add_argument(
        "--alpha",
        type=float,
        default=0.05,
        help="largest p that counts (default: .05); divide by the size of the family to plan for Holm's correction",
    )
    parser.add_argument("--runs", type=int, default=20, help="evaluation runs of a cell to be split (default: 20)")
    parser.add_argument(
        "--trajectory-cost",
        type=float,
        default=1.0,
        metavar="C",
        help="cost of one instrumental phase in evaluation runs (default: 1; a phase of 64 quarters that serves six "
        "lengths with windows of 10 quarters: 64 / 10 / 6 = 1.1)",
    )
    try:
        options = parser.parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    from analysis.runs import SourceError

    try:
        return _plan(options)
    except (ValueError, SourceError) as error:
        print(f"apex power: {error}", file=sys.stderr)
        return 2


def measured(source: str, score: str) -> tuple[float, float, list[str]]:
    """Return spread and ICC of signed drift within the cells of a source, pooled, and what they rest on.

    Args:
        source: folder of records, or published ledger.
        score: ``actions`` or ``inaction``.

    Returns:
        The spread, the ICC (NaN where no cell has several trajectories) and a line each on how they were measured.

    Raises:
        analysis.runs.SourceError: for a source that cannot be read, or where no cell has two scored runs.
    """
    from analysis.conventions import CONVENTIONS
    from analysis.pairing import pair_runs
    from analysis.report.cell_runs import cells_of
    from analysis.run_table import runs_table
    from analysis.runs import SourceError
    from analysis.sources import read_source
    from analysis.stats.clusters import cluster_icc

    convention = CONVENTIONS["paper"]
    read = read_source(source)
    if not read.runs:
        raise SourceError("; ".join([f"{source}: there is no run in it", *read.notes]))
    cells = [cell for cell in cells_of(runs_table(pair_runs(read.runs), convention), convention) if cell.figure]
    samples = [cell.sample("actions" if score == "actions" else "inaction") for cell in cells]
    spreads = [(one.values.size - 1, float(one.values.var(ddof=1))) for one in samples if one.values.size > 1]
    if not spreads:
        raise SourceError(f"{source}: no cell has two scored runs, so no spread can be measured")
    sd = math.sqrt(sum(n * variance for n, variance in spreads) / sum(n for n, _ in spreads))
    told = [
        f"sd {sd:.3f} of d_{score}, pooled over {len(spreads)} cells ({min(spreads, key=lambda s: s[1])[1] ** 0.5:.3f} "
        f"to {max(spreads, key=lambda s: s[1])[1] ** 0.5:.3f})"
    ]
    iccs = [cluster_icc(one.values, one.clusters).value for one in samples if len(set(one.clusters)) < one.values.size]
    known = [icc for icc in iccs if not math.isnan(icc)]
    if not known:
        told.append("ICC not measured: no cell has runs from several shared trajectories that differ")
        return sd, math.nan, told
    icc = min(0.95, max(0.0, sum(known) / len(known)))
    told.append(f"ICC {icc:.2f}, mean of {len(known)} cells with shared trajectories (held to 0 to .95)")
    return sd, icc, told


def _plan(options: argparse.Namespace) -> int:
    from analysis.stats.power import DriftModel, seeds_needed

    sd, icc, told = (options.sd, math.nan, []) if options.results is None else measured(options.results, options.score)
    if options.icc is not None:
        icc = options.icc
    if options.runs < 1:
        raise ValueError(f"--runs {options.runs} is no number of runs: at least 1")
    if options.drift > 1.0:
        raise ValueError(f"--drift {options.drift} is no drift: above 0, at most 1")
    if not 0.0 < options.power < 1.0:
        raise ValueError(f"--power {options.power} is no power: above 0 and below 1")
    plan = seeds_needed(DriftModel(options.drift, sd), target=options.power, alpha=options.alpha)
    print(*told, sep="\n", end="\n" if told else "")
    print(
        f"drift {options.drift:g}, sd {sd:.3g}, one-sided sign-flip test at {options.alpha:g}, power {options.power:g}"
    )
    print(f"independent runs (each with its own trajectory, or no switch): {_needed(plan)}")
    assumed = _ICCS if math.isnan(icc) else (icc,)
    for one in assumed:
        print(f"\nICC {one:g}{' (assumed)' if math.isnan(icc) else ''}")
        print(*_of_trajectories(DriftModel(options.drift, sd, one), options), sep="\n")
    return 1 if plan.reason else 0


def _of_trajectories(model: DriftModel, options: argparse.Namespace) -> Iterator[str]:
    from analysis.stats.power import cheapest_plan, one_trajectory_coverage, split_plans

    for plan in split_plans(options.runs, model):
        split = f"{plan.n_clusters:>3} trajectories x {plan.n_branches:<3} branches"
        yield f"  {split}: power {plan.power.value:.2f} at .05"
    cost = options.trajectory_cost
    best = cheapest_plan(model, trajectory_cost=cost, target=options.power, alpha=options.alpha)
    yield f"  least cost with a phase at {cost:g} evaluation runs: {_needed(best)}, cost {best.cost:g}"
    if options.runs > 1 and model.icc < 1.0:
        covers = one_trajectory_coverage(options.runs, model.icc)
        yield (
            f"  {options.runs} branches of one trajectory: no power over trajectories; a 95 % interval that takes them "
            f"as independent holds the mean over trajectories in {covers:.0%} of experiments"
        )


def _needed(plan: Plan) -> str:
    if plan.reason:
        return plan.reason
    branches = f" x {plan.n_branches} branches" if plan.n_branches > 1 else ""
    return f"{plan.n_clusters}{branches} (power {plan.power.value:.2f}, {plan.power.low:.2f} to {plan.power.high:.2f})"
