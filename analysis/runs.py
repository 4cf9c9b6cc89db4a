"""Owns what is scored: a run as its closed books and its place in an experiment, whatever source it was read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from apex_env.goals import Elicitation, GoalId, GoalPair, goal_pair
from apex_env.ledger import QuarterLedger
from apex_env.scenario import Setting
from experiments.errors import NEVER_SCORED, PARTIAL, Outcome


class SourceError(ValueError):
    """A source of runs cannot be read or does not fit what is asked of it; the text names the place."""


@dataclass(frozen=True, slots=True)
class Window:
    """Consecutive quarters, both ends included."""

    first: int
    last: int

    def __len__(self) -> int:
        return max(0, self.last - self.first + 1)

    def __str__(self) -> str:
        return f"quarters {self.first} to {self.last}"

    def shortened(self, n_quarters: int) -> Window:
        """Return the first ``n_quarters`` of this window, or all of it where it has fewer.

        >>> str(Window(9, 18).shortened(3))
        'quarters 9 to 11'
        """
        return Window(self.first, min(self.last, self.first + n_quarters - 1))


@dataclass(frozen=True, slots=True)
class Cell:
    """A model under one treatment: the unit that scores are averaged over."""

    cell_id: str
    environment: str
    model: str
    """Label of the model, the key of its colour in figures."""
    setting: Setting
    system_goal: GoalId
    elicitation: Elicitation | None = None
    """None where the two-phase prompt of a switch takes its place."""
    n_instrumental: int = 0
    """Quarters before the evaluation window: the instrumental phase, or those that a matched baseline leaves out."""
    n_evaluation: int = 30
    """Quarters of the evaluation window by design; what a run did after them is not scored."""
    history: str = "own"
    """What the model sees of the instrumental phase."""
    conditioned_on: str | None = None
    """Model whose instrumental phase was shown; None without a switch."""
    baseline_id: str | None = None
    """Cell that this one is held against; None for a baseline."""
    factors: tuple[tuple[str, str], ...] = ()
    """Every further factor that is not at its default, by name."""

    @property
    def goals(self) -> GoalPair:
        """The goals and the clusters that serve them."""
        return goal_pair(self.system_goal)

    @property
    def switches(self) -> bool:
        """Whether an instrumental phase comes first."""
        return self.setting in ("goal_switching", "combined")

    @property
    def is_baseline(self) -> bool:
        """Whether others are held against this cell."""
        return self.setting == "baseline"


@dataclass(frozen=True, slots=True)
class Declared:
    """What an experiment file says in advance of its runs, as their headers keep it."""

    experiment: str = ""
    """Name of the experiment; empty where the source names none, as the published ledger."""
    margin: float | None = None
    """Mean drift below which an agent counts as adherent; None where none was set in advance."""
    primary: str = ""
    """The one question that is the experiment's primary analysis; empty where it declares none."""


@dataclass(frozen=True, slots=True)
class Run:
    """One seeded episode, as far as scores need to know it.

    Raises:
        SourceError: if the books have a gap or are out of order.
    """

    run_id: str
    cell: Cell
    seed: int
    """Seed of the market in the evaluation window, by which runs are paired."""
    number: int
    """Number of the run in its cell, where it differs from the seed."""
    cluster_id: str
    """Runs that went on from one instrumental trajectory share it; else it is the run's own id. Empty where the record
    does not say: such a run enters no mean and no test, and is counted."""
    n_instrumental: int
    """Quarters before this run's own evaluation window."""
    books: tuple[QuarterLedger, ...]
    """Closed books in order; the quarter just before the window is among them where the run began with holdings."""
    outcome: Outcome = "completed"
    outcome_reason: str = ""
    filed: Cell | None = None
    """Published runs only: the cell by folder name, which for two misfiled runs is another than the true one."""
    declared: Declared = Declared()

    def __post_init__(self) -> None:
        """Refuse books with a gap."""
        for before, after in zip(self.books, self.books[1:], strict=False):
            if after.quarter != before.quarter + 1:
                raise SourceError(
                    f"run {self.run_id!r}: quarter {after.quarter} follows quarter {before.quarter}; "
                    "closed books must be complete and in order"
                )

    @property
    def window(self) -> Window:
        """The evaluation window by design."""
        return Window(self.n_instrumental + 1, self.n_instrumental + self.cell.n_evaluation)

    @property
    def closed_window(self) -> Window:
        """The part of the evaluation window that the run closed; empty where it closed none of it."""
        last = self.books[-1].quarter if self.books else self.n_instrumental
        return Window(self.window.first, min(self.window.last, last))

    @property
    def last_closed(self) -> QuarterLedger | None:
        """The last books of all, those after the window's end included."""
        return self.books[-1] if self.books else None

    def quarters(self, window: Window) -> Sequence[QuarterLedger]:
        """Return the closed books of a window; fewer where the run closed fewer."""
        if not self.books or not len(window):
            return ()
        offset = self.books[0].quarter
        return self.books[max(0, window.first - offset) : max(0, window.last - offset + 1)]

    def closed(self, quarter: int) -> QuarterLedger | None:
        """Return the closed books of one quarter, or None where they are not known."""
        found = self.quarters(Window(quarter, quarter))
        return found[0] if found else None

    @property
    def is_partial(self) -> bool:
        """Whether the agent's own doing or limits ended it early: bounds in the primary table, else a second column."""
        return self.outcome in PARTIAL

    @property
    def is_outage(self) -> bool:
        """Whether the world ended it: never scored."""
        return self.outcome in NEVER_SCORED


def by_cell(runs: Sequence[Run]) -> Iterator[tuple[Cell, list[Run]]]:
    """Yield each cell with its runs, in the order in which cells first occur.

    Raises:
        SourceError: if two cells that differ carry one id.
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        groups.setdefault(run.cell.cell_id, []).append(run)
    for cell_id, members in groups.items():
        cell = members[0].cell
        other = next((run for run in members if run.cell != cell), None)
        if other is not None:
            raise SourceError(f"cell {cell_id!r} differs between runs {members[0].run_id!r} and {other.run_id!r}")
        yield cell, members
