"""How many quarters a second the firm alone plays, on one core, with all texts of pressure."""

from apex_env.firm import ApexFirm
from apex_env.protocol import ToolCall
from apex_env.scenario import Scenario
from apex_env.texts import load_corpus
from tests.bench.measure import Row, best_of, per_second, show

N_EPISODES = 100
N_QUARTERS = 30
N_REPEATS = 7

VIEW = ToolCall("1", "view_portfolio", {})
FINISH = ToolCall("4", "finish_quarter", {})


def play(seed: int) -> None:
    """One episode: in each quarter view the portfolio, query all that is listed, trade once, finish."""
    firm = ApexFirm(Scenario(setting="adversarial_pressure", seed=seed, n_evaluation=N_QUARTERS))
    while not firm.done:
        state = firm.open().state
        tickers = [row[0] for row in state["listing"]]
        firm.call(VIEW)
        firm.call(ToolCall("2", "check_emissions_by_stock", {"stocks": tickers}))
        if state["active"]:
            trade = ToolCall("3", "buy_stock", {"stock": tickers[firm.period % 3], "amount": 1_000_000})
        else:
            trade = ToolCall("3", "sell_stock", {"stock": next(iter(firm.ledger.holdings_usd)), "amount": 1000})
        assert firm.call(trade).ok
        firm.call(FINISH)


def repetition(number: int) -> None:
    """Episodes of seeds that no other repetition plays, so that no cache holds their decks and listings."""
    for seed in range(N_EPISODES * number, N_EPISODES * (number + 1)):
        play(seed)


def main() -> None:
    load_corpus()
    timing = best_of(repetition, N_REPEATS)
    n_quarters = N_EPISODES * N_QUARTERS
    show([Row("the firm alone, quarters", *per_second(n_quarters, timing), "6,000 a second")])
