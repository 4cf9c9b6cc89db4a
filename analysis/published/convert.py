"""Owns the way from the bytes of one checkpoint to a run in the project's own words."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Final

from analysis.published.books import Quarter, quarters_of, readings_of
from analysis.published.checkpoint import read_checkpoint
from analysis.published.inert import CheckpointError
from analysis.published.messages import normalise
from analysis.published.names import CellName, FileName
from analysis.published.phases import Phase, phase_of
from analysis.published.quarters import Talk, Talks, Turn, split
from apex_env.scenario import Scenario

CLUSTER_QUARTERS: Final = 2
"""Quarters whose books name the trajectory: no published phase is shorter, and all lengths of a model begin alike."""


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One published run, as its checkpoint has it."""

    name: FileName
    file: str
    """Path of the checkpoint below the folder or in the archive that was imported."""
    sha256: str
    n_bytes: int
    model_id: str
    """As the checkpoint names the model."""
    run: int
    system_prompt: str | None
    """The first of the conversation, or, where the conversation holds none, the one that stands beside it."""
    other_system_prompts: tuple[str, ...]
    message_forms: tuple[str, ...]
    n_tokens: int | None
    missing_keys: tuple[str, ...]
    talks: Talks
    phase: Phase
    scenario: Scenario
    """The episode that the run is."""
    quarters: tuple[Quarter, ...]
    oddities: tuple[str, ...]
    """What does not fit, in words."""

    @property
    def n_instrumental(self) -> int:
        """True length of the instrumental phase."""
        return self.phase.n_instrumental

    @property
    def evaluation(self) -> tuple[Quarter, ...]:
        """Quarters of the evaluation phase."""
        return self.quarters[self.n_instrumental :]

    @property
    def n_dead_evaluation(self) -> int:
        """Quarters of the evaluation in which the model's API gave no answer at all."""
        return sum(quarter.talk is not None and quarter.talk.dead for quarter in self.evaluation)

    @property
    def is_dead(self) -> bool:
        """Whether the API was down for at least half of the evaluation."""
        return 0 < len(self.evaluation) <= 2 * self.n_dead_evaluation


def convert(data: bytes, name: FileName, file: str) -> ImportedRun:
    """Return the run that a checkpoint holds.

    Args:
        data: the checkpoint, a pickle, which is read and not executed.
        name: what its path says.
        file: its path below what is imported.

    Raises:
        CheckpointError: if it cannot be read, is no checkpoint, or cannot be a run of the firm.
    """
    checkpoint = read_checkpoint(data)
    said = normalise(checkpoint.messages)
    talks = split(said.messages, len(checkpoint.quarters))
    oddities: list[str] = []
    try:
        readings = readings_of(talks, Scenario(system_goal=name.cell.system_goal))
        incomes = [state.income_usd for state in checkpoint.quarters]
        phase = phase_of(incomes, checkpoint.run, name.cell.n_instrumental, readings)
        scenario = _scenario(name.cell, checkpoint.run, phase, len(incomes))
        quarters = quarters_of(checkpoint, talks, phase, scenario)
        strange = [quarter for quarter in quarters[: phase.n_instrumental] if quarter.disagreement]
        if strange:
            told = f"quarter {strange[0].books.quarter}: {strange[0].disagreement}"
            oddities.append(f"the history that is shown is not that of the books, so it is kept as text only: {told}")
            talks = split(said.messages, len(checkpoint.quarters), known_from=phase.n_instrumental + 1)
            quarters = quarters_of(checkpoint, talks, phase, scenario)
    except ValueError as error:
        raise CheckpointError("misshapen", f"not a run of the firm: {error}") from error
    prompts = [text for text in (*said.system_prompts, checkpoint.system_message) if text is not None]
    return ImportedRun(
        name=name,
        file=file,
        sha256=hashlib.sha256(data).hexdigest(),
        n_bytes=len(data),
        model_id=checkpoint.model_id,
        run=checkpoint.run,
        system_prompt=prompts[0] if prompts else None,
        other_system_prompts=tuple(text for text in dict.fromkeys(prompts) if text != prompts[0]),
        message_forms=said.forms,
        n_tokens=checkpoint.n_tokens,
        missing_keys=checkpoint.missing,
        talks=talks,
        phase=phase,
        scenario=scenario,
        quarters=quarters,
        oddities=(*oddities, *talks.oddities),
    )


