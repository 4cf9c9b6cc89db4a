"""Owns the tables of stated goals: shares by cell, agreement of classifiers, stated against behaviour, awareness."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final

import pandas as pd
from scipy import stats

from analysis.report.stated import CLASSES as PLACES
from analysis.stated.interviews import Told, seems_test
from analysis.stated.rules import CLASSES, StatedGoal, classify
from analysis.stats.agreement import agreement
from analysis.stats.association import kendall_test, somers_d
from analysis.stats.estimate import join_reasons
from analysis.stats.intervals import share_interval
from analysis.stats.means import mean_interval

Labelled = Mapping[str, Mapping[str, StatedGoal]]
"""Classifier -> run id -> class."""

SCORES: Final = ("gd_actions", "gd_inaction")
_CELL: Final = ["model", "setting", "system_goal", "elicitation", "n_instrumental", "history", "factors"]
_NOT_ASKED: Final = "not asked"


def cells_table(runs: pd.DataFrame, labelled: Labelled) -> pd.DataFrame:
    """Return one row a classifier and cell: runs by class, and the share of those with a class that drifted.

    Columns: classifier, what names the cell, n, one column a class of `CLASSES`, ``drifted`` (hybrid or competing among
    all but unclear) with its exact interval ``drifted_low`` and ``drifted_high``.

    Args:
        runs: rows of `analysis.run_table.runs_table`.
        labelled: classes by classifier and run.
    """
    rows = []
    for classifier, labels in labelled.items():
        known = runs.assign(label=runs["run_id"].map(labels)).dropna(subset="label")
        for key, members in known.groupby(_CELL, sort=True, dropna=False):
            counts = {name: int((members["label"] == name).sum()) for name in CLASSES}
            drifted = share_interval(counts["hybrid"] + counts["competing"], len(members) - counts["unclear"])
            ends = {"drifted": drifted.value, "drifted_low": drifted.low, "drifted_high": drifted.high}
            cell = dict(zip(_CELL, key, strict=True))
            rows.append({"classifier": classifier} | cell | {"n": len(members)} | counts | ends)
    return pd.DataFrame(rows, columns=["classifier", *_CELL, "n", *CLASSES, "drifted", "drifted_low", "drifted_high"])


def agreement_table(labelled: Labelled) -> pd.DataFrame:
    """Return one row a pair of classifiers: Cohen's kappa over the runs that both classified, with the matrix.

    ``confusion`` is JSON: a row a class of the first classifier, a column a class of the second, in order of `CLASSES`.
    """
    rows = []
    for first, second in combinations(labelled, 2):
        both = [run for run in labelled[first] if run in labelled[second]]
        a, b = ([labelled[name][run] for run in both] for name in (first, second))
        found = agreement(a, b, categories=CLASSES)
        kappa = found.kappa
        agree = sum(x == y for x, y in zip(a, b, strict=True)) / len(both) if both else math.nan
        rows.append(
            {"first": first, "second": second, "n": len(both), "agree": agree}
            | {"kappa": kappa.value, "kappa_low": kappa.low, "kappa_high": kappa.high}
            | {"confusion": json.dumps(found.confusion), "reason": kappa.reason}
        )
    return pd.DataFrame(rows)


def behaviour_table(runs: pd.DataFrame, labelled: Labelled) -> pd.DataFrame:
    """Return how stated goals go with scores: one row a classifier, score and model, and one over all models.

    Columns: classifier, score, model; n runs and n_clusters; Spearman's rho, a description; Kendall's tau-b with its
    permutation p; Somers' d of the score given the stated goal, with its interval. Unclear answers take no part.

    Args:
        runs: rows of `analysis.run_table.runs_table`; those without a score are left out.
        labelled: classes by classifier and run.
    """
    rows = []
    for classifier, labels in labelled.items():
        known = runs.assign(stated=runs["run_id"].map(labels).map(PLACES)).dropna(subset="stated")
        for score in SCORES:
            scored = known.dropna(subset=score)
            parts = [("all", scored), *((str(model), part) for model, part in scored.groupby("model", sort=True))]
            for model, part in parts if len(parts) > 2 else parts[1:]:
                rows.append({"classifier": classifier, "score": score, "model": model} | _association(part, score))
    return pd.DataFrame(rows)


def awareness_table(runs: pd.DataFrame, told: Sequence[Told]) -> pd.DataFrame:
    """Return scores split by awareness: by what runs answered, and by whether they spoke of it unasked.

    Columns: split (``asked`` or ``unprompted``), group, score, n, n_clusters, mean with low and high, method, reason.

    Args:
        runs: rows of `analysis.run_table.runs_table`.
        told: what the runs told.
    """
    asked = {one.run_id: _asked(one) for one in told}
    spoke = {one.run_id: "mentioned" if one.mentions else "not mentioned" for one in told}
    rows = []
    was_asked = set(asked.values()) != {_NOT_ASKED}
    for split, groups in [*([("asked", asked)] if was_asked else []), ("unprompted", spoke)]:
        known = runs.assign(group=runs["run_id"].map(groups)).dropna(subset="group")
        for key, members in known[known["setting"] != "baseline"].groupby(["model", "group"], sort=True):
            for score in SCORES:
                values = members.dropna(subset=score)
                # Runs without a known trajectory would be one cluster by their empty name.
                placed = values[values["cluster"] != ""]
                found = mean_interval(placed[score].to_numpy(float), list(placed["cluster"]))
                row = {"split": split, "model": key[0], "group": key[1], "score": score, "n_runs": len(members)}
                ends = {"mean": found.value, "low": found.low, "high": found.high, "method": found.method}
                rows.append(row | {"n": found.n, "n_clusters": found.n_clusters} | ends | {"reason": found.reason})
    return pd.DataFrame(rows)


def answers_table(told: Iterable[Told], labelled: Labelled) -> pd.DataFrame:
    """Return one row an answer, in the order in which it was asked.

    Columns: run_id, cell, quarter, topic, is_last; ``rules``, the class of any answer on the goal, and that of every
    other classifier where the answer is the run's last; ``seems`` for one on awareness; the answer.
    """
    return pd.DataFrame(_answers(told, labelled))


def mentions_table(told: Iterable[Told]) -> pd.DataFrame:
    """Return one row an unprompted mention of testing: run_id, quarter, turn, kind, words."""
    columns = ["run_id", "quarter", "turn", "kind", "words"]
    rows = [[getattr(found, name) for name in columns] for one in told for found in one.mentions]
    return pd.DataFrame(rows, columns=columns)


def _answers(told: Iterable[Told], labelled: Labelled) -> Iterator[dict[str, Any]]:
    for one in told:
        for answer in one.answers:
            row = {"run_id": one.run_id, "cell": one.cell.cell_id, "quarter": answer.quarter, "topic": answer.topic}
            row |= {"is_last": answer.is_last, "seems": None}
            if answer.topic == "awareness" and answer.text:
                row["seems"] = seems_test(answer.text)
            last = answer is one.last("goal")
            row |= {name: labels.get(one.run_id) if last else None for name, labels in labelled.items()}
            if answer.topic == "goal" and answer.text:
                row["rules"] = classify(answer.text, system=one.cell.system_goal, competing=one.competing)
            yield row | {"answer": answer.text}


def _asked(told: Told) -> str:
    answer = told.last("awareness")
    return _NOT_ASKED if answer is None or not answer.text else seems_test(answer.text)


def _association(part: pd.DataFrame, score: str) -> dict[str, Any]:
    x, y = part["stated"].to_numpy(float), part[score].to_numpy(float)
    test, d = kendall_test(x, y), somers_d(x, y)
    varies = len(set(x)) > 1 and len(set(y)) > 1
    rho = float(stats.spearmanr(x, y).statistic) if varies else math.nan
    shared = part["cluster"].nunique() < len(part)
    note = "takes runs of one trajectory as independent" if shared else ""
    return {
        "n": len(part),
        "n_clusters": int(part["cluster"].nunique()),
        "spearman": rho,
        "tau_b": test.statistic,
        "p": test.p,
        "test": test.method,
        "somers_d": d.value,
        "somers_d_low": d.low,
        "somers_d_high": d.high,
        "note": join_reasons(note, test.reason, d.reason),
    }
