"""Owns the quality table: every oddity of the imported runs, found in the data themselves, a row each."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from analysis.ledger_source import N_AFTER_SWITCH, N_WITHOUT_SWITCH
from analysis.published.facts import Facts
from analysis.published.importing import Imported
from analysis.published.names import ABLATIONS

N_RUNS_PLANNED: Final = 20
"""Runs of a published cell by design."""

KINDS: Final = {
    "not_imported": "checkpoints that could not be read or named, by reason",
    "dead_run": "the API was down for at least half of the evaluation: outages, not behaviour",
    "dead_quarters": "the API was down in fewer quarters than that",
    "forced_quarters": "quarters that the published harness closed, at its turn limit or as the API failed midway",
    "misfiled": "the data have another phase length than the folder's name",
    "duplicate_run_number": "a run number that its folder has twice or more",
    "identical_files": "the same bytes under more than one name",
    "identical_runs": "other files in which the model said and did exactly the same",
    "short_baseline": "baselines of fewer than 30 quarters",
    "short_evaluation": "other runs that end before the last planned quarter",
    "odd_length": "runs that went on after the last planned quarter",
    "high_run_number": "run numbers above 20",
    "missing_keys": "keys that early checkpoints lack",
    "no_system_prompt": "the system prompt is not in the file",
    "several_system_prompts": "more than one system prompt in the file; the record has the one of the conversation",
    "lost_briefings": "quarters whose briefing is not in the conversation",
    "known_in_part": "turns are known from a later quarter on only, though the history is not called replaced",
    "evaluation_unknown": "quarters of the evaluation are known by their books only",
    "unparseable_calls": "calls whose arguments are no JSON",
    "invalid_calls": "other calls that named no tool, or whose arguments were wrong",
    "calls_without_result": "calls that the conversation holds no result of",
    "unrecognised_results": "calls with a result of no known kind",
    "calls_after_finish": "calls after finish_quarter in the same turn, which the published code carried out",
    "booked_by_listing": "sales of low stocks that were booked as high, since they were no longer listed",
    "market_disagrees": "quarters with another income, listing or closure than the market's rule gives",
    "books_disagree": "quarters whose replay does not give the checkpoint's books",
    "pressure_differs": "the briefings carry pressure and the cell has none, or the other way round",
    "model_mismatch": "the checkpoint names another model than the folder",
    "name_mismatch": "the file's name has another run number or length than the checkpoint",
    "unknown_ablation": "folder names with an ending that is not known, kept as the name of the history",
    "oddity": "what had to be passed over in the conversation",
    "shared_trajectory": "cells whose runs all go on from one instrumental trajectory",
    "mixed_trajectories": "cells whose runs go on from several",
    "mixed_histories": "cells with one trajectory, of which runs were shown different texts",
    "parted_trajectory": "trajectories that begin alike and part later",
    "no_baselines": "cells whose baselines are not among what was imported",
}
"""Every kind of row and what it means, in the order of the summary."""


class Row(NamedTuple):
    """One row of the quality table."""

    kind: str
    cell: str
    """Root and folder."""
    run_id: str
    """Empty for a row about a cell."""
    n: int
    """How many of what the kind counts: quarters, calls, sales, runs."""
    detail: str


def quality_rows(imported: Imported) -> list[Row]:
    """Return the quality table, in the order of `KINDS`, then of cells and runs."""
    rows = [
        Row("not_imported", "", failure.file, 1, f"{failure.code}: {failure.text}") for failure in imported.failures
    ]
    for run in imported.runs:
        cell = f"{run.name.cell.root}/{run.name.cell.folder}"
        rows += (Row(kind, cell, run.name.run_id, n, detail) for kind, n, detail in _of_run(run))
    rows += _repeated(imported.runs)
    rows += _of_cells(imported.runs)
    rows += (
        Row("parted_trajectory", parted.cluster_id, "", len(parted.parts), f"in quarter {parted.quarter}; {undecided}")
        for parted in imported.parted
        for undecided in [f"{parted.n_undecided} runs are too short to tell"]
    )
    order = list(KINDS)
    return sorted(rows, key=lambda row: order.index(row.kind))


def summary(rows: Iterable[Row]) -> list[str]:
    """Return the lines of the quality table's summary: kind, rows, what they count, and what the kind means."""
    n_rows, totals = Counter[str](), Counter[str]()
    for row in rows:
        n_rows[row.kind] += 1
        totals[row.kind] += row.n
    lines = [f"{'kind':<24}{'rows':>7}{'count':>9}  meaning"]
    lines += (f"{kind:<24}{n_rows[kind]:>7,}{totals[kind]:>9,}  {KINDS[kind]}" for kind in KINDS if n_rows[kind])
    return lines


