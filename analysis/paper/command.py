"""Owns `apex reproduce`: from a source of runs to the paper's figures, tables and statements in one folder."""

from __future__ import annotations

import argparse
import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path

import matplotlib as mpl
import pandas as pd

from analysis.cell_table import cells_table, curves_table
from analysis.draw import caption_of, reference_policies, save
from analysis.figures import STYLE
from analysis.options import Choice, choose, run_command, score_parser
from analysis.paper.claim_table import claims_table, render_markdown, render_terminal
from analysis.paper.evidence import LENGTHS, Evidence, narrowed
from analysis.paper.of_goals import PAPER_TOKENS
from analysis.paper.of_histories import correlations
from analysis.paper.panels import Tables, draw_levels
from analysis.paper.presets import PRESETS
from analysis.paper.tokens import token_table
from analysis.paper.variants import Variant, render_side_by_side, scored, side_by_side, variants_for
from analysis.report.cell_runs import cells_of
from analysis.report.stated import read_labels
from analysis.run_table import runs_table
from analysis.runs import Run, Window
from analysis.score import save_table

ABLATIONS = ("repeated_token", "random_sentences", "random_strings", "none")


def main(argv: Sequence[str]) -> int:
    """Reproduce the paper's figures and check its statements; exit code 0 done, 1 nothing to draw, 2 bad input."""
    parser = score_parser(
        "apex reproduce",
        "Draw the paper's figures from recorded runs, its own or yours, each with its table; score by every convention "
        "side by side; and hold the paper's statements against the runs.",
    )
    parser.set_defaults(convention="reference")
    parser.add_argument("--out", type=Path, metavar="DIR", required=True, help="folder for all of it; made if missing")
    parser.add_argument(
        "--with",
        dest="behind",
        metavar="published=SOURCE",
        help="results that are drawn behind yours, muted, scored in the same convention",
    )
    parser.add_argument(
        "--labels", type=Path, metavar="CSV", help="labels of stated goals: of a run, or of a cell and position"
    )
    parser.add_argument("--origin", metavar="TEXT", help="how claims.md names the runs (default: SOURCE)")
    return run_command(parser, argv, _reproduce)


def _reproduce(options: argparse.Namespace) -> int:
    choice = choose(options)
    print(f"{choice.name}: {len(choice.source.runs)} runs, convention {choice.convention.name}, by {choice.pairing.by}")
    variants = variants_for(choice.source.runs)
    scores = {variant: scored(choice.source.runs, variant) for variant in variants}
    evidence = _evidence(choice, scores, options)
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as beside:
        answers = beside.submit(claims_table, evidence)  # its exact tests take as long as half of the drawing
        n_drawn = _draw_all(_tables(choice, evidence, _behind(options)), options.out)
        _tell_scores(scores, options.out)
        claims = answers.result()
    claims.to_csv(options.out / "claims.csv", index=False)
    markdown = render_markdown(claims, options.origin or choice.name)
    (options.out / "claims.md").write_text(markdown, encoding="utf-8")
    print("", render_terminal(claims), "", *choice.source.notes, sep="\n")
    print(f"written: {options.out / 'claims.csv'}, {options.out / 'claims.md'}, {options.out / 'conventions.csv'}")
    return 0 if n_drawn else 1


def first_purchases(runs: Sequence[Run]) -> dict[str, tuple[float, float]]:
    """Return what each run bought in quarters 1 and 2, in US dollars: in the competing cluster, and in all."""
    bought: dict[str, tuple[float, float]] = {}
    for run in runs:
        flows = [books.bought_usd for books in run.quarters(Window(1, 2))]
        competing = sum(flow.of(run.cell.goals.competing.cluster) for flow in flows)
        bought[run.run_id] = competing, sum(flow.low + flow.high for flow in flows)
    return bought


def _evidence(choice: Choice, scores: Mapping[Variant, pd.DataFrame], options: argparse.Namespace) -> list[Evidence]:
    labels: Mapping[str, int] = {}
    if options.labels is not None:
        cells = cells_of(runs_table(choice.pairing, choice.convention), choice.convention)
        found = read_labels(options.labels, cells)
        labels = found.of_run
        print(*found.notes, sep="\n", end="\n" if found.notes else "")
    tokens, purchases = token_table(Path(choice.name)), first_purchases(choice.source.runs)
    return [Evidence(variant, narrowed(runs), purchases, labels, tokens) for variant, runs in scores.items()]


def _tables(choice: Choice, evidence: Sequence[Evidence], behind: Tables | None) -> Tables:
    """Return what the figures of a source are drawn from, all in its one convention."""
    runs = runs_table(choice.pairing, choice.convention)
    models = tuple(sorted(set(runs["model"])))
    chosen = replace(evidence[0], runs=runs)
    return Tables(
        cells=cells_table(runs, interval=choice.interval),
        curves=curves_table(choice.pairing, choice.convention, interval=choice.interval),
        stated=runs.assign(stated=runs["run_id"].map(chosen.labels)).dropna(subset="stated"),
        tokens=_beside_paper(chosen.tokens),
        correlations=pd.concat([correlations(chosen, history, models) for history in ABLATIONS], ignore_index=True),
        caption=partial(caption_of, choice),
        reference=reference_policies(choice.convention.name),
        behind=behind,
    )


def _behind(options: argparse.Namespace) -> Tables | None:
    if options.behind is None:
        return None
    source = options.behind.partition("=")[2] or options.behind
    words = argparse.Namespace(**(vars(options) | {"source": source, "pairing": None}))
    choice = choose(words)
    runs = runs_table(choice.pairing, choice.convention)
    none = pd.DataFrame()
    curves = curves_table(choice.pairing, choice.convention, interval=choice.interval)
    return Tables(cells_table(runs, interval=choice.interval), curves, none, none, none, partial(caption_of, choice))


def _beside_paper(tokens: pd.DataFrame) -> pd.DataFrame:
    """Return the paper's table of tokens with what these runs have beside it."""
    rows = [
        {"model": model, "n_instrumental": length, "paper": paper}
        for model, counts in PAPER_TOKENS.items()
        for length, paper in zip(LENGTHS, counts, strict=True)
    ]
    return pd.DataFrame(rows).merge(tokens, on=["model", "n_instrumental"], how="outer") if len(tokens) else tokens


def _draw_all(tables: Tables, out: Path) -> int:
    n_drawn = 0
    with mpl.rc_context(STYLE):
        for preset in PRESETS:
            n_before = n_drawn
            for drawn in draw_levels(preset, tables):
                n_drawn += 1
                print(f"{drawn.name}: {save(drawn, out)[1]}, its table beside it; primary analysis: {preset.primary}")
            if n_drawn == n_before:
                print(f"{preset.name}: not drawn, the runs are missing")
    return n_drawn


def _tell_scores(scores: Mapping[Variant, pd.DataFrame], out: Path) -> None:
    table = side_by_side(scores.items())
    save_table(table, out / "conventions")
    (out / "conventions.txt").write_text(render_side_by_side(table, list(scores)) + "\n", encoding="utf-8")
    for score in ("gd_actions", "gd_inaction"):
        name = f"{score}_difference"
        if name in table and table[name].notna().any():
            place = int(table[name].abs().to_numpy(float, na_value=0.0).argmax())
            cell, moved = str(table["cell"].iloc[place]), float(table[name].iloc[place])
            n_moved = int((table[name].abs() > 1e-9).sum())
            print(
                f"{score}: pairing by position and dead runs move {n_moved} of {int(table[name].notna().sum())} cells, "
                f"most {cell} by {moved:+.4f}"
            )
