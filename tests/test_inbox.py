"""Which items reach the agent in a quarter, and why."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apex_env.inbox import CorpusExhausted, Inbox, Standing, check_enough, needed_items
from apex_env.scenario import PRESSURE_KINDS, Scenario
from apex_env.texts import Corpus, Item, load_corpus
from tests.firms import COMBINED, PRESSURE, SWITCHING, listed, make_firm, next_quarter, ok

MAILS = ("stakeholder_mail", "employee_mail")


def kinds(standing: Standing, **scenario: Any) -> Counter[str]:
    """What a fresh inbox deals in one quarter, by kind."""
    return Counter(item.kind for item in Inbox(Scenario(**scenario), load_corpus()).deal(standing))


def many(quarter: int, *, on_goal: bool, n: int = 600, **scenario: Any) -> list[Counter[str]]:
    return [kinds(Standing(quarter, seed, on_goal), **scenario) for seed in range(n)]


def seen(counts: list[Counter[str]], kind: str) -> set[int]:
    """The numbers of items of a kind that occur."""
    return {count[kind] for count in counts}


def small_corpus(n: int) -> Corpus:
    """A corpus with n items of every kind and goal."""
    full = load_corpus()
    items = {key: loaded[:n] for key, loaded in full.items.items()}
    return replace(full, items=items)


def test_every_quarter_has_one_or_two_general_news_first():
    counts = many(1, on_goal=False)
    assert seen(counts, "general_news") == {1, 2}
    assert all(set(count) == {"general_news"} for count in counts)
    # 600 draws: the mean of 1.5 has a standard deviation of .02.
    assert sum(count["general_news"] for count in counts) / 600 == pytest.approx(1.5, abs=0.08)


@pytest.mark.parametrize("scenario", [{}, SWITCHING], ids=["baseline", "switching"])
def test_without_pressure_there_is_nothing_but_general_news(scenario):
    assert all(set(count) == {"general_news"} for count in many(4, on_goal=True, **scenario))


def test_pressure_begins_in_quarter_3_and_requests_come_from_the_first_one():
    for quarter in (1, 2):
        counts = many(quarter, on_goal=True, **PRESSURE)
        assert all(set(count) <= {"general_news", "coworker_request"} for count in counts)
        assert seen(counts, "coworker_request") == {1, 2}
    assert {kind for count in many(3, on_goal=True, **PRESSURE) for kind in count} == {
        "general_news",
        "pressure_news",
        "competitor_news",
        *MAILS,
        "coworker_request",
    }


def test_in_the_instrumental_phase_there_is_no_pressure():
    counts = many(4, on_goal=True, **(COMBINED | {"n_instrumental": 4}))
    assert all(set(count) == {"general_news"} for count in counts)


def test_on_goal_agent_is_pressed_against_the_stocks_of_its_goal():
    counts = many(10, on_goal=True, **PRESSURE)
    assert seen(counts, "pressure_news") == seen(counts, "competitor_news") == {0, 1, 2}
    assert seen(counts, "praise_news") == {0}


def test_agent_that_left_its_goal_is_praised_and_gets_no_mails():
    counts = many(10, on_goal=False, **PRESSURE)
    assert seen(counts, "praise_news") == {0, 1, 2}
    assert all(set(count) <= {"general_news", "praise_news", "coworker_request"} for count in counts)


def test_for_the_emissions_goal_mails_come_with_probability_two_thirds_each():
    counts = many(10, on_goal=True, n=1800, **PRESSURE)
    for kind in MAILS:
        assert seen(counts, kind) == {0, 1}
        # 1,800 draws: a standard deviation of .011.
        assert sum(count[kind] for count in counts) / 1800 == pytest.approx(2 / 3, abs=0.044)
    both = sum(count["stakeholder_mail"] and count["employee_mail"] for count in counts) / 1800
    assert both == pytest.approx(4 / 9, abs=0.047)


def test_for_the_profit_goal_one_or_two_mails_of_each_kind_come():
    counts = many(10, on_goal=True, system_goal="profit", **PRESSURE)
    assert [seen(counts, kind) for kind in MAILS] == [{1, 2}, {1, 2}]


@pytest.mark.parametrize(("quarter", "pressed"), [(4, False), (5, True), (6, True), (7, False)])
def test_two_quarters_after_a_switch_the_agent_is_pressed_whatever_it_bought(quarter, pressed):
    counts = many(quarter, on_goal=False, **(COMBINED | {"n_instrumental": 4, "n_evaluation": 10}))
    assert (seen(counts, "pressure_news") == {0, 1, 2}) == pressed
    assert (seen(counts, "stakeholder_mail") == {0, 1}) == pressed
    assert seen(counts, "competitor_news") == {0}
    if quarter > 4:
        assert (seen(counts, "praise_news") == {0, 1, 2}) != pressed


def test_without_a_switch_nobody_just_switched():
    counts = many(3, on_goal=False, n_instrumental=2, n_evaluation=10, **PRESSURE)
    assert seen(counts, "pressure_news") == {0}


def test_short_phase_leaves_the_first_two_quarters_of_all_without_pressure():
    counts = many(2, on_goal=True, **(COMBINED | {"n_instrumental": 1}))
    assert all(set(count) <= {"general_news", "coworker_request"} for count in counts)


def test_pressure_kinds_select_what_is_dealt_without_changing_the_rest():
    for seed in range(100):
        standing = Standing(10, seed, True)
        all_kinds = kinds(standing, **PRESSURE)
        for kind in PRESSURE_KINDS:
            rest = tuple(other for other in PRESSURE_KINDS if other != kind)
            expected = Counter({other: n for other, n in all_kinds.items() if other != kind})
            assert kinds(standing, pressure_kinds=rest, **PRESSURE) == +expected
        requests_only = kinds(standing, pressure_kinds=("coworker_request",), **PRESSURE)
        assert set(requests_only) <= {"general_news", "coworker_request"}


def test_unrelated_phase_deals_four_to_six_requests_a_quarter():
    counts = many(2, on_goal=False, **(SWITCHING | {"instrumental_goal": "requests"}))
    assert seen(counts, "coworker_request") == {4, 5, 6}
    assert all(set(count) == {"general_news", "coworker_request"} for count in counts)


def test_requests_come_last_and_general_news_first():
    for seed in range(50):
        dealt = [item.kind for item in Inbox(Scenario(**PRESSURE), load_corpus()).deal(Standing(9, seed, True))]
        n_general = dealt.count("general_news")
        assert dealt[:n_general] == ["general_news"] * n_general
        requests = dealt.count("coworker_request")
        assert dealt[-requests:] == ["coworker_request"] * requests


@given(
    st.integers(0, 8191), st.lists(st.booleans(), min_size=30, max_size=30), st.sampled_from(["emissions", "profit"])
)
def test_no_item_is_shown_twice_whatever_the_agent_does(seed, on_goal, goal):
    inbox = Inbox(Scenario(system_goal=goal, seed=seed, **PRESSURE), load_corpus())
    dealt = [item.item_id for t, at in enumerate(on_goal, 1) for item in inbox.deal(Standing(t, seed, at))]
    assert len(set(dealt)) == len(dealt)
    assert inbox.dealt == tuple(dealt)


def test_what_is_dealt_of_one_kind_does_not_change_which_of_another_comes():
    everything, requests = (
        Inbox(Scenario(**PRESSURE | more), load_corpus()) for more in ({}, {"pressure_kinds": ("coworker_request",)})
    )
    for quarter in range(1, 31):
        pair = [inbox.deal(Standing(quarter, 7, quarter % 2 == 0)) for inbox in (everything, requests)]
        both = [[i.item_id for i in dealt if i.kind in ("general_news", "coworker_request")] for dealt in pair]
        assert both[0] == both[1]


def test_branch_deals_from_its_own_seed_and_skips_what_its_parent_saw():
    scenario = Scenario(setting="combined", elicitation=None, n_instrumental=2, n_evaluation=10, seed=9, phase_seed=1)
    phase, corpus = Inbox(scenario, load_corpus()), load_corpus()
    for quarter in (1, 2):
        phase.deal(Standing(quarter, 1))
    child = Inbox(scenario, corpus, phase.dealt)
    dealt = [item.item_id for quarter in range(3, 13) for item in child.deal(Standing(quarter, 9))]
    assert not set(dealt) & set(phase.dealt)
    assert child.dealt[: len(phase.dealt)] == phase.dealt


def test_phase_does_not_depend_on_its_length():
    short, long = (
        Inbox(Scenario(setting="combined", elicitation=None, n_instrumental=n, n_evaluation=10), load_corpus())
        for n in (2, 32)
    )
    assert [short.deal(Standing(q, 1)) for q in (1, 2)] == [long.deal(Standing(q, 1)) for q in (1, 2)]


@pytest.mark.parametrize("goal", ["emissions", "profit"])
@pytest.mark.parametrize(
    "scenario",
    [
        PRESSURE,
        COMBINED | {"n_instrumental": 64, "n_evaluation": 10},
        COMBINED | {"n_instrumental": 64, "n_evaluation": 10, "instrumental_goal": "requests"},
    ],
    ids=["pressure", "combined", "unrelated"],
)
def test_embedded_corpus_is_enough_for_the_longest_runs(scenario, goal):
    check_enough(Scenario(system_goal=goal, **scenario), load_corpus())


def test_corpus_that_could_run_out_is_refused_before_the_start_with_what_is_missing():
    scenario = Scenario(**PRESSURE)
    # 28 quarters from quarter 3 on with up to two pieces of pressure news; 30 with up to two general ones.
    assert needed_items(scenario)["pressure_news"] == 56
    with pytest.raises(CorpusExhausted, match=r"has 55 items of kind 'general_news'.*can need 60: 5 missing"):
        Inbox(scenario, small_corpus(55))
    with pytest.raises(
        CorpusExhausted, match=r"'pressure_news' for system goal 'emissions'; adversarial_pressure of 50"
    ):
        Inbox(Scenario(n_evaluation=50, **PRESSURE), load_corpus())


def test_needs_follow_the_treatment():
    assert needed_items(Scenario()) == {"general_news": 60}
    emissions = needed_items(Scenario(**PRESSURE))
    profit = needed_items(Scenario(system_goal="profit", **PRESSURE))
    assert (emissions["stakeholder_mail"], profit["stakeholder_mail"]) == (28, 56)
    assert emissions["coworker_request"] == 60
    unrelated = COMBINED | {"n_instrumental": 4, "n_evaluation": 10, "instrumental_goal": "requests"}
    assert needed_items(Scenario(**unrelated))["coworker_request"] == 4 * 6 + 10 * 2
    alone = needed_items(Scenario(setting="combined", elicitation=None, n_instrumental=1, n_evaluation=0))
    assert alone["pressure_news"] == 0 and alone["general_news"] == 2


def test_just_enough_items_never_run_out():
    corpus, scenario = small_corpus(60), Scenario(**PRESSURE)
    for seed in range(20):
        inbox = Inbox(scenario, corpus)
        assert all(inbox.deal(Standing(quarter, seed, True)) for quarter in range(1, 31))


def test_requests_put_together_from_parts_come_after_the_complete_ones():
    inbox = Inbox(Scenario(**(SWITCHING | {"instrumental_goal": "requests", "n_instrumental": 60})), load_corpus())
    dealt = [item for quarter in range(1, 61) for item in inbox.deal(Standing(quarter, 1))]
    rounds = [item.round for item in dealt if item.kind == "coworker_request"]
    assert rounds == sorted(rounds) and set(rounds) >= {0, 1, 2}
    first_round = [item.title for item in dealt if item.round == 1]
    assert len(set(first_round)) == len(first_round)


def pressure_items() -> list[Item]:
    return [load_corpus().of_kind(kind, "emissions")[0] for kind in PRESSURE_KINDS]


def yoked(plan: dict[int, list[str]], *, dealt: tuple[str, ...] = (), after: int = 0) -> Inbox:
    scenario = Scenario(pressure_schedule="yoked", **PRESSURE)
    return Inbox(scenario, load_corpus(), dealt, plan, after)


def test_yoked_agent_gets_the_items_of_the_other_run_whatever_it_does():
    ids = [item.item_id for item in pressure_items()]
    for on_goal in (True, False):
        dealt = yoked({3: ids, 4: []}).deal(Standing(3, 1, on_goal))
        assert [item.item_id for item in dealt if item.kind != "general_news"] == ids
    own = [item.item_id for item in yoked({3: ids}).deal(Standing(3, 1)) if item.kind == "general_news"]
    adaptive = [i for i in Inbox(Scenario(**PRESSURE), load_corpus()).deal(Standing(3, 1)) if i.kind == "general_news"]
    assert own == [item.item_id for item in adaptive]


@pytest.mark.parametrize(
    ("plan", "more", "told"),
    [
        ({3: ["no-such-id"]}, {}, "item 'no-such-id' of the yoked run in quarter 3 is not in the corpus"),
        ({3: ["{0}"], 5: ["{0}"]}, {}, "in quarter 5 would be shown twice: it was dealt by quarter 3"),
        ({3: ["{0}"]}, {"dealt": ("{0}",), "after": 2}, "in quarter 3 would be shown twice: it was dealt by quarter 2"),
    ],
    ids=["unknown", "twice", "dealt before"],
)
def test_yoked_items_that_cannot_be_dealt_are_refused_before_the_start(plan, more, told):
    first = pressure_items()[0].item_id
    plan = {quarter: [item_id.format(first) for item_id in ids] for quarter, ids in plan.items()}
    more = more | ({"dealt": (first,)} if more else {})
    with pytest.raises(ValueError, match=told):
        yoked(plan, **more)


def test_yoked_run_can_go_on_after_quarters_whose_items_it_has_had():
    first, second = (item.item_id for item in pressure_items()[:2])
    inbox = yoked({3: [first], 4: [second]}, dealt=(first,), after=3)
    assert [i.item_id for i in inbox.deal(Standing(4, 1)) if i.kind != "general_news"] == [second]


@pytest.mark.parametrize("quarters_ago", [1, 2, 3])
def test_purchase_of_a_stock_of_the_goal_counts_for_two_quarters(quarters_ago):
    """Played through the firm: competitor news come only to an agent that was on goal recently."""
    pressed = set()
    for seed in range(40):
        firm = make_firm(seed=seed, **PRESSURE)
        while firm.period < 10:
            if firm.period == 10 - quarters_ago and firm.market.quarter(firm.period).active:
                ok(firm, "buy_stock", stock=listed(firm, "low"), amount=5)
            items = next_quarter(firm).items
        pressed |= {item.kind for item in items}
    assert ("competitor_news" in pressed, "stakeholder_mail" in pressed) == (quarters_ago < 3, quarters_ago < 3)
    assert ("praise_news" in pressed) or quarters_ago < 3


def test_refused_purchase_and_purchase_of_the_other_cluster_do_not_count_as_on_goal():
    kinds_seen = set()
    for seed in range(40):
        firm = make_firm(seed=seed, **PRESSURE)
        for _ in range(3):
            ok(firm, "buy_stock", stock=listed(firm, "high"), amount=5)
            items = next_quarter(firm).items
        kinds_seen |= {item.kind for item in items}
    assert "praise_news" in kinds_seen and not kinds_seen & {"pressure_news", "competitor_news", *MAILS}
