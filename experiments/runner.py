"""Owns one run on disk: start it, go on with it, or find that nothing is left to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from apex_env.firm import ApexFirm, Opening, market_state
from apex_env.ledger import QuarterLedger
from apex_env.texts import Corpus
from experiments.chat import Message, Model, Position, Prompt, Usage
from experiments.contexts import misfit
from experiments.environments import (
    build_firm,
    opening_from_json,
    opening_to_json,
    scenario_of,
    scenario_to_json,
)
from experiments.errors import PARTIAL, ContextLimit, RecordError, RunEnded, SweepStop, Tampered
from experiments.history import Ask, make_recipe, shown
from experiments.interview import Interview, is_due_at_end
from experiments.locking import Claims
from experiments.provenance import benchmark_version, provenance
from experiments.rebuild import Cut, messages_sha256, rebuild
from experiments.record import CANARY, SCHEMA, Record, RecordWriter, Sync
from experiments.rollout import Dialogue, Interviews, Loop, Watch, due_topics, run_episode
from experiments.run_spec import RunSpec, as_plain
from experiments.yoking import Dose, dose_in

FINAL: Final = ("completed", *PARTIAL)
"""Outcomes after which a run is not gone on with."""

NOT_INTERVIEWED: Final = "not_interviewed"
"""What `play` returns for a complete run whose last interview an outage or a limit has prevented."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run to be played, with all that it needs."""

    spec: RunSpec
    root: Path
    """Folder of the experiment."""
    model: Model
    watch: Watch
    sync: Sync = "quarter"
    claims: Claims = "flock"
    corpus: Corpus | None = None
    cut: Cut | None = None
    """Where the run branches from its phase."""
    dose: Dose | None = None
    """What a run with a yoked dose is dealt; its record keeps it, so that only a new one needs it."""
    interview: Interview = Interview()
    fork: Callable[[], Model] | None = None
    """Makes a model of its own for each question of an interview."""
    notes: Mapping[str, Any] | None = None
    """Facts of the experiment that analyses need, kept in the header: its name, margins set in advance."""

    @property
    def path(self) -> Path:
        """The run's record."""
        return record_path(self.root, self.spec)


def record_path(root: Path, spec: RunSpec) -> Path:
    """Return where a run's record stands."""
    return root / f"{spec.run_id}.jsonl"


def is_finished(record: Record, spec: RunSpec) -> bool:
    """Whether nothing is left to do for a run; a shared phase can be asked to go on for longer than before."""
    n_asked = spec.treatment.n_instrumental
    if spec.is_phase and last_closed(record) >= n_asked:
        # One that was killed just before its end still lacks that line; one that went on for longer does not need it.
        return record.outcome != "unfinished" or last_opened(record) > n_asked
    return record.outcome in (PARTIAL if spec.is_phase else FINAL)


def last_closed(record: Record) -> int:
    """Return the last quarter that a record closes, 0 where it closes none."""
    return max((line["quarter"] for line in record.of_type("closed")), default=0)


def last_opened(record: Record) -> int:
    """Return the last quarter that a record opens, 0 where it opens none."""
    return max((line["quarter"] for line in record.of_type("opened")), default=0)


def as_on_disk(spec: RunSpec, record: Record) -> RunSpec:
    """Return a shared phase as long as its record is, where that is longer than asked for; any other run as it is."""
    n_there = last_opened(record)
    if not spec.is_phase or n_there <= spec.treatment.n_instrumental:
        return spec
    return replace(spec, treatment=replace(spec.treatment, n_instrumental=n_there))


def n_closed(record: Record, spec: RunSpec) -> int:
    """Return how many of the quarters that a run is to play its record holds; a phase may have been played further."""
    planned = spec.treatment.n_instrumental if spec.is_phase else spec.treatment.n_evaluation or 0
    return min(planned, sum(1 for _ in record.of_type("closed")))


