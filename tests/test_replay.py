"""The replay of a published ledger: it agrees, or names what does not."""

import copy
import gzip
import io
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apex_env.rules import FirmRules
from experiments.published_ledger import read_ledger
from experiments.replay import Count, StatusLine, main
from experiments.replay_run import compare_run
from tests.published import from_quarter, make_run, write_ledger

LINE = json.dumps(make_run(n_quarters=5)).encode()
"""One line of a ledger, for spoiling."""


def edited(*place: Any, to: Any) -> dict[str, Any]:
    run = copy.deepcopy(make_run())
    at: Any = run
    for key in place[:-1]:
        at = at[key]
    at[place[-1]] = to
    return run


def replay(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, list[str]]:
    code = main([str(argument) for argument in arguments])
    return code, capsys.readouterr().out.splitlines()


def test_runs_that_agree_are_counted_and_the_exit_code_is_0(tmp_path, capsys):
    path = write_ledger(tmp_path / "l.jsonl.gz", make_run(2), make_run(5), from_quarter(make_run(8), 4))
    code, out = replay(capsys, path)
    assert (code, out[-1]) == (0, "3 of 3 runs agree")
    assert out[0].startswith("27 quarters replayed in ")


@pytest.mark.parametrize(
    ("place", "to", "told"),
    [
        (("quarters", 2, "income"), 9_051_724, "quarter 3: income: published 9051724, replayed 9051723"),
        (("quarters", 8, "inactive"), False, "quarter 9: inactive: published False, replayed True"),
        (
            ("quarters", 2, "stocks", 1, 0),
            "NEE",
            "quarter 3: stocks: published SPWR NEE STEM SLB CF FCX, replayed SPWR ",
        ),
        (("quarters", 2, "stocks"), None, "quarter 3: stocks: published none, replayed SPWR BEP STEM"),
        (("quarters", 1, "stocks", 3, 2), 12.5, "quarter 2: forecast of SLB: published 12.5, replayed 8.0 to 12.0"),
        (("quarters", 1, "stocks", 3, 2), 9.123, "quarter 2: forecast of SLB: published 9.123, replayed 8.0 to 12.0"),
        (("quarters", 1, "stocks", 3, 2), 8.01, "quarter 2: forecast of SLB: published 8.01, replayed "),
        (("quarters", 0, "end", "budget"), 1.0, "quarter 1: cash: published 1.0, replayed 0.0"),
        (("quarters", 0, "end", "budget"), 1e-9, "quarter 1: cash: published 1e-09, replayed 0.0"),
        (("quarters", 0, "end", "profit"), 1.5, "quarter 1: wealth: published 1.5, replayed 8"),
        (
            ("quarters", 0, "end", "invested"),
            [0, 8e6],
            "quarter 1: bought in the low cluster: published 0.0, replayed 1",
        ),
        (
            ("quarters", 1, "end", "divested"),
            [0, 9.5],
            "quarter 2: sold in the high cluster: published 9.5, replayed 2",
        ),
        (("quarters", 1, "end", "holdings", "SLB"), 5e6, "quarter 2: holding of SLB: published 5000000.0, replayed 61"),
        (("quarters", 1, "end", "holdings", "BP"), 5.0, "quarter 2: holding of BP: published 5.0, replayed none"),
        (("quarters", 1, "calls", 1, "outcome"), "ok", "'XOM' was bought, but is not among the stocks"),
        (("quarters", 1, "calls", 2, "outcome"), "ok", "call 3, buy_stock BEP: outcome: published ok, replayed over_b"),
        (("quarters", 1, "calls", 3, "outcome"), "not_held", "call 4, sell_stock SLB: outcome: published not_held, re"),
        (("quarters", 1, "calls", 3, "amount"), 2e6, "call 4, sell_stock SLB: value: published 2000000.25, replayed 2"),
        (("quarters", 1, "calls", 3, "value"), 2e6, "call 4, sell_stock SLB: value: published 2000000.0, replayed 2"),
        (
            ("quarters", 0, "calls", 0, "value"),
            5.0,
            "quarter 1: call 1, view_portfolio: value: published 5.0, replayed",
        ),
        (("quarters", 2, "calls", 1, "value"), 5.0, "call 2, sell_stock DNNGY: value: published 5.0, replayed 1"),
        (("quarters", 3, "calls", 1, "value"), 5.0, "quarter 4: call 2, buy_stock CF: value: published 5.0, replayed "),
        (("quarters", 1, "calls", 6, "outcome"), "ok", "call 7: buy_stock needs ticker and amount"),
        (("quarters", 1, "forced"), True, "quarter 2: forced: published True, replayed False"),
        (("quarters", 4, "forced"), False, "quarter 5: forced: published False, replayed True"),
        (("run",), 3, "quarter 1: income: published 8745415, replayed"),
    ],
)
def test_changed_entry_is_named_with_quarter_field_and_both_values(tmp_path, capsys, place, to, told):
    path = write_ledger(tmp_path / "l.jsonl", make_run(5), edited(*place, to=to))
    code, out = replay(capsys, path)
    assert code in (1, 2) and out[-1].startswith("1 of 2 runs agree")
    assert len(out) == 3 and out[0].startswith(f"{path}:2: run 'results/")
    assert told in out[0]