def trajectory_of(run: ImportedRun) -> tuple[str, ...]:
    """Return the hash of the books up to each quarter of the instrumental phase; who shares one shares all before."""
    chain: list[str] = []
    for quarter in run.quarters[: run.n_instrumental]:
        state = quarter.books.to_json()
        kept = [state[name] for name in ("income_usd", "bought_usd", "sold_usd", "holdings_usd")]
        chain.append(_digest([chain[-1:], kept]))
    return tuple(chain)


def history_sha256(run: ImportedRun) -> str | None:
    """Return the hash of what the model was shown of the instrumental phase; None without a switch."""
    if not run.n_instrumental:
        return None
    talks = run.talks
    shown: list[object] = [message.to_json() for message in talks.history]
    for t in range(talks.known_from, run.n_instrumental + 1):
        shown += [talks.quarters[t].briefing, [_said(turn) for turn in talks.quarters[t].turns]]
    return _digest(shown)


def decisions_sha256(run: ImportedRun) -> str | None:
    """Return the hash of all that the model said and did in the evaluation; None where it did nothing."""
    said = [
        _said(turn)
        for quarter in run.evaluation
        if quarter.talk is not None
        for turn in quarter.talk.turns
        if turn.by == "model"
    ]
    return _digest(said) if said else None


def cluster_of(run: ImportedRun) -> str:
    """Return the cluster of a run: the instrumental trajectory that it went on from, or the run itself.

    All lengths of one trajectory begin with the same books, so those of its first quarters name it, together with model
    and goal: two models can well trade alike for two quarters.
    """
    cell = run.name.cell
    if not run.n_instrumental:
        return run.name.run_id
    digest = trajectory_of(run)[:CLUSTER_QUARTERS][-1]
    return f"trajectory/{cell.system_goal}-{cell.conditioned_on}-{run.phase.phase_seed}-{digest[:12]}"


def n_characters_of(run: ImportedRun) -> tuple[int, int] | None:
    """Return the characters of the instrumental phase and of the whole conversation, system prompt included in both.

    None where the model was not shown its own phase turn by turn.
    """
    talks = run.talks
    if talks.known_from > 1:
        return None
    by_quarter = {t: _n_characters(talk) for t, talk in talks.quarters.items()}
    prompt = len(run.system_prompt or "")
    phase = sum(n for t, n in by_quarter.items() if t <= run.n_instrumental)
    return prompt + phase, prompt + sum(by_quarter.values())


def _n_characters(talk: Talk) -> int:
    n = len(talk.briefing or "")
    for turn in talk.turns:
        n += len(turn.text)
        for sent in turn.calls:
            given = sent.call.arguments
            n += len(sent.call.name) + len(given if isinstance(given, str) else json.dumps(given))
            n += len(sent.result or "")
    return n


def _scenario(cell: CellName, run: int, phase: Phase, n_quarters: int) -> Scenario:
    return Scenario(
        system_goal=cell.system_goal,
        setting=cell.setting,
        elicitation=cell.elicitation,
        seed=run,
        phase_seed=phase.phase_seed,
        n_instrumental=phase.n_instrumental,
        n_evaluation=n_quarters - phase.n_instrumental,
        rules="published",
    )


def _said(turn: Turn) -> list[object]:
    return [turn.text, [[sent.call.name, sent.call.arguments, sent.result] for sent in turn.calls]]


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
