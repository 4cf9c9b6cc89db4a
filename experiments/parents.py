"""Owns parents that are records already: an imported published run, or a shared phase of another experiment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from apex_env.firm import NAME, VERSION, ApexFirm
from apex_env.prompts import system_prompt
from apex_env.texts import Corpus
from experiments.contexts import misfit
from experiments.environments import opening_to_json, scenario_from_json
from experiments.errors import InputError
from experiments.grid import Lent
from experiments.imported import is_imported, parent_cut
from experiments.rebuild import Cut, messages_sha256, rebuild
from experiments.record import Record, read_record
from experiments.rollout import Dialogue
from experiments.run_spec import ModelConfig, ParentRecord, RunSpec, digest
from experiments.treatment import EVALUATION_ONLY, Treatment

_MODEL_FIELDS: Final = ("name", "adapter", "model", "params", "service")
_AS_PUBLISHED: Final = ("before", "instrumental_goal", "ticker_names")
"""Factors of the instrumental phase that published runs have at their default."""


@dataclass(frozen=True, slots=True)
class Parent:
    """A record that runs can go on from."""

    record: Record

    @property
    def path(self) -> Path:
        """Where the record is."""
        return self.record.path

    @property
    def run_id(self) -> str:
        """Name of the run, which stands for the path in treatments."""
        return str(self.record.header["run_id"])

    @property
    def model(self) -> ModelConfig:
        """Model whose turns it holds."""
        there = self.record.header["config"]["model"]
        return ModelConfig(**{name: there[name] for name in _MODEL_FIELDS})

    @property
    def phase_seed(self) -> int:
        """Seed of the market of the instrumental phase."""
        config = self.record.header["config"]
        return int(config["phase_seed"] if is_imported(self.record) else config["seed"])


def looks_like_a_record(parent: str) -> bool:
    """Whether a parent is named by the path of a record, rather than by the label of a model.

    >>> looks_like_a_record("imported/results/run1.jsonl"), looks_like_a_record("gpt-4o")
    (True, False)
    """
    return parent.endswith(".jsonl")


def read_parent(path: Path) -> Parent:
    """Return the parent at a path.

    Raises:
        InputError: if there is no such record, or it is neither an imported run nor a shared phase.
    """
    record = read_record(path)
    if not is_imported(record) and not record.header.get("is_phase"):
        raise InputError(f"parent {path} is no parent: an imported published run or a shared phase is expected")
    parent = Parent(record)
    try:
        _check_header(parent)
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"parent {path}, line 1: not the header of a run of this firm: {error!r}") from error
    return parent


def lent_records(treatments: Iterable[Treatment], corpus: Corpus) -> tuple[list[Treatment], dict[Treatment, Lent]]:
    """Return treatments with the names of runs in place of the paths of their parents, and what each is lent.

    Raises:
        InputError: if there is no such record, it cannot be a parent, or the treatment's phase is another or longer.
    """
    named: list[Treatment] = []
    lent: dict[Treatment, Lent] = {}
    for treatment in treatments:
        if treatment.parent is not None and looks_like_a_record(treatment.parent):
            parent = read_parent(Path(treatment.parent))
            record = _parent_record(parent, treatment, corpus)
            treatment = replace(treatment, parent=parent.run_id)
            lent[treatment] = Lent(parent.model, record, parent.phase_seed)
        named.append(treatment)
    return named, lent


def _check_header(parent: Parent) -> None:
    """Read all that is needed of a parent's header, so that what is missing shows here."""
    header = parent.record.header
    name, version = header["environment"]["name"], header["environment"]["version"]
    if name != NAME or (version != VERSION and not is_imported(parent.record)):
        raise ValueError(f"environment {name} {version}, not {NAME} {VERSION}")
    _ = parent.run_id, parent.model, parent.phase_seed, header["cluster_id"], dict(_phase_of(parent.record))
    if not is_imported(parent.record):
        scenario_from_json(header["scenario"])


def _parent_record(parent: Parent, treatment: Treatment, corpus: Corpus) -> ParentRecord:
    """Return what names a parent in the runs of a treatment that go on from it."""
    _check_phase(parent, treatment, corpus)
    cut = cut_at(parent.path, treatment.n_instrumental, corpus)
    content = {"messages": messages_sha256(cut.messages), "opening": opening_to_json(cut.opening)}
    cluster = str(parent.record.header["cluster_id"])
    return ParentRecord(parent.path, parent.run_id, digest(content), cluster)


@lru_cache(maxsize=32)
def cut_at(path: Path, quarter: int, corpus: Corpus) -> Cut:
    """Return a parent at the close of a quarter.

    Raises:
        RecordError: if it does not get that far, or was changed.
    """
    record = read_record(path)
    if is_imported(record):
        try:
            return parent_cut(record, quarter)
        except (KeyError, TypeError) as error:
            raise InputError(f"{path}: not the record of an imported run: {error!r}") from error
    last = max((line["quarter"] for line in record.of_type("closed")), default=0)
    if quarter > last:
        raise InputError(f"{path}: no parent at quarter {quarter}: its instrumental phase has {last} quarters")
    firm = ApexFirm(scenario_from_json(record.header["scenario"]), corpus=corpus)
    return rebuild(record, firm, Dialogue(), cuts=[quarter])[quarter]


def check_contexts(runs: Iterable[RunSpec], corpus: Corpus) -> None:
    """Refuse runs whose model's context, where its size is known, cannot hold the history that they would be shown.

    Raises:
        InputError: with both numbers.
    """
    for run in runs:
        if run.parent_record is None:
            continue
        cut = cut_at(run.parent_record.path, run.treatment.n_instrumental, corpus)
        prompt = system_prompt(run.treatment.scenario(run.seed, run.phase_seed), corpus)
        reason = misfit(run.model, prompt, cut.messages)
        if reason:
            raise InputError(f"parent {run.parent_record.path}, quarter {cut.quarter}: {reason}")


def _check_phase(parent: Parent, treatment: Treatment, corpus: Corpus) -> None:
    there = _phase_of(parent.record)
    asked = treatment.phase().identity()
    for name in sorted({*there, *asked} - EVALUATION_ONLY):
        if is_imported(parent.record) and name not in ("system_goal", *_AS_PUBLISHED):
            continue
        if there.get(name) != asked.get(name):
            told = f"{there[name]!r}" if name in there else "the default"
            raise InputError(
                f"parent {parent.path}: {name} {getattr(treatment, name)!r} is not allowed with it, which has {told}"
            )
    if not is_imported(parent.record) and parent.record.header["corpus_sha256"] != corpus.digest:
        raise InputError(f"parent {parent.path}: its corpus is another one than that of this experiment")


def _phase_of(record: Record) -> Mapping[str, Any]:
    """Return the outcome-affecting factors of a parent's instrumental phase, those at their default left out."""
    treatment: Mapping[str, Any] = record.header["identity"]["treatment"]
    return treatment if not is_imported(record) else {"system_goal": treatment["system_goal"]}