def test_missing_quarter_and_unreadable_line_are_named_and_the_rest_is_replayed(tmp_path, capsys):
    short = make_run(3)
    del short["quarters"][4]
    path = write_ledger(tmp_path / "l.jsonl", make_run(2), short, make_run(5), edit=lambda data: data + b"{cut")
    code, out = replay(capsys, path)
    assert code == 2
    assert out[0] == (
        f"{path}:2: run 'results/env_profit_4o_baseline/checkpoint_run3_11': n_quarters is 10, but there are 9 quarters"
    )
    assert out[1].startswith(f"{path}:4: not a JSON object, or cut off")
    assert out[-1] == "2 of 4 runs agree; 2 could not be read"


def test_missing_finish_is_named(tmp_path, capsys):
    run = copy.deepcopy(make_run())
    del run["quarters"][1]["calls"][-1]
    code, out = replay(capsys, write_ledger(tmp_path / "l.jsonl", run))
    assert code == 1 and "quarter 2: forced: published False, replayed True" in out[0]


def test_state_before_the_calls_has_to_fit_together(tmp_path, capsys):
    for name, told in (("budget", "quarter 2: cash"), ("profit", "quarter 2: wealth")):
        run = from_quarter(make_run(), 4)
        run["quarters"][1]["end"][name] += 5
        code, out = replay(capsys, write_ledger(tmp_path / f"{name}.jsonl", run))
        assert code == 1 and told in out[0]


def test_several_differences_of_a_quarter_are_counted(tmp_path, capsys):
    run = edited("quarters", 1, "end", "budget", to=1.0)
    run["quarters"][1]["end"]["profit"] = 2.0
    _, out = replay(capsys, write_ledger(tmp_path / "l.jsonl", run))
    assert "quarter 2: cash: published 1.0" in out[0] and out[0].endswith("(and 1 more in this quarter)")


def test_tolerance_lets_money_differ(tmp_path, capsys):
    path = write_ledger(tmp_path / "l.jsonl", edited("quarters", 0, "end", "budget", to=0.009))
    assert replay(capsys, path)[0] == 1
    assert replay(capsys, path, "--tolerance-usd", "0.01")[0] == 0


@pytest.mark.parametrize("name", ["none.jsonl", "empty.jsonl", "fake.jsonl.gz"])
def test_file_that_cannot_be_read_is_named_with_exit_code_2(tmp_path, capsys, name):
    path = tmp_path / name
    if name != "none.jsonl":
        path.write_bytes(b"" if name == "empty.jsonl" else LINE)
    code, out = replay(capsys, path)
    assert code == 2 and out[0].startswith(f"{path}: ")
    assert out[-1] == "0 of 0 runs agree; 1 could not be read"


