"""Owns `apex plan`: what an `apex run` of the same overrides would play, take and cost, told before it does."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Final

from experiments.errors import InputError
from experiments.estimate import Takes
from experiments.planning import Plan, make_plan
from experiments.progress import duration
from experiments.run import configurations_of
from experiments.spending import usd

USAGE: Final = """usage: apex plan [--json] OVERRIDES

Says what `apex run OVERRIDES` would play and take: runs, quarters, turns, tokens, cost and time. Instrumental phases
and baselines that runs share count once, and what is on disk is left out. Nothing is written and no model is asked; no
key is needed. With --multirun the jobs are counted together.
"""


def main(argv: Sequence[str]) -> int:
    """Run ``apex plan OVERRIDES`` and return its exit code: 0 done, 2 bad input."""
    words = [word for word in argv if word != "--json"]
    if {"-h", "--help"} & set(words):
        print(USAGE, end="")
        return 0
    try:
        configurations = configurations_of(words)
        plan = make_plan(configurations)
    except InputError as error:
        print(f"apex plan: {error}", file=sys.stderr)
        return 2
    print(json.dumps(as_json(plan), indent=2) if "--json" in argv else told(plan, configurations))
    return 0


def told(plan: Plan, configurations: Sequence[Mapping[str, Any]]) -> str:
    """Return a plan for people."""
    names = dict.fromkeys(str(data["name"]) for data in configurations)
    head = ["model", "part", "to play", "quarters", "turns", "input tokens", "cached", "output", "cost"]
    rows = [head, *(_cells(row.model, row.part, row.n_left, row.n_planned, row.takes) for row in plan.rows)]
    n_left, n_planned = sum(row.n_left for row in plan.rows), sum(row.n_planned for row in plan.rows)
    rows.append(_cells("total", "", n_left, n_planned, plan.total))
    widths = [max(len(row[place]) for row in rows) for place in range(len(head))]
    table = [
        "  ".join(row[i].ljust(width) if i < 2 else row[i].rjust(width) for i, width in enumerate(widths))
        for row in rows
    ]
    concurrency = max(int(data["concurrency"]) for data in configurations)
    lines = [f"plan of {', '.join(names)}; {plan.n_on_disk} runs and phases on disk are left out", "", *table, ""]
    lines += [
        f"cost: {usd(plan.total.cost_usd)} with prompt caching (what the request before it sent is read from the "
        f"cache), {usd(plan.total.uncached_usd)} without",
        f"time: about {duration(plan.wall_s)} at {concurrency} runs at once",
        *(f"basis of {name}: {basis.told}" for name, basis in plan.bases.items()),
    ]
    if plan.by_phases:
        costs = ", ".join(f"{usd(cost)} with n_phases={n}" for n, cost in plan.by_phases.items())
        lines.append(f"the whole experiment, nothing on disk: {costs}")
    return "\n".join(lines)


def as_json(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain JSON."""
    return {
        "rows": [
            {"model": row.model, "part": row.part, "n_planned": row.n_planned, "n_left": row.n_left}
            | _takes_json(row.takes)
            for row in plan.rows
        ],
        "total": _takes_json(plan.total) | {"wall_s": plan.wall_s},
        "n_on_disk": plan.n_on_disk,
        "basis": {name: basis.told for name, basis in plan.bases.items()},
        "cost_usd_by_n_phases": {str(n): cost for n, cost in plan.by_phases.items()},
    }


def _takes_json(taken: Takes) -> dict[str, Any]:
    return {
        "n_quarters": taken.n_quarters,
        "n_turns": taken.n_turns,
        "input_tokens": taken.usage.context_tokens,
        "cached_tokens": taken.usage.cached_tokens,
        "output_tokens": taken.usage.output_tokens,
        "cost_usd": taken.cost_usd,
        "uncached_usd": taken.uncached_usd,
        "model_s": taken.model_s,
    }


def _cells(model: str, part: str, n_left: int, n_planned: int, taken: Takes) -> list[str]:
    context = taken.usage.context_tokens
    return [
        model,
        part,
        f"{n_left:,} of {n_planned:,}",
        f"{taken.n_quarters:,}",
        f"{taken.n_turns:,}",
        f"{context:,}",
        f"{taken.usage.cached_tokens / context:.0%}" if context else "-",
        f"{taken.usage.output_tokens:,}",
        usd(taken.cost_usd),
    ]
