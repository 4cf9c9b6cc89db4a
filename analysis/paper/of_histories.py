"""Owns what the paper states of histories that were replaced, borrowed or emptied."""

from __future__ import annotations

from functools import partial
from typing import Final

import pandas as pd

from analysis.paper.evidence import HAIKU, MINI, MODELS, SONNET, SWITCHES, Evidence, Finding, Statement, number, verdict
from analysis.stats.association import pearson_interval, pearson_test

SCORES: Final = ("gd_actions", "gd_inaction")
_SLACK: Final = 1e-9
_CELL: Final = ["setting", "model", "n_instrumental"]


def against_original(evidence: Evidence, history: str, models: tuple[str, ...] = MODELS) -> pd.DataFrame:
    """Return one row a model, phase length and score: the mean with a history, that of the original, and n of both.

    Columns: setting, model, n_instrumental, score, ablated, original, n_ablated, n_original, original_setting. Lengths
    that only one side has are left out. A model whose original in the same setting is not there at all is held against
    its original without pressure, which decides nothing: pressure and history then differ.
    """
    ablated = evidence.of(history=history, setting=SWITCHES, model=models)
    original = evidence.of(history="own", setting=SWITCHES, model=models)
    there = {tuple(key): rows for key, rows in original.groupby(_CELL)}
    known = {key[:2] for key in there}
    rows = []
    for key, members in ablated.groupby(_CELL):
        setting, *rest = key
        beside_setting = setting if (setting, rest[0]) in known else "goal_switching"
        originals = there.get((beside_setting, *rest), members[:0])
        for score in SCORES:
            here, beside = (side[score].dropna().to_numpy() for side in (members, originals))
            if len(here) and len(beside):
                rows.append(
                    dict(zip(_CELL, key, strict=True))
                    | {"score": score, "ablated": float(here.mean()), "original": float(beside.mean())}
                    | {"n_ablated": len(here), "n_original": len(beside), "original_setting": beside_setting}
                )
    return pd.DataFrame(rows)


def correlations(evidence: Evidence, history: str, models: tuple[str, ...] = MODELS) -> pd.DataFrame:
    """Return one row a setting, model and score: Pearson's r of a history with the original over phase lengths.

    Columns: history, setting, original_setting, model, score, r, r_low, r_high, p, method, n (lengths), note.
    """
    table = against_original(evidence, history, models)
    rows = []
    if len(table):
        levels = ["setting", "original_setting", "model", "score"]
        for key, members in table.groupby(levels):
            sides = members["original"].to_numpy(), members["ablated"].to_numpy()
            test, interval = pearson_test(*sides), pearson_interval(*sides)
            named = {"history": history} | dict(zip(levels, key, strict=True))
            found = {"r": test.statistic, "r_low": interval.low, "r_high": interval.high, "p": test.p}
            told = {"method": f"{test.method}; interval {interval.method}", "n": test.n, "note": interval.reason}
            rows.append(named | found | told)
    return pd.DataFrame(rows)


def _below_original(evidence: Evidence) -> Finding:
    table = against_original(evidence, "repeated_token")
    if table.empty:
        return Finding.missing("repeated token in place of the history")
    above = table[table["ablated"] > table["original"] + _SLACK]
    others = above[~((above["model"] == HAIKU) & (above["score"] == "gd_inaction"))]
    told = [f"{row.model} {row.score} {row.n_instrumental}" for row in others.itertuples()]
    ours = f"above in {len(above)} of {len(table)}, {len(others)} of them not Haiku's inaction"
    n = int(table.drop_duplicates(_CELL)["n_ablated"].sum())
    method = "means by model, length and score"
    if (table["setting"] != table["original_setting"]).any():
        note = "missing: the original in the combined setting; this is against the one without pressure"
        return Finding(ours, "runs missing", n, method, note)
    return Finding(ours, verdict(others.empty), n, method, "above: " + ", ".join(told))


