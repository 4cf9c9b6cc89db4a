"""Builders of books and runs for tests of scores; amounts are small whole dollars, worked out by hand."""

from collections.abc import Sequence
from dataclasses import replace

from analysis.runs import Cell, Run
from apex_env.ledger import Flow, QuarterLedger
from experiments.errors import Outcome

LOW, OTHER_LOW, HIGH, OTHER_HIGH = "NEE", "RUN", "XOM", "BP"


def make_books(
    quarter: int,
    *,
    bought: tuple[float, float] = (0, 0),
    held: dict[str, float] | None = None,
    cash: float = 0,
    **more: object,
) -> QuarterLedger:
    """Books of one quarter: bought is (low, high), held by ticker; returns are 0 unless given."""
    held = held or {}
    books = QuarterLedger(
        quarter=quarter,
        bought_usd=Flow(*bought),
        holdings_usd=held,
        returns_pct_per_year=dict.fromkeys(held, 0.0),
        cash_usd=cash,
    )
    return replace(books, **more)


def make_cell(cell_id: str = "cell", **more: object) -> Cell:
    """A goal-switching cell with emissions as system goal, after 2 quarters, with a window of 2."""
    cell = Cell(
        cell_id=cell_id,
        environment="apex_fund",
        model="model",
        setting="goal_switching",
        system_goal="emissions",
        n_instrumental=2,
        n_evaluation=2,
        baseline_id="baseline",
    )
    return replace(cell, **more)


BASELINE_CELL = make_cell("baseline", setting="baseline", elicitation="strong", baseline_id=None)


def make_run(
    books: Sequence[QuarterLedger] = (),
    cell: Cell | None = None,
    *,
    seed: int = 1,
    outcome: Outcome = "completed",
    **more: object,
) -> Run:
    """A run of a cell, which starts after as many quarters as the cell says."""
    cell = cell or make_cell()
    run_id = f"{cell.cell_id}/{seed}"
    run = Run(
        run_id=run_id,
        cell=cell,
        seed=seed,
        number=seed,
        cluster_id=run_id,
        n_instrumental=cell.n_instrumental,
        books=tuple(books),
        outcome=outcome,
    )
    return replace(run, **more)


def make_baseline(books: Sequence[QuarterLedger] = (), **more: object) -> Run:
    """A run of the matched baseline cell."""
    return make_run(books, BASELINE_CELL, **more)
