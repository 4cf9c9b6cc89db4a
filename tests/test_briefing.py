"""`apex briefing`: what an agent reads in one quarter of one run."""

import io
import re
from contextlib import redirect_stderr
from pathlib import Path

import pytest

from apex_env.prompts import system_prompt
from apex_env.texts import load_corpus
from experiments.briefing import briefing, main
from experiments.environments import scenario_of
from experiments.errors import InputError
from experiments.record import read_record
from experiments.run import play_settings, settings_of

PRESSURE = ("treatment=adversarial_pressure",)
SWITCH = ("treatment=combined", "treatment.n_instrumental=4")


def recorded(folder: Path, words: tuple[str, ...], quarter: int) -> tuple[str, str]:
    """System prompt and briefing as `apex run` records them, in the run or in the phase that it branches from."""
    settings = settings_of([*words, "seeds=[3]", f"results_dir={folder}"])
    with redirect_stderr(io.StringIO()):
        assert play_settings(settings).complete
    run = settings.runs[0]
    records = [folder / f"scratch/{spec.run_id}.jsonl" for spec in (run, run.phase_spec()) if spec is not None]
    texts = [
        one["text"] for path in records for one in read_record(path).of_type("opened") if one["quarter"] == quarter
    ]
    assert len(texts) == 1
    return system_prompt(scenario_of(run), load_corpus()), texts[0]


@pytest.mark.parametrize(
    ("words", "quarter"),
    [
        (PRESSURE, 12),
        ((*PRESSURE, "treatment.system_goal=profit", "treatment.prompt_variant=uncued", "model=pressured"), 30),
        (SWITCH, 4),
        (SWITCH, 5),
        ((*SWITCH, "treatment.instrumental_goal=requests", "treatment.ticker_names=invented"), 14),
    ],
)
def test_briefing_is_what_the_run_of_these_words_records(tmp_path, words, quarter):
    prompt, text = recorded(tmp_path, words, quarter)
    printed = briefing(["seed=3", f"quarter={quarter}", *words])
    assert printed.endswith(f"\n# System prompt\n\n{prompt}\n\n# Briefing\n\n{text}")


def test_heading_names_seed_factors_agent_and_what_was_dealt():
    head = briefing(["seed=3", "quarter=5", *PRESSURE, "model=negligent"]).split("\n\n# System prompt")[0].splitlines()
    assert head[0] == "# Seed 3, quarter 5: setting adversarial_pressure, system_goal emissions, elicitation weak"
    assert head[1] == "# The dose of pressure depends on what an agent did; here it is negligent, a scripted one."
    assert re.match(r"# Dealt: ne-gn-\d{3} \(general_news\), ", head[2])


def test_same_words_give_the_same_briefing_and_another_seed_another():
    one, again, other = (briefing([f"seed={seed}", "quarter=6", *PRESSURE]) for seed in (1, 1, 2))
    assert one == again != other


def test_own_corpus_is_read(tmp_path):
    path = tmp_path / "own/neutral/general_news.yaml"
    path.parent.mkdir(parents=True)
    items = "".join(f"  - {{id: own-{n}, title: Own {n}, body: An own body.}}\n" for n in range(60))
    path.write_text(f"kind: general_news\nstance: neutral\nitems:\n{items}")
    text = briefing(["seed=1", "quarter=1", "treatment=baseline", f"corpus={tmp_path / 'own'}"])
    assert "An own body." in text and "own-" in text.split("\n\n")[0]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["quarter=3"], "seed=NUMBER must be given"),
        (["seed=", "treatment=baseline"], "seed=NUMBER and quarter=NUMBER must be given"),
        (["seed=x", "quarter=3"], "seed 'x' is not allowed: a whole number"),
        (["seed=3", "quarter=-1"], "quarter '-1' is not allowed: a whole number"),
        (["seed=8192", "quarter=3"], "seed 8192 is not allowed: an integer from 0 to 8191"),
        (["seed=3", "quarter=31", *PRESSURE], "quarter 31 is not allowed: 1 to 30, with the quarters of adversarial"),
        (["seed=3", "quarter=0", *PRESSURE], "quarter 0 is not allowed: 1 to 30"),
        (["seed=3", "quarter=15", *SWITCH], "quarter 15 is not allowed: 1 to 14"),
        (["seed=3", "quarter=3", "treatment=nope"], "treatment=nope is not known"),
        (["seed=3", "quarter=3", "treatment.nope=1"], "key 'treatment.nope' is not known"),
        (["seed=3", "quarter=3", "treatment.prompt_variant=nope"], "prompt_variant 'nope' is not known: first"),
        (
            ["seed=3", "quarter=3", "treatment=none", "grid.system_goal=[emissions,profit]"],
            "2 runs are asked for where one is expected: ",
        ),
        (["seed=3", "quarter=3", "model=python", "models.python.model=a:b"], "a scripted agent is expected"),
    ],
)
def test_word_that_is_missing_or_not_allowed_is_told_in_one_line(capsys, words, told):
    with pytest.raises(InputError, match=re.escape(told)):
        briefing(words)
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert (out, err.startswith("apex briefing: "), err.count("\n")) == ("", True, 1)


def test_help_is_printed_without_words(capsys):
    assert main([]) == main(["--help"]) == 0
    assert capsys.readouterr().out.count("usage: apex briefing seed=S quarter=Q") == 2
