"""Which baseline run a run is held against, and the naming of every run that has none."""

import pytest

from analysis.pairing import Pair, as_filed, pair_runs
from analysis.runs import SourceError
from tests.drift_builders import BASELINE_CELL, make_baseline, make_cell, make_run

CELL = make_cell()


def ids(pairs):
    return [(pair.run.run_id, pair.baseline.run_id) for pair in pairs]


def filed(cell, number, **more):
    return make_run((), cell, seed=number, filed=cell, **more)


def test_runs_pair_by_seed_whatever_their_order():
    runs = [make_run(seed=2), make_baseline(seed=1), make_run(seed=1), make_baseline(seed=2)]
    pairing = pair_runs(runs)
    assert ids(pairing.pairs) == [("cell/2", "baseline/2"), ("cell/1", "baseline/1")]
    assert [run.run_id for run in pairing.baselines] == ["baseline/1", "baseline/2"]
    assert pairing.unpaired == ()


def test_a_run_without_its_seed_in_the_baseline_is_named_and_shifts_no_other():
    pairing = pair_runs(
        [make_run(seed=1), make_run(seed=2), make_run(seed=3), make_baseline(seed=1), make_baseline(seed=3)]
    )
    assert ids(pairing.pairs) == [("cell/1", "baseline/1"), ("cell/3", "baseline/3")]
    (lone,) = pairing.unpaired
    assert (lone.run.run_id, lone.failed) == ("cell/2", "")
    assert lone.reason == "its baseline cell baseline has no run of seed 2"


def test_pairing_by_run_number_passes_seeds_over():
    run, baseline = make_run(seed=7, number=1), make_baseline(seed=4, number=1)
    assert pair_runs([run, baseline], "run").pairs == (Pair(run, baseline),)
    assert pair_runs([run, baseline], "seed").pairs == ()


def test_a_cell_whose_baseline_is_missing_has_no_pairs():
    (lone,) = pair_runs([make_run()]).unpaired
    assert "baseline has no run" in lone.reason


def test_an_outage_is_never_paired_and_says_so():
    runs = [make_run(outcome="provider_error", outcome_reason="down"), make_baseline()]
    (lone,) = pair_runs(runs).unpaired
    assert (lone.failed, lone.reason) == ("provider_error", "provider_error, never scored: down")


def test_a_run_whose_baseline_failed_is_lost_to_that_failure():
    runs = [make_run(), make_baseline(outcome="stalled")]
    (lone,) = pair_runs(runs).unpaired
    assert lone.failed == "baseline: stalled"


def test_a_run_that_ended_early_keeps_its_pair():
    assert len(pair_runs([make_run(outcome="stalled"), make_baseline()]).pairs) == 1


@pytest.mark.parametrize("twice", ["here", "there"])
def test_a_seed_that_occurs_twice_is_paired_with_nothing(twice):
    again = make_run(run_id="again") if twice == "here" else make_baseline(run_id="again")
    pairing = pair_runs([make_run(), make_baseline(), again])
    assert pairing.pairs == ()
    assert all("2" in lone.reason for lone in pairing.unpaired)


def test_an_outage_and_the_run_made_in_its_stead_are_no_double():
    died = make_run(run_id="died", outcome="provider_error")
    there_died = make_baseline(run_id="there died", outcome="provider_error")
    pairing = pair_runs([make_run(), died, make_baseline(), there_died])
    assert ids(pairing.pairs) == [("cell/1", "baseline/1")]
    assert [lone.run.run_id for lone in pairing.unpaired] == ["died"]


def test_by_position_the_shorter_list_decides_and_outages_stay():
    runs = [filed(CELL, number) for number in (9, 2, 4)] + [filed(BASELINE_CELL, number) for number in (3, 1)]
    runs[1] = filed(CELL, 2, outcome="provider_error")
    pairing = pair_runs(runs, "position")
    assert ids(pairing.pairs) == [("cell/2", "baseline/1"), ("cell/4", "baseline/3")]
    (lone,) = pairing.unpaired
    assert lone.reason == "position 3 of its cell; its baseline cell baseline has 2 runs"


def test_by_position_a_run_is_in_the_cell_that_its_folder_names():
    true = make_cell("true", n_instrumental=4)
    run = make_run((), true, filed=CELL, n_instrumental=4)
    (refiled,) = as_filed([run])
    assert (refiled.cell, refiled.n_instrumental) == (CELL, 4)


def test_position_is_refused_for_runs_that_are_not_published_ones():
    with pytest.raises(SourceError, match="'position' is only for published runs, and 'cell/1' is none"):
        pair_runs([make_run()], "position")


def test_an_unknown_pairing_is_refused_by_name():
    with pytest.raises(SourceError, match="'place' is not known: seed, run, position"):
        pair_runs([], "place")


def test_two_cells_of_one_name_are_refused():
    with pytest.raises(SourceError, match="cell 'cell' differs between runs"):
        pair_runs([make_run(), make_run((), make_cell(model="another"), run_id="other")])
