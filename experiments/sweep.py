"""Owns many runs at once: phases before their children, one concurrency limit, a clean stop, and what came of it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from apex_env.texts import Corpus, load_corpus
from experiments.chat import Model
from experiments.environments import build_firm
from experiments.errors import Cancelled, RecordError, RunLocked, SweepStop
from experiments.glance import PriceOf, unknown_price
from experiments.grid import plan_phases
from experiments.interview import Interview, is_due_at_end
from experiments.limits import SweepLimits
from experiments.locking import Claims
from experiments.parents import cut_at
from experiments.progress import Progress
from experiments.rebuild import Cut, rebuild
from experiments.record import Record, Sync, read_record
from experiments.rollout import Dialogue
from experiments.run_spec import ModelConfig, RunSpec
from experiments.runner import NOT_INTERVIEWED, Job, as_on_disk, is_finished, n_closed, play, record_path
from experiments.watch import SweepWatch, interrupts
from experiments.yoking import DonorUnfinished, Dose, read_dose

LOCKED_RETRY_S: Final = 1.0
"""Pause before a phase that another process writes is looked at again."""

_LEFT: Final = ("provider_error agent_error cancelled locked unreachable refused_record " + NOT_INTERVIEWED).split()
"""Outcomes after which the same command has something to do."""


@dataclass(frozen=True, slots=True)
class Sweep:
    """A planned sweep: its runs, and how they are to be played."""

    root: Path
    """Folder of the experiment."""
    runs: Sequence[RunSpec]
    build_model: Callable[[ModelConfig], Model]
    concurrency: int = 16
    sync: Sync = "quarter"
    claims: Claims = "flock"
    corpus: Corpus | None = None
    notes: Mapping[str, Any] = field(default_factory=dict)
    interview: Interview = Interview()
    limits: SweepLimits = SweepLimits()
    price_of: PriceOf = unknown_price


@dataclass(slots=True)
class Report:
    """What came of a sweep."""

    outcomes: Counter[str] = field(default_factory=Counter)
    """Runs by outcome; `locked`: another process has it, `unreachable`: its phase did not get that far."""
    problems: list[str] = field(default_factory=list)
    """What the user has to look at, a line each."""
    stopped: str = ""
    """Why the sweep ended early; empty where it did not."""
    limited: Counter[str] = field(default_factory=Counter)
    """Runs and phases that ended at a limit of their own, by its name."""

    @property
    def complete(self) -> bool:
        """Whether nothing is left to do."""
        return not any(self.outcomes[name] for name in _LEFT)


async def run_sweep(sweep: Sweep, progress: Progress) -> Report:
    """Play all runs of a sweep that are not finished yet, and return what came of them.

    The first interrupt lets every running turn finish and ends cleanly; the second ends at once. Both can be gone on
    from with the same command. So can a sweep that has reached a limit, once that is raised.
    """
    watch, report = SweepWatch(sweep.root, progress, sweep.limits, sweep.price_of), Report()
    phases = {spec.run_id: spec for spec in plan_phases(sweep.runs)}
    children: dict[str, list[RunSpec]] = {run_id: [] for run_id in phases}
    alone: list[RunSpec] = []
    for run in sweep.runs:
        phase = run.phase_spec()
        (children[phase.run_id] if phase is not None else alone).append(run)
    todo: asyncio.Queue[tuple[RunSpec, Cut | None]] = asyncio.Queue()
    pending = _Pending(sweep, watch, report, children, todo, {run.run_id for run in sweep.runs})
    for spec in (*phases.values(), *alone):
        pending.put(spec)
    with interrupts(watch.stop):
        workers = [asyncio.ensure_future(pending.work()) for _ in range(max(1, sweep.concurrency))]
        finished = asyncio.ensure_future(todo.join())
        try:
            await asyncio.wait([finished, *workers], return_when=asyncio.FIRST_COMPLETED)
            for worker in workers:
                if worker.done():
                    worker.result()
        finally:
            for task in (finished, *workers):
                task.cancel()
            await asyncio.gather(finished, *workers, return_exceptions=True)
    report.stopped, report.limited = watch.stop.reason, watch.reached
    return report


@dataclass(slots=True)
class _Pending:
    """The runs that wait, and what the workers do with them."""

    sweep: Sweep
    watch: SweepWatch
    report: Report
    children: dict[str, list[RunSpec]]
    todo: asyncio.Queue[tuple[RunSpec, Cut | None]]
    left: set[str]
    """Runs that nothing has come of yet."""
    donees: dict[str, list[tuple[RunSpec, Cut | None]]] = field(default_factory=dict)
    """By the run whose dose they are to be dealt, the runs that wait for it."""

    def put(self, spec: RunSpec, cut: Cut | None = None) -> None:
        """Queue a run, once the run whose dose it is dealt has been played."""
        donor = spec.donor_spec()
        if donor is not None and donor.run_id in self.left:
            self.donees.setdefault(donor.run_id, []).append((spec, cut))
        else:
            self.todo.put_nowait((spec, cut))

    async def work(self) -> None:
        """Take runs from the queue until cancelled."""
        while True:
            spec, cut = await self.todo.get()
            try:
                outcome = await self._play(spec, cut)
                if spec.is_phase:
                    self._release_children(spec)
                else:
                    self._count(spec, outcome)
            finally:
                self.todo.task_done()

    def _count(self, spec: RunSpec, outcome: str) -> None:
        self.report.outcomes[outcome] += 1
        if outcome not in _LEFT:
            self.watch.progress.count_run()
        self.left.discard(spec.run_id)
        for waiting in self.donees.pop(spec.run_id, ()):
            self.todo.put_nowait(waiting)

    async def _play(self, spec: RunSpec, cut: Cut | None) -> str:
        """Play one run, and return its outcome or the reason that it was not played."""
        self.watch.check()
        while not self.watch.stop.reason:
            try:
                job = Job(
                    spec=spec,
                    root=self.sweep.root,
                    model=self.sweep.build_model(spec.model),
                    watch=self.watch.run(record_path(self.sweep.root, spec)),
                    sync=self.sweep.sync,
                    claims=self.sweep.claims,
                    corpus=self.sweep.corpus,
                    cut=cut or self._lent_cut(spec),
                    dose=self._dose(spec),
                    interview=self.sweep.interview,
                    fork=partial(self.sweep.build_model, spec.model),
                    notes=self.sweep.notes,
                )
                return await play(job)
            except RunLocked:
                if not spec.is_phase:
                    return "locked"
                await asyncio.sleep(LOCKED_RETRY_S)
            except SweepStop as error:
                self.watch.stop.ask(str(error))
                self.report.problems.append(f"{spec.run_id}: {error}")
                return "provider_error"
            except DonorUnfinished as error:
                self.report.problems.append(f"{spec.run_id}: {error}")
                return "unreachable"
            except RecordError as error:
                self.report.problems.append(str(error))
                return "refused_record"
            except Cancelled:
                return "cancelled"
            except OSError as error:
                self.watch.stop.ask(f"{record_path(self.sweep.root, spec)}: {error.strerror}")
                self.report.problems.append(self.watch.stop.reason)
                return "cancelled"
        finished = None if spec.is_phase else self._finished(spec)
        return "cancelled" if finished is None else finished.outcome

    def _release_children(self, phase: RunSpec) -> None:
        """Queue the runs that branch from a phase, as far as it got."""
        children = self.children[phase.run_id]
        unfinished = []
        for child in children:
            record = self._finished(child)
            if record is None:
                unfinished.append(child)
            else:
                self.watch.progress.count_found(n_closed(record, child))
                self._count(child, record.outcome)
        cuts = self._cuts(phase, {child.treatment.n_instrumental for child in unfinished}) if unfinished else {}
        for child in unfinished:
            cut = cuts.get(child.treatment.n_instrumental)
            if cut is not None:
                self.put(child, cut)
            else:
                self._count(child, "cancelled" if self.watch.stop.reason else "unreachable")

    def _finished(self, spec: RunSpec) -> Record | None:
        """Return the record of a run that needs no more playing, else None."""
        path = record_path(self.sweep.root, spec)
        if not path.exists():
            return None
        with suppress(RecordError):
            record = read_record(path)
            done = is_finished(record, spec) and not is_due_at_end(record, self.sweep.interview)
            if done and record.header["run_id"] == spec.run_id:
                return record
        return None

    def _lent_cut(self, spec: RunSpec) -> Cut | None:
        if spec.parent_record is None:
            return None
        return cut_at(spec.parent_record.path, spec.treatment.n_instrumental, self.sweep.corpus or load_corpus())

    def _dose(self, spec: RunSpec) -> Dose | None:
        """Return the dose of a new run that is dealt another one's; a run that has begun has it in its record."""
        donor, path = spec.donor_spec(), record_path(self.sweep.root, spec)
        if donor is None or (path.exists() and b"\n" in path.read_bytes()):
            return None
        return read_dose(record_path(self.sweep.root, donor), donor)

    def _cuts(self, phase: RunSpec, quarters: set[int]) -> dict[int, Cut]:
        try:
            record = read_record(record_path(self.sweep.root, phase))
            firm = build_firm(as_on_disk(phase, record), corpus=self.sweep.corpus)
            return rebuild(record, firm, Dialogue(), cuts=quarters)
        except RecordError as error:
            self.report.problems.append(str(error))
            return {}
