"""Published quarters: where one begins and ends, what is history, and what was said by whom."""

from analysis.published.quarters import split
from apex_env.market import Market
from apex_env.protocol import ToolCall
from experiments.chat import Message, user
from tests.checkpoints import FINISHED, NUDGE, briefing, first_of

MARKET = Market(2)


def opening(t):
    return user(briefing(t, MARKET.quarter(t).listing))


def finish(call_id="f", *, result=FINISHED):
    said = Message("assistant", "Done.", (ToolCall(call_id, "finish_quarter", {}),))
    return [said, Message("tool", f'"{result}"', call_id=call_id)]


def test_each_quarter_goes_from_its_briefing_to_its_close():
    talks = split([opening(1), *finish("a"), opening(2), *finish("b")], 2)
    assert (talks.known_from, talks.history, list(talks.quarters)) == (1, (), [1, 2])
    assert talks.quarters[2].briefing == opening(2).text
    assert [turn.by for turn in talks.quarters[2].turns] == ["model"]


def test_a_briefing_gives_the_listed_stocks_in_order():
    (low, *_, high) = split([opening(1), *finish()], 1).quarters[1].offers
    assert (low.ticker, low.cluster) == (first_of("low", MARKET, 1), "low")
    assert high.cluster == "high"
    assert low.forecast_pct_per_year == MARKET.quarter(1).listing[0].forecast_pct_per_year


def test_a_quarter_of_the_harness_is_forced_and_one_without_a_word_is_dead():
    talks = split([opening(1), user(FINISHED), opening(2), Message("assistant", "Hm."), user(NUDGE), user(FINISHED)], 2)
    assert [(talk.forced, talk.dead) for talk in talks.quarters.values()] == [(True, True), (True, False)]
    assert [turn.by for turn in talks.quarters[2].turns] == ["model", "nudge", "forced"]


def test_a_finish_that_was_refused_closes_nothing():
    talks = split([opening(1), *finish("a", result="Tool validation failed"), *finish("b")], 1)
    assert len(talks.quarters[1].turns) == 2


def test_calls_and_results_are_put_together_by_id():
    calls = (ToolCall("a", "view_portfolio", {}), ToolCall("b", "retrieve_aum_data", {}))
    said = [Message("assistant", "", calls), Message("tool", "B", call_id="b"), Message("tool", "A", call_id="a")]
    (turn, _) = split([opening(1), *said, *finish()], 1).quarters[1].turns
    assert [(sent.call.call_id, sent.result) for sent in turn.calls] == [("a", "A"), ("b", "B")]


def test_a_call_without_a_result_has_none_and_a_result_without_a_call_is_told():
    said = [Message("assistant", "", (ToolCall("a", "view_portfolio", {}),)), Message("tool", "?", call_id="z")]
    talks = split([opening(1), *said, *finish()], 1)
    assert talks.quarters[1].turns[0].calls[0].result is None
    assert talks.oddities == ("message 1: a result that belongs to no call",)


def test_quarters_whose_briefing_is_lost_are_numbered_by_their_order():
    talks = split([*finish("a"), *finish("b"), opening(3), *finish("c")], 3)
    assert talks.known_from == 1
    assert [talk.briefing is None for talk in talks.quarters.values()] == [True, True, False]


def test_a_replaced_history_is_everything_before_the_first_quarter_that_is_known():
    history = [user(". " * 50), opening(1), Message("assistant", "Random words."), opening(2)]
    talks = split([*history, opening(3), *finish("c"), opening(4), *finish("d")], 4)
    assert (talks.known_from, talks.history) == (3, tuple(history))


def test_quarters_before_a_given_one_belong_to_the_history():
    messages = [opening(1), *finish("a"), opening(2), *finish("b")]
    talks = split(messages, 2, known_from=2)
    assert (talks.known_from, talks.history) == (2, tuple(messages[:3]))


def test_a_run_that_breaks_off_has_no_known_quarter_after_it():
    assert split([opening(1), *finish("a"), opening(2)], 2).known_from == 3


def test_a_quarter_that_is_played_twice_counts_the_second_time_and_is_told():
    talks = split([opening(1), *finish("a"), opening(1), user(FINISHED)], 1)
    assert talks.quarters[1].forced
    assert talks.oddities == ("quarter 1 is played twice; the second time counts",)


def test_years_count_four_quarters_each():
    talks = split([opening(29), *finish("a"), opening(30), *finish("b")], 30)
    assert list(talks.quarters) == [29, 30]


def test_an_empty_conversation_has_no_quarters():
    assert split([], 3).known_from == 4
