"""Owns what the quality table has to know of an imported run; small enough to cross from one process to another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.published.calls import UNPARSEABLE, Outcome
from analysis.published.convert import ImportedRun, cluster_of, decisions_sha256, history_sha256, trajectory_of
from analysis.published.names import FileName


@dataclass(frozen=True, slots=True)
class Failure:
    """A checkpoint that was not imported, and why."""

    file: str
    code: str
    """Stable name of the reason; see `analysis.published.inert.CheckpointError`."""
    text: str


@dataclass(frozen=True, slots=True)
class Facts:
    """An imported run, without what was said in it."""

    file: str
    sha256: str
    name: FileName
    run: int
    model_id: str
    n_quarters: int
    n_instrumental: int
    phase_seed: int | None
    known_from: int
    cluster_id: str
    trajectory: tuple[str, ...]
    """Hash of the books up to each quarter of the instrumental phase."""
    history_sha256: str | None
    decisions_sha256: str | None
    is_dead: bool
    dead_quarters: tuple[int, ...]
    """Quarters of the evaluation in which the API gave no answer at all."""
    forced_quarters: tuple[int, ...]
    """Other quarters that the harness closed: at its turn limit, or because the API failed in the middle."""
    outcomes: Mapping[str, int]
    """Calls by outcome; those whose arguments are no JSON at all are `unparseable_arguments`."""
    booked_by_listing_usd: tuple[float, ...]
    n_pressed: int
    """Quarters of the evaluation whose briefing carries mails or requests."""
    missing_keys: tuple[str, ...]
    has_system_prompt: bool
    n_other_system_prompts: int
    lost_briefings: tuple[int, ...]
    strange_market: tuple[int, ...]
    """Quarters whose income, listing or closure is not that of the market."""
    disagreements: tuple[str, ...]
    """Quarters whose replay does not agree with the checkpoint, in words."""
    oddities: tuple[str, ...]

    @property
    def n_evaluation(self) -> int:
        """Quarters of the evaluation."""
        return self.n_quarters - self.n_instrumental


def facts_of(run: ImportedRun) -> Facts:
    """Return what the quality table has to know of a run."""
    told = [quarter for quarter in run.quarters if quarter.talk is not None]
    dead = [q.books.quarter for q in run.evaluation if q.talk is not None and q.talk.dead]
    outcomes = Counter(_kind(outcome) for quarter in told for turn in quarter.outcomes for outcome in turn)
    return Facts(
        file=run.file,
        sha256=run.sha256,
        name=run.name,
        run=run.run,
        model_id=run.model_id,
        n_quarters=len(run.quarters),
        n_instrumental=run.n_instrumental,
        phase_seed=run.phase.phase_seed,
        known_from=run.talks.known_from,
        cluster_id=cluster_of(run),
        trajectory=trajectory_of(run),
        history_sha256=history_sha256(run),
        decisions_sha256=decisions_sha256(run),
        is_dead=run.is_dead,
        dead_quarters=tuple(dead),
        forced_quarters=tuple(q.books.quarter for q in told if q.books.forced and q.books.quarter not in dead),
        outcomes=dict(outcomes),
        booked_by_listing_usd=tuple(usd for quarter in told for usd in quarter.booked_by_listing_usd),
        n_pressed=sum(q.talk is not None and q.talk.pressed for q in run.evaluation),
        missing_keys=run.missing_keys,
        has_system_prompt=run.system_prompt is not None,
        n_other_system_prompts=len(run.other_system_prompts),
        lost_briefings=tuple(q.books.quarter for q in told if q.talk is not None and q.talk.briefing is None),
        strange_market=_strange_market(run),
        disagreements=tuple(f"quarter {q.books.quarter}: {q.disagreement}" for q in run.quarters if q.disagreement),
        oddities=run.oddities,
    )


def _kind(outcome: Outcome) -> str:
    return outcome.why if outcome.why == UNPARSEABLE else outcome.code


def _strange_market(run: ImportedRun) -> tuple[int, ...]:
    strange = set(run.phase.strange_incomes)
    for quarter in run.quarters:
        ours = run.phase.market.quarter(quarter.books.quarter)
        listed = [stock.ticker for stock in quarter.listing] == [stock.ticker for stock in ours.listing]
        if quarter.books.active != ours.active or not listed:
            strange.add(quarter.books.quarter)
    return tuple(sorted(strange))