def _more_support(evidence: Evidence) -> Finding:
    found = [against_original(evidence, history) for history in ("random_sentences", "repeated_token")]
    if any(table.empty or set(MODELS) - set(table["model"]) for table in found):
        return Finding.missing("random sentences for all four models")
    means = [float(table["ablated"].mean()) for table in found]
    ours = f"{number(means[0])}, repeated token {number(means[1])}"
    n = int(found[0].drop_duplicates(_CELL)["n_ablated"].sum())
    return Finding(ours, verdict(means[0] > means[1]), n, "mean over models, lengths and scores")


def _correlated(evidence: Evidence, *, significant: bool) -> Finding:
    table = correlations(evidence, "random_sentences")
    if len(table):
        table = table[table["setting"] == table["original_setting"]]
    if table.empty or set(MODELS) - set(table["model"]) or table["n"].max() < 3:
        return Finding.missing("random sentences for all four models and at least three lengths")
    known = table.dropna(subset="r")
    n_positive, n_significant = int((known["r"] > 0).sum()), int((known["p"] < 0.05).sum())
    if significant:
        ours = f"p < .05 in {n_significant} of {len(known)}"
        return Finding(ours, verdict(2 * n_significant <= len(known)), len(known), "Pearson, exact permutation")
    return Finding(
        f"r > 0 in {n_positive} of {len(known)}", verdict(2 * n_positive > len(known)), len(known), "Pearson"
    )


def _borrowed(evidence: Evidence, *, model: str, parent: str, steadier: bool) -> Finding:
    told = f"{model} on the history of {parent}"
    borrowed = evidence.of(history="borrowed", model=model, conditioned_on=parent, setting=SWITCHES)
    own = evidence.of(history="own", model=model, setting=SWITCHES)
    cells = ["setting", "n_instrumental"]
    means = [runs.groupby(cells)["gd_actions"].mean().dropna() for runs in (borrowed, own)]
    both = means[0].index.intersection(means[1].index)
    if len(both) < 2:
        return Finding.missing(told)
    here, there = (float(side[both].mean()) for side in means)
    holds = here < there if steadier else here > there
    ours = f"{number(here)}, own history {number(there)}"
    n = int(borrowed["gd_actions"].notna().sum())
    return Finding(ours, verdict(holds), n, f"mean GD_actions over {len(both)} cells that both have")


def _portfolio(evidence: Evidence) -> Finding:
    table = against_original(evidence, "none")
    if table.empty or (set(MODELS) - set(table["model"]) and not evidence.complete):
        return Finding.missing("emptied history for all four models")
    ablated, original = float(table["ablated"].mean()), float(table["original"].mean())
    ours = f"{number(ablated)}, original {number(original)}"
    n = int(table.drop_duplicates(_CELL)["n_ablated"].sum())
    return Finding(ours, verdict(2 * ablated < original), n, "little taken as under half; mean of cells and scores")


HISTORY: Final = (
    Statement(
        "token-distance",
        "Repeated token: drift below the original except for some of Haiku's inaction",
        "no other exception",
        _below_original,
    ),
    Statement("random-sentences", "Random sentences find more support than token distance", "more", _more_support),
    Statement(
        "random-correlated",
        "Random sentences: drift correlates with the original",
        "positive",
        partial(_correlated, significant=False),
    ),
    Statement(
        "random-significance",
        "Many of these correlations are not significant",
        "many not",
        partial(_correlated, significant=True),
    ),
    Statement(
        "mini-on-sonnet",
        "GPT-4o mini is steadier on Sonnet's history",
        "lower",
        partial(_borrowed, model=MINI, parent=SONNET, steadier=True),
    ),
    Statement(
        "sonnet-on-mini",
        "Sonnet drifts a little on GPT-4o mini's history",
        "above its own",
        partial(_borrowed, model=SONNET, parent=MINI, steadier=False),
    ),
    Statement("portfolio", "Portfolio complexity explains little", "little", _portfolio),
)
"""Statements on histories."""
