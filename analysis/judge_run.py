"""Owns judging runs by a model: soft questions, after the hard checks, and calibrated against people's answers.

A judge's answer stands beside a run's grade and changes nothing in it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from analysis.grade import RunGrade
from analysis.grader_model import ANSWERS, Calibration, SoftAnswer, calibrate, judge
from analysis.runs import SourceError
from apex_env.mandate import contract_of
from experiments.chat import Model
from experiments.environments import scenario_from_json
from experiments.errors import RunEnded
from experiments.record import Record

LABEL_COLUMNS: Final = ("run_id", "question", "answer")


@dataclass(frozen=True, slots=True)
class Judged:
    """What a judge said of some runs on one question, and how far it agrees with people."""

    question: str
    answers: dict[str, SoftAnswer]
    """By run id."""
    calibration: Calibration | None
    """None where people have answered for none of the runs."""


def read_labels(path: Path) -> pd.DataFrame:
    """Return people's answers: a row a run and question.

    Raises:
        SourceError: if the file lacks a column, answers twice, or holds an answer that is not allowed.
    """
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False)
    except (ValueError, UnicodeDecodeError) as error:
        raise SourceError(f"{path}: no table can be read: {error}") from error
    missing = [name for name in LABEL_COLUMNS if name not in table]
    if missing:
        raise SourceError(f"{path}: needs the columns {', '.join(LABEL_COLUMNS)}, and lacks {', '.join(missing)}")
    wrong = table[~table["answer"].isin(ANSWERS)]
    if not wrong.empty:
        raise SourceError(f"{path}: answer {wrong['answer'].iloc[0]!r} is not allowed: {', '.join(ANSWERS)}")
    twice = table[table.duplicated(["run_id", "question"])]
    if not twice.empty:
        raise SourceError(f"{path}: run {twice['run_id'].iloc[0]!r} is answered for twice on one question")
    return table


def judge_runs(model: Model, records: Sequence[Record], question: str, labels: pd.DataFrame | None) -> Judged:
    """Return a judge's answers on every run; they count only if it agrees with people well enough.

    Raises:
        SourceError: if the judge does not answer.
    """

    async def ask_all() -> list[SoftAnswer]:
        asked = (
            judge(model, record, question, permissions=_permissions(record), calibration=None) for record in records
        )
        return await asyncio.gather(*asked)

    try:
        found = dict(zip((record.header["run_id"] for record in records), asyncio.run(ask_all()), strict=True))
    except RunEnded as error:
        raise SourceError(f"the judge {model.name!r} does not answer: {error.reason}") from error
    calibration = None
    if labels is not None:
        rows = labels[(labels["question"] == question) & labels["run_id"].isin(found)]
        if not rows.empty:
            calibration = calibrate(question, list(rows["answer"]), [found[run].answer for run in rows["run_id"]])
    usable = calibration is not None and calibration.usable
    answers = {run: SoftAnswer(question, one.answer, usable and one.answer != "unsure") for run, one in found.items()}
    return Judged(question, answers, calibration)


def judged_table(grades: Sequence[RunGrade], judged: Judged) -> pd.DataFrame:
    """Return one row a run: what the hard checks found, and beside it what the judge says."""
    return pd.DataFrame(
        {
            "run_id": one.run_id,
            "quadrant": one.quadrant,
            "n_hard_violations": len(one.hard_violations),
            "question": judged.question,
            "answer": judged.answers[one.run_id].answer,
            "counts": judged.answers[one.run_id].counts,
        }
        for one in grades
    )


def told_calibration(judged: Judged) -> str:
    """Return how far the judge agrees with people, never without the matrix."""
    found = judged.calibration
    if found is None:
        return f"{judged.question}: people have answered for none of these runs, so no answer counts"
    kappa = found.agreement.kappa
    word = "its answers count" if found.usable else "its answers do not count"
    matrix = json.dumps(found.agreement.confusion)
    measured = f"kappa {kappa.value:.3f} [{kappa.low:.3f}, {kappa.high:.3f}] on {found.n_labels} runs"
    return f"{judged.question}: {measured}, {word}; people by judge ({', '.join(ANSWERS)}): {matrix}"


def _permissions(record: Record) -> str:
    scenario = scenario_from_json(record.header["scenario"])
    versions = (1, 2) if scenario.switches else (1,)
    return json.dumps([contract_of(scenario, version).to_json() for version in versions], separators=(",", ":"))
