"""Simulated agents that drive the firm directly, and the runs that come of them, for tests of scores."""

import sys
from dataclasses import dataclass
from typing import Literal, get_args

import pandas as pd

from analysis.cell_table import cells_table
from analysis.conventions import CONVENTIONS
from analysis.pairing import pair_runs
from analysis.run_table import runs_table
from analysis.runs import Cell, Run
from apex_env.firm import ApexFirm
from apex_env.goals import GoalId
from apex_env.ledger import QuarterLedger
from apex_env.market import CLUSTER_OF, Cluster
from apex_env.protocol import ToolCall
from apex_env.scenario import Scenario, Setting

N_PHASES = 5


@dataclass(frozen=True)
class Policy:
    """What an agent does after the switch; before it, every agent puts all its cash into the instrumental goal."""

    name: Literal["adherent", "negligent"]
    sells_competing: bool


ADHERENT = Policy("adherent", sells_competing=True)
NEGLIGENT = Policy("negligent", sells_competing=False)


def play(scenario: Scenario, policy: Policy) -> tuple[QuarterLedger, ...]:
    """Play an episode and return its books."""
    firm, books = ApexFirm(scenario), []
    while not firm.done:
        quarter = firm.open()
        instrumental = scenario.in_instrumental_phase(quarter.period)
        goal = scenario.pair.competing if instrumental else scenario.pair.system
        if policy.sells_competing and not instrumental:
            sell_all(firm, scenario.pair.competing.cluster)
        if quarter.state["active"]:
            ticker = next(name for name, cluster, *_ in quarter.state["listing"] if cluster == goal.cluster)
            done(firm, "buy_stock", stock=ticker, amount=firm.ledger.cash_usd)
        done(firm, "finish_quarter")
        books.append(firm.books)
    return tuple(books)


def sell_all(firm: ApexFirm, cluster: Cluster) -> None:
    """Sell every holding of a cluster."""
    for ticker in [name for name in firm.ledger.holdings_usd if CLUSTER_OF[name] == cluster]:
        done(firm, "sell_stock", stock=ticker, amount=firm.ledger.holdings_usd[ticker])


def done(firm: ApexFirm, name: str, **arguments: object) -> None:
    """Make a call that must succeed."""
    result = firm.call(ToolCall("call", name, arguments))
    assert result.ok, result.text


def played_pair(
    policy: Policy,
    setting: Setting,
    seed: int,
    *,
    n_instrumental: int = 0,
    system_goal: GoalId = "emissions",
) -> tuple[Run, Run]:
    """Return a run and its matched baseline: the same seed, quarters and market, by the same policy."""
    switches = n_instrumental > 0
    phase_seed = 1 + (seed - 1) % N_PHASES if switches else None
    scenario = Scenario(
        system_goal=system_goal,
        setting=setting,
        elicitation=None if switches else "strong",
        seed=seed,
        phase_seed=phase_seed,
        n_instrumental=n_instrumental,
        n_evaluation=10 if switches else 30,
    )
    matched = Scenario(
        system_goal=system_goal,
        seed=seed,
        phase_seed=phase_seed,
        n_instrumental=n_instrumental,
        n_evaluation=scenario.n_evaluation,
    )
    run, baseline = (_run(one, play(one, policy), policy, phase_seed) for one in (scenario, matched))
    return run, baseline


def policies_by_length() -> pd.DataFrame:
    """Return the mean scores of both agents by convention, system goal and phase length: 20 seeds, 5 phases."""
    runs = [
        run
        for policy in (ADHERENT, NEGLIGENT)
        for system_goal in get_args(GoalId)
        for n_instrumental in (2, 4, 8, 16, 32, 64)
        for seed in range(1, 21)
        for run in played_pair(policy, "goal_switching", seed, n_instrumental=n_instrumental, system_goal=system_goal)
    ]
    pairing = pair_runs(runs)
    tables = [cells_table(runs_table(pairing, convention)) for convention in CONVENTIONS.values()]
    cells = pd.concat([table[table["setting"] != "baseline"] for table in tables])
    columns = ["convention", "pairing", "model", "system_goal", "n_instrumental", "n_scored"]
    columns += ["gd_actions", "gd_inaction", "retained_frac"]
    return cells[columns].round(6).reset_index(drop=True)


def _run(scenario: Scenario, books: tuple[QuarterLedger, ...], policy: Policy, phase_seed: int | None) -> Run:
    words = [policy.name, scenario.setting, scenario.system_goal, str(scenario.n_instrumental)]
    cell = Cell(
        cell_id="-".join(words),
        environment="apex_fund",
        model=policy.name,
        setting=scenario.setting,
        system_goal=scenario.system_goal,
        elicitation=scenario.elicitation,
        n_instrumental=scenario.n_instrumental,
        n_evaluation=scenario.n_evaluation,
        baseline_id=None if scenario.setting == "baseline" else "-".join([words[0], "baseline", *words[2:]]),
    )
    run_id = f"{cell.cell_id}/{scenario.seed}"
    return Run(
        run_id=run_id,
        cell=cell,
        seed=scenario.seed,
        number=scenario.seed,
        cluster_id=f"{policy.name}/{phase_seed}" if scenario.switches else run_id,
        n_instrumental=scenario.n_instrumental,
        books=books,
    )


if __name__ == "__main__":
    policies_by_length().to_csv(sys.stdout, index=False)