async def play(job: Job) -> str:
    """Play a run from wherever its record stands, and return its outcome.

    Raises:
        RunLocked: if another process writes the run.
        RecordError: if a record of the same name is of another run, damaged or changed.
        Cancelled: if a run that has begun before must not go on; its record is left as it is.
        SweepStop: if nothing of the sweep can succeed.
    """
    with RecordWriter(job.path, sync=job.sync, claims=job.claims) as writer:
        dialogue = Dialogue()
        existing = writer.existing
        if existing is None or (job.cut is not None and existing.branched is None):
            try:
                firm = await _begin(job, writer, dialogue)
            except RunEnded as error:
                writer.write(
                    "ended", outcome=error.outcome, reason=error.reason, quarter=job.spec.treatment.n_instrumental
                )
                return error.outcome
            except SweepStop as error:
                quarter = job.spec.treatment.n_instrumental
                writer.write("ended", outcome="provider_error", reason=str(error), quarter=quarter)
                raise
        else:
            check_same_run(existing, job.spec)
            job.watch.found(n_closed(existing, job.spec))
            if is_finished(existing, job.spec) and not is_due_at_end(existing, job.interview):
                if existing.lines[-1]["type"] == "closed":
                    # A phase that was killed just before its last line.
                    writer.write("ended", outcome="completed", reason="", quarter=last_closed(existing))
                return "completed" if job.spec.is_phase else existing.outcome
            job.watch.before_turn()
            firm = rebuilt(job, existing, dialogue)
            writer.write("resumed", quarter=firm.period, turn=dialogue.turn, provenance=provenance())
        treatment = job.spec.treatment
        loop = Loop(
            firm, job.model, writer, job.watch, job.spec.seed, treatment.turn_limit, interviews=_interviews(job, firm)
        )
        outcome = await run_episode(loop, dialogue, last_period=treatment.n_instrumental if job.spec.is_phase else None)
        return NOT_INTERVIEWED if outcome == "completed" and due_topics(loop, dialogue) else outcome


def rebuilt(job: Job, record: Record, dialogue: Dialogue) -> ApexFirm:
    """Return the firm as a run's record leaves it; the conversation is rebuilt in place.

    Raises:
        RecordError: if the record was changed, or its parent is not the one that it branched from.
    """
    branched, dose = record.branched, dose_in(record.header)
    yoked = None if dose is None else dose.items
    if branched is None:
        firm = build_firm(as_on_disk(job.spec, record), corpus=job.corpus, yoked=yoked)
    else:
        firm = build_firm(job.spec, corpus=job.corpus, yoked=yoked, opening=opening_from_json(branched["opening"]))
        if job.cut is not None:
            history = shown(branched["recipe"], job.cut.messages)
            if messages_sha256(history) != branched["history_sha256"]:
                raise Tampered(f"{record.path}, line 2: the parent {branched['parent']} is not what it was")
            dialogue.adopt(history)
    rebuild(record, firm, dialogue)
    return firm


def check_same_run(record: Record, spec: RunSpec) -> None:
    """Refuse to go on with a record whose outcome-affecting fields are not what is asked for.

    Raises:
        RecordError: with the fields that differ.
    """
    there, asked = _flat(record.header["identity"]), _flat(json.loads(json.dumps(spec.identity())))
    if there == asked:
        return
    names = sorted(name for name in {*there, *asked} if there.get(name) != asked.get(name))
    diff = "; ".join(f"{name}: there {there.get(name)!r}, asked {asked.get(name)!r}" for name in names)
    raise RecordError(f"{record.path}: this run was made with other settings, so it is not gone on with: {diff}")


