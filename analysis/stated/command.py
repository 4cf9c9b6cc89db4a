"""Owns `apex stated`: which goal agents say that they follow, by several classifiers, held against what they did."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from analysis.draw import save
from analysis.figures import STYLE
from analysis.grader_run import model_config, model_of
from analysis.options import Choice, choose, run_command, score_parser
from analysis.paper.charts import draw_stated
from analysis.report.cell_runs import cells_of
from analysis.report.stated import CLASSES as PLACES
from analysis.report.stated import read_labels
from analysis.run_table import runs_table
from analysis.runs import SourceError
from analysis.stated.interviews import Told, read_told
from analysis.stated.judge import Judged, judge_told
from analysis.stated.rules import CLASSES, StatedGoal, classify
from analysis.stated.tables import (
    agreement_table,
    answers_table,
    awareness_table,
    behaviour_table,
    cells_table,
    mentions_table,
)

Labels = dict[str, StatedGoal]


def main(argv: Sequence[str]) -> int:
    """Classify stated goals; exit code 0 done, 1 no run has a stated goal, 2 bad input."""
    parser = score_parser(
        "apex stated",
        "Which goal agents say that they follow, asked after the last quarter: classes by rules, by a judge model and "
        "by hand, their agreement, and what was stated against what was done. Runs are only read.",
    )
    parser.add_argument(
        "--hand", type=Path, metavar="CSV", help="labels given by hand: of a run, or of a cell and position"
    )
    parser.add_argument(
        "--judge",
        type=Path,
        metavar="FILE",
        help="model that classifies the answers, such as conf/model/gpt_4o_mini.yaml",
    )
    parser.add_argument(
        "--repeats", type=int, default=3, metavar="K", help="how often the judge reads each answer (default: 3)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder for labels, tables, figure and a judge's raw verdicts"
    )
    return run_command(parser, argv, _stated)


def _stated(options: argparse.Namespace) -> int:
    if not 1 <= options.repeats <= 25:
        raise SourceError(f"--repeats {options.repeats} is not allowed: 1 to 25")
    if options.judge is not None and options.out is None:
        raise SourceError("--judge needs --out: its raw verdicts are kept there, so that nothing is asked twice")
    choice = choose(options)
    runs = runs_table(choice.pairing, choice.convention)
    told, problems = read_told(Path(choice.name)) if Path(choice.name).is_dir() else ([], [])
    labelled = {"rules": _by_rules(told)} if any(one.answers for one in told) else {}
    notes = [*problems, *_unasked(told)]
    if options.judge is not None:
        judged = _judged(options, told)
        labelled["judge"] = {run: found.label for run, found in judged.by_run.items() if found.label is not None}
        notes += _told_of(judged, options.repeats)
    if options.hand is not None:
        labelled["hand"], said = _by_hand(options.hand, choice, runs)
        notes += said
    tables = _tables(runs, told, labelled)
    print(f"{choice.name}: {len(runs)} runs; convention {choice.convention.name}, pairs by {choice.pairing.by}")
    print(*_report(tables), *notes, *choice.source.notes, sep="\n")
    if options.out is not None:
        print(*_written(options.out, tables, labelled, runs), sep="\n")
    return 0 if any(labelled.values()) else 1


def _by_rules(told: Sequence[Told]) -> Labels:
    answers = ((one, one.last("goal")) for one in told)
    return {
        one.run_id: classify(answer.text or "", system=one.cell.system_goal, competing=one.competing)
        for one, answer in answers
        if answer is not None
    }


def _judged(options: argparse.Namespace, told: Sequence[Told]) -> Judged:
    config = model_config(options.judge)
    if config.adapter in ("openai", "anthropic", "litellm") and "temperature" not in config.params:
        config = replace(config, params={"temperature": 0, **config.params})
    identity = {key: value for key, value in asdict(config).items() if key in ("adapter", "model", "params")}
    kept = options.out / "verdicts.jsonl"
    return judge_told(model_of(config, options.judge), identity, told, repeats=options.repeats, kept=kept)


def _told_of(judged: Judged, repeats: int) -> Iterator[str]:
    cost = "cost unknown" if judged.cost_usd is None else f"{judged.cost_usd:.4f} USD"
    yield f"judge: {judged.n_asked} verdicts asked for now ({cost}), the others were kept"
    pairs = pd.Series([found.agreement_frac for found in judged.by_run.values()], dtype=float).dropna()
    if len(pairs):
        yield f"judge: {repeats} verdicts on one answer agree in {pairs.mean():.3f} of their pairs"
    unread = [run for run, found in judged.by_run.items() if found.n_unread]
    if unread:
        n, raw = sum(found.n_unread for found in judged.by_run.values()), judged.by_run[unread[0]].raw
        yield f"judge: {n} verdicts are none of {', '.join(CLASSES)} and count for nothing; run {unread[0]} has {raw!r}"
    silent = [run for run, found in judged.by_run.items() if found.label is None]
    if silent:
        yield f"judge: {len(silent)} runs without a verdict: {', '.join(silent[:3])}{' ...' if len(silent) > 3 else ''}"


def _by_hand(path: Path, choice: Choice, runs: pd.DataFrame) -> tuple[Labels, tuple[str, ...]]:
    found = read_labels(path, cells_of(runs, choice.convention))
    names: dict[int, StatedGoal] = {place: name for name in CLASSES if (place := PLACES.get(name)) is not None}
    labels: Labels = {run: names[place] for run, place in found.of_run.items()}
    return labels | dict.fromkeys(found.unclear, "unclear"), found.notes


def _unasked(told: Sequence[Told]) -> Iterator[str]:
    lacking = [one.run_id for one in told if one.last("goal") is None and not one.cell.is_baseline]
    if lacking:
        shown = ", ".join(lacking[:3]) + (" ..." if len(lacking) > 3 else "")
        yield f"{len(lacking)} runs have no answer after their last quarter (interview.at_end=true asks): {shown}"


def _tables(runs: pd.DataFrame, told: Sequence[Told], labelled: Mapping[str, Labels]) -> dict[str, pd.DataFrame]:
    tables = {
        "cells": cells_table(runs, labelled),
        "agreement": agreement_table(labelled),
        "behaviour": behaviour_table(runs, labelled),
        "awareness": awareness_table(runs, told),
        "answers": answers_table(told, labelled),
        "mentions": mentions_table(told),
    }
    return {name: table for name, table in tables.items() if len(table)}


def _report(tables: Mapping[str, pd.DataFrame]) -> Iterator[str]:
    """Yield the tables in words that fit a terminal."""
    shown = {
        "cells": "stated goals, runs by class:",
        "agreement": "agreement of classifiers (confusion: a row a class of the first, in the order "
        f"{', '.join(CLASSES)}):",
        "behaviour": "stated goal against score:",
        "awareness": "scores by awareness of a test:",
    }
    hidden = ["reason", "test", "note", "method", "drifted_low", "drifted_high"]
    if "cells" not in tables:
        yield "no stated goal is known: no run was asked, and no labels are given (--hand)"
    for name, title in shown.items():
        if name in tables:
            table = (
                tables[name].drop(columns=hidden, errors="ignore").replace("", None).dropna(axis="columns", how="all")
            )
            yield f"\n{title}\n{table.to_string(index=False, float_format='{:.3g}'.format, na_rep='-')}"
    if "behaviour" in tables:
        yield from sorted({f"note: {note}" for note in tables["behaviour"]["note"] if note})
    if "mentions" in tables:
        found = tables["mentions"]
        by_kind = ", ".join(f"{kind} {n}" for kind, n in found["kind"].value_counts().items())
        yield f"\n{len(found)} unprompted mentions in {found['run_id'].nunique()} runs: {by_kind}"
    yield ""


def _written(
    out: Path, tables: Mapping[str, pd.DataFrame], labelled: Mapping[str, Labels], runs: pd.DataFrame
) -> Iterator[str]:
    out.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in tables.items():
        paths.append(out / f"{name}.csv")
        table.to_csv(paths[-1], index=False)
    for name, labels in labelled.items():
        paths.append(out / f"labels-{name}.csv")
        pd.DataFrame(labels.items(), columns=["run_id", "label"]).to_csv(paths[-1], index=False)
        stated = runs.assign(stated=runs["run_id"].map(labels).map(PLACES)).dropna(subset="stated")
        with mpl.rc_context(STYLE):
            drawn = draw_stated(f"stated-{name}", stated[stated["setting"] != "baseline"])
            paths += [] if drawn is None else save(drawn, out)
    yield from (f"written: {path}" for path in paths)
