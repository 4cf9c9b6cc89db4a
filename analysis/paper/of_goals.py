"""Owns what the paper states of stated goals and of the tokens of the instrumental phase."""

from __future__ import annotations

from functools import partial
from typing import Final

import pandas as pd
from scipy import stats

from analysis.paper.evidence import LENGTHS, MINI, MODELS, SONNET, SWITCHES, Evidence, Finding, Statement, verdict

PAPER_TOKENS: Final = {
    "gpt-4o": (2626, 4660, 8867, 17898, 39432, 92197),
    "gpt-4o-mini": (2521, 4219, 7532, 14785, 30485, 69583),
    "claude-3.5-sonnet": (3241, 5440, 10034, 19032, 39171, 86189),
    "claude-3.5-haiku": (3344, 5874, 11417, 21931, 47217, 115340),
}
"""Tokens of the instrumental phase by model, for 2, 4, 8, 16, 32 and 64 quarters (arXiv 2505.02709)."""
PAPER_MEAN_TOKENS: Final = (2933, 5048, 9457, 18412, 39076, 90827)
_CLOSE: Final = 0.05
_LABELLED: Final = "labels are of goal switching without pressure; the paper's figure is of the combined setting"


def _labelled(evidence: Evidence) -> pd.DataFrame:
    runs = evidence.of(setting=SWITCHES, history="own")
    return runs.assign(stated=runs["run_id"].map(evidence.labels)).dropna(subset="stated")


def _with_behaviour(evidence: Evidence) -> Finding:
    runs = _labelled(evidence).dropna(subset=["gd_actions", "gd_inaction"])
    if runs.empty:
        return Finding.missing("labels of stated goals (--labels)")
    told = []
    for score in ("gd_actions", "gd_inaction"):
        # Hundreds of runs, nearly all tied: enumeration is out of reach, and the normal approximation is close.
        test = stats.kendalltau(runs["stated"].to_numpy(float), runs[score].to_numpy(float), method="asymptotic")
        told.append((float(test.statistic), float(test.pvalue), score))
    holds = all(tau > 0 and p < 0.05 for tau, p, _ in told)
    ours = "; ".join(f"{score} tau-b {tau:.2f}, p {p:.1g}" for tau, p, score in told)
    return Finding(ours, verdict(holds), len(runs), "Kendall's tau-b over all runs, asymptotic", _LABELLED)


def _drifted(evidence: Evidence) -> pd.DataFrame:
    runs = _labelled(evidence)
    return (runs["stated"] > 1).groupby(runs["model"]).agg(["sum", "size"])


def _sonnet_never(evidence: Evidence) -> Finding:
    counts = _drifted(evidence)
    if SONNET not in counts.index:
        return Finding.missing("labels of Sonnet's stated goals (--labels)")
    drifted, n = int(counts["sum"][SONNET]), int(counts["size"][SONNET])
    return Finding(f"{drifted} of {n}", verdict(not drifted), n, "count of runs", _LABELLED)


def _mini_most(evidence: Evidence) -> Finding:
    counts = _drifted(evidence)
    if set(MODELS) - set(counts.index):
        return Finding.missing("labels of all four models' stated goals (--labels)")
    shares = (counts["sum"] / counts["size"]).loc[list(MODELS)]
    ours = ", ".join(f"{model} {share:.0%}" for model, share in shares.items())
    return Finding(ours, verdict(shares.idxmax() == MINI), int(counts["size"].sum()), "share of runs", _LABELLED)


def _tokens(evidence: Evidence, *, model: str) -> Finding:
    table = evidence.tokens
    known = table[table["model"] == model] if len(table) else table
    if known.empty:
        return Finding.missing(f"token counts of the phases of {model}")
    if not known["estimated"].all():
        known = known[~known["estimated"].astype(bool)]
    ours = known.set_index("n_instrumental")["tokens"]
    lengths = [length for length in LENGTHS if length in ours.index]
    told = ", ".join(f"{ours[length]:,.0f} ({length})" for length in lengths)
    n, method = int(known["n"].sum()), str(known["method"].iloc[0])
    if known["estimated"].any():
        # What a tokeniser of another year makes of the texts is not in them, so they neither bear out nor refute.
        return Finding(told, "runs missing", n, method, "the checkpoints kept no count of the phase")
    published = dict(zip(LENGTHS, PAPER_TOKENS[model], strict=True))
    close = all(abs(ours[length] / published[length] - 1) <= _CLOSE for length in lengths)
    absent = [str(length) for length in LENGTHS if length not in ours.index]
    note = f"not there for {', '.join(absent)}" if absent else ""
    holds = "runs missing" if absent and close else verdict(close)
    return Finding(told, holds, n, f"{method}; holds within {_CLOSE:.0%}", note)


GOALS: Final = (
    Statement("stated-behaviour", "Stated goals go with behaviour", "highly correlated", _with_behaviour),
    Statement("stated-sonnet", "Sonnet never states a drifted goal", "0", _sonnet_never),
    Statement("stated-mini", "GPT-4o mini states a drifted goal most often", "most often", _mini_most),
    *(
        Statement(
            f"tokens-{model}",
            f"Tokens of the instrumental phase of 2 to 64 quarters, {model}",
            ", ".join(f"{n:,} ({length})" for length, n in zip(LENGTHS, PAPER_TOKENS[model], strict=True)),
            partial(_tokens, model=model),
        )
        for model in MODELS
    ),
)
"""Statements on stated goals and tokens."""