async def _begin(job: Job, writer: RecordWriter, dialogue: Dialogue) -> ApexFirm:
    spec, cut = job.spec, job.cut
    opening = None if cut is None else _opening(spec, cut)
    dose = job.dose if writer.existing is None else dose_in(writer.existing.header)
    firm = build_firm(spec, corpus=job.corpus, yoked=None if dose is None else dose.items, opening=opening)
    if writer.existing is None:
        writer.write("run", **run_header(job, firm))
    else:
        check_same_run(writer.existing, spec)
    if cut is None or opening is None:
        return firm
    if spec.treatment.history == "summarised":
        _check_fits(job, firm, cut.messages)
    recipe = await make_recipe(
        spec.treatment.history, cut, seed=spec.seed, corpus=firm.corpus, ask=_asker(job, firm, cut)
    )
    history = shown(recipe, cut.messages)
    _check_fits(job, firm, history)
    writer.write(
        "branched",
        parent=cut.run_id,
        quarter=cut.quarter,
        parent_sha256=cut.sha256,
        opening=opening_to_json(opening),
        listing=market_state(firm.market.quarter(cut.quarter))["listing"],
        recipe=recipe,
        history_sha256=messages_sha256(history),
    )
    dialogue.adopt(history)
    return firm


def _interviews(job: Job, firm: ApexFirm) -> Interviews:
    """Return the questions of a run by topic, and the quarters that they are due in; a shared phase has none."""
    interview = job.interview
    if job.spec.is_phase:
        return Interviews()
    return Interviews(
        questions={topic: firm.corpus.interview[topic] for topic in interview.topics},
        periods=frozenset(job.spec.treatment.n_instrumental + quarter for quarter in interview.at),
        at_end=interview.at_end,
        fork=job.fork,
    )


def _opening(spec: RunSpec, cut: Cut) -> Opening:
    """Return what a run goes on from: its parent's books, or an empty fund where the portfolio is taken away."""
    if spec.treatment.portfolio == "kept":
        return cut.opening
    return replace(cut.opening, books=QuarterLedger(cut.quarter), bought_on_goal=(False, False))


def _asker(job: Job, firm: ApexFirm, cut: Cut) -> Ask:
    async def ask(messages: Sequence[Message]) -> tuple[str, Usage | None]:
        job.watch.before_turn()
        position = Position(job.spec.seed, cut.quarter, 0)
        prompt = Prompt(firm.system_prompt, firm.tools, messages, position, tool_use="none")
        completion = await job.model.complete(prompt)
        job.watch.after_turn(completion.usage)
        return completion.message.text, completion.usage

    return ask


def _check_fits(job: Job, firm: ApexFirm, history: Sequence[Message]) -> None:
    """Refuse a history that the model's context cannot hold, where its size is known.

    Raises:
        ContextLimit: with both numbers.
    """
    reason = misfit(job.spec.model, firm.system_prompt, history)
    if reason:
        raise ContextLimit(reason)


def run_header(job: Job, firm: ApexFirm) -> dict[str, Any]:
    """Return the fields of a record's first line."""
    spec = job.spec
    baseline = spec.baseline_spec()
    return {
        "schema": SCHEMA,
        "run_id": spec.run_id,
        "cell_id": spec.cell_id,
        "cluster_id": spec.cluster_id,
        "baseline_id": baseline.run_id if baseline is not None else None,
        "baseline_cell_id": baseline.cell_id if baseline is not None else None,
        "is_phase": spec.is_phase,
        "environment": {"name": firm.name, "version": firm.version},
        "benchmark_version": benchmark_version(),
        "identity": spec.identity(),
        "config": {
            "model": as_plain(spec.model),
            "treatment": as_plain(spec.treatment),
            "seed": spec.seed,
            "phase_seed": spec.phase_seed,
            "parent_model": None if spec.parent_model is None else as_plain(spec.parent_model),
        },
        "dose": None if job.dose is None else job.dose.to_json(),
        "scenario": scenario_to_json(scenario_of(spec)),
        "experiment": dict(job.notes or {}),
        "system_prompt": firm.system_prompt,
        "tools": [asdict(tool) for tool in firm.tools],
        "corpus_sha256": firm.corpus.digest,
        "canary": CANARY,
        "provenance": provenance(),
    }


def _flat(data: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in data.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = value
    return flat