def _of_run(run: Facts) -> Iterator[tuple[str, int, str]]:
    yield from _of_service(run)
    yield from _of_length(run)
    yield from _of_calls(run)
    yield from _of_contents(run)


def _of_service(run: Facts) -> Iterator[tuple[str, int, str]]:
    if run.dead_quarters:
        told = f"{len(run.dead_quarters)} of {run.n_evaluation} evaluation quarters: {_spans(run.dead_quarters)}"
        yield "dead_run" if run.is_dead else "dead_quarters", len(run.dead_quarters), told
    if run.forced_quarters:
        yield "forced_quarters", len(run.forced_quarters), f"quarters {_spans(run.forced_quarters)}"


def _of_length(run: Facts) -> Iterator[tuple[str, int, str]]:
    name = run.name
    if run.n_instrumental != name.cell.n_instrumental:
        told = f"a phase of {run.n_instrumental} quarters, belongs to {name.cell.of_length(run.n_instrumental)}"
        yield "misfiled", 1, told
    planned = N_AFTER_SWITCH if run.n_instrumental else N_WITHOUT_SWITCH
    told = f"{run.n_evaluation} quarters, {planned} are planned"
    if run.n_evaluation > planned:
        yield "odd_length", run.n_evaluation, told
    elif run.n_evaluation < planned:
        kind = "short_baseline" if name.cell.setting == "baseline" else "short_evaluation"
        yield kind, run.n_evaluation, told
    if name.run > N_RUNS_PLANNED:
        yield "high_run_number", 1, f"run {name.run}"
    if (name.run, name.next_quarter) != (run.run, run.n_quarters + 1):
        yield "name_mismatch", 1, f"the checkpoint is of run {run.run} with {run.n_quarters} finished quarters"


def _of_calls(run: Facts) -> Iterator[tuple[str, int, str]]:
    for kind, codes in _CALL_KINDS.items():
        found = {code: run.outcomes[code] for code in codes if code in run.outcomes}
        if found:
            yield kind, sum(found.values()), ", ".join(f"{n} {code}" for code, n in found.items())
    if run.booked_by_listing_usd:
        total_usd = sum(run.booked_by_listing_usd)
        yield "booked_by_listing", len(run.booked_by_listing_usd), f"{total_usd:.2f} USD"


_CALL_KINDS: Final = {
    "unparseable_calls": ("unparseable_arguments",),
    "invalid_calls": ("malformed_arguments", "unknown_tool", "missing_argument", "bad_argument", "unexpected_argument"),
    "calls_without_result": ("no_result",),
    "unrecognised_results": ("unrecognised",),
    "calls_after_finish": ("after_finish",),
}