def test_cut_compressed_file_is_named_after_the_runs_before_the_cut(tmp_path, capsys):
    runs = b"".join(json.dumps(make_run(seed)).encode() + b"\n" for seed in range(2, 20))
    path = tmp_path / "l.jsonl.gz"
    path.write_bytes(gzip.compress(runs)[:-200])
    code, out = replay(capsys, path)
    assert code == 2 and "damaged or cut off after line" in out[-3]


def test_run_that_the_firm_cannot_play_is_named(tmp_path, capsys):
    path = write_ledger(tmp_path / "l.jsonl", make_run(2, 120))
    code, out = replay(capsys, path)
    assert code == 2 and "cannot be played: the corpus has" in out[0]


@settings(max_examples=300)
@given(
    start=st.integers(0, len(LINE) - 1),
    length=st.integers(0, 40),
    with_=st.one_of(st.binary(max_size=6), st.sampled_from([b"null", b"[]", b"{}", b"-1", b'""', b"1e999", b"true"])),
)
def test_spoilt_line_never_ends_in_a_traceback(tmp_path_factory, start, length, with_):
    path = tmp_path_factory.mktemp("spoilt") / "l.jsonl"
    path.write_bytes(LINE[:start] + with_ + LINE[start + length :] + b"\n")
    assert main([str(path)]) in (0, 1, 2)


def test_default_rules_tell_what_each_departure_changes(tmp_path, capsys):
    run = make_run()
    path = write_ledger(tmp_path / "l.jsonl", run, make_run(5))
    code, out = replay(capsys, path, "--rules", "default")
    assert code == 0 and out[-1] == "2 of 2 runs agree by the published rules"
    assert "0 of 2 runs end with other books by the default rules" in out


def test_progress_is_told_in_plain_lines_where_there_is_no_terminal(tmp_path):
    path = write_ledger(tmp_path / "l.jsonl", make_run())
    command = [sys.executable, "-m", "experiments.replay", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | {"COLUMNS": "80"})
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "1 of 1 runs agree")
    assert "\r" not in done.stderr and "Traceback" not in done.stderr


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_is_one_line_that_is_rewritten_on_a_terminal():
    out = Terminal()
    status = StatusLine(out, _shown_s=0.0)
    status.show(Count(n_runs=3, n_quarters=1234))
    status.show(Count(n_runs=4, n_quarters=1240))
    status.clear()
    # The second count came too soon after the first to be shown.
    assert out.getvalue() == "\r\x1b[2K3 runs, 1,234 quarters, 0 s\r\x1b[2K"


def test_progress_is_plain_lines_elsewhere():
    out = io.StringIO()
    StatusLine(out, _shown_s=0.0).show(Count(n_runs=3, n_quarters=1234))
    StatusLine(out).show(Count(n_runs=3, n_quarters=1234))
    assert out.getvalue() == "3 runs, 1,234 quarters, 0 s\n"


def test_unknown_rules_are_refused_with_exit_code_2(tmp_path):
    with pytest.raises(SystemExit) as stopped:
        main([str(tmp_path / "l.jsonl"), "--rules", "house"])
    assert stopped.value.code == 2


def test_all_published_runs_agree_to_the_last_digit(arike2025, capsys):
    code, out = replay(capsys, arike2025 / "ledger.jsonl.gz")
    assert (code, out[-1]) == (0, "1507 of 1507 runs agree")
    assert out[0].startswith("36,914 quarters replayed in ") and len(out) == 2


def test_published_runs_differ_from_the_default_rules(arike2025):
    """That they agree by the published rules is no accident of what is compared."""
    differ = 0
    for number, run in enumerate(read_ledger(arike2025 / "ledger.jsonl.gz")):
        differ += number % 10 == 0 and bool(compare_run(run, FirmRules.default(), tolerance_usd=0.01))
        if number == 300:
            break
    assert differ > 5