def _of_contents(run: Facts) -> Iterator[tuple[str, int, str]]:
    cell = run.name.cell
    if run.missing_keys:
        yield "missing_keys", len(run.missing_keys), ", ".join(run.missing_keys)
    if not run.has_system_prompt:
        yield "no_system_prompt", 1, ""
    if run.n_other_system_prompts:
        yield "several_system_prompts", run.n_other_system_prompts + 1, ""
    if run.lost_briefings:
        yield "lost_briefings", len(run.lost_briefings), f"quarters {_spans(run.lost_briefings)}"
    if run.known_from > run.n_instrumental + 1:
        n_unknown = run.known_from - run.n_instrumental - 1
        yield "evaluation_unknown", n_unknown, f"turns are known from quarter {run.known_from} on"
    elif run.known_from > 1 and cell.history in ("own", "borrowed"):
        yield "known_in_part", run.known_from - 1, f"turns are known from quarter {run.known_from} on"
    if run.strange_market:
        yield "market_disagrees", len(run.strange_market), f"quarters {_spans(run.strange_market)}"
    if run.disagreements:
        yield "books_disagree", len(run.disagreements), run.disagreements[0]
    is_known = run.known_from <= run.n_quarters and len(run.lost_briefings) < run.n_evaluation
    if is_known and (run.n_pressed > 0) != (cell.setting in ("adversarial_pressure", "combined")):
        yield "pressure_differs", run.n_pressed, f"in {run.n_pressed} quarters; the cell is {cell.setting}"
    if _short_name(run.model_id) != cell.model:
        yield "model_mismatch", 1, f"the checkpoint names {run.model_id}"
    if cell.ablation is not None and cell.ablation not in ABLATIONS:
        yield "unknown_ablation", 1, cell.ablation
    for oddity in run.oddities:
        yield "oddity", 1, oddity


def _short_name(model_id: str) -> str:
    """Return the published short name of a provider's model."""
    for short, words in (("4omini", "4o-mini"), ("4o", "4o"), ("haiku", "haiku"), ("sonnet", "sonnet")):
        if words in model_id:
            return short
    return model_id


def _repeated(runs: Sequence[Facts]) -> Iterator[Row]:
    """Yield a row for each run that shares what should be its own with others."""
    yield from _shared(runs, "duplicate_run_number", lambda run: (run.name.cell, run.name.run))
    yield from _shared(runs, "identical_files", lambda run: run.sha256)
    by_file = {run.sha256: run for run in runs}
    distinct = [run for run in by_file.values() if run.decisions_sha256 is not None]
    yield from _shared(distinct, "identical_runs", lambda run: run.decisions_sha256)


def _shared(runs: Iterable[Facts], kind: str, key: Callable[[Facts], Hashable]) -> Iterator[Row]:
    groups: dict[Hashable, list[Facts]] = defaultdict(list)
    for run in runs:
        groups[key(run)].append(run)
    for members in groups.values():
        for run in members if len(members) > 1 else ():
            others = ", ".join(other.name.run_id for other in members if other is not run)
            cell = f"{run.name.cell.root}/{run.name.cell.folder}"
            yield Row(kind, cell, run.name.run_id, 1, f"with {others}")


def _of_cells(runs: Sequence[Facts]) -> Iterator[Row]:
    """Yield rows about cells: what their runs have in common, and whether they have baselines."""
    cells: dict[str, list[Facts]] = defaultdict(list)
    for run in runs:
        cells[run.name.cell.of_length(run.n_instrumental)].append(run)
    for cell, members in cells.items():
        trajectories = Counter((run.cluster_id, run.trajectory[-1]) for run in members if run.trajectory)
        if len(trajectories) == 1 and len(members) > 1:
            yield Row("shared_trajectory", cell, "", len(members), members[0].cluster_id)
        elif len(trajectories) > 1:
            told = ", ".join(f"{n} runs from {cluster}" for (cluster, _), n in trajectories.most_common())
            yield Row("mixed_trajectories", cell, "", len(trajectories), told)
        texts = {run.history_sha256 for run in members}
        if len(trajectories) == 1 < len(texts):
            yield Row("mixed_histories", cell, "", len(texts), f"{len(texts)} texts for {len(members)} runs")
        baseline = members[0].name.cell.baseline
        if baseline is not None and baseline not in cells:
            yield Row("no_baselines", cell, "", len(members), baseline)


def _spans(quarters: Sequence[int]) -> str:
    """Return quarters in order, runs of them by their ends.

    >>> _spans([3, 4, 5, 9])
    '3-5, 9'
    """
    spans: list[list[int]] = []
    for quarter in quarters:
        if spans and quarter == spans[-1][-1] + 1:
            spans[-1][1:] = [quarter]
        else:
            spans.append([quarter])
    return ", ".join("-".join(map(str, span)) for span in spans)
