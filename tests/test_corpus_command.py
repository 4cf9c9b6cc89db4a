"""`apex corpus` and what `apex run` makes of a user's own corpus."""

import re
import shutil
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pytest
import yaml

from analysis.cli import main
from apex_env.inbox import deck
from apex_env.texts import CORPUS_DIR, PART_LISTS, load_corpus
from experiments.record import read_record

SIXTY = " ".join(f"own{n}" for n in range(60))


def write(path: Path, document: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    return path


def own_news(*bodies: str, kind: str = "general_news", **fields: object) -> dict[str, object]:
    items = [
        {"id": f"own-{place}", "title": f"Own {place}", "body": body, "tags": ["tourism"]}
        for place, body in enumerate(bodies)
    ]
    return {"kind": kind, "stance": "neutral", "items": items} | fields


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main([str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def apex(*words: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, as Hydra keeps state and files open in the one it runs in."""
    return subprocess.run([sys.executable, "-m", "analysis.cli", *words], capture_output=True, text=True, timeout=240)


def test_check_of_our_corpus_prints_its_tables_and_finds_nothing(capsys):
    code, out, err = run(capsys, "corpus", "check")
    assert (code, err) == (0, "")
    assert out.splitlines()[-1] == f"corpus {load_corpus().digest[:12]}: 1760 items, 0 faults"
    for row in (
        "| pressure_news    | emissions   | 60 ",
        "| sunk_cost ",
        "| profit: combined after requests, 64 + 10 ",
    ):
        assert row in out


def test_check_of_an_own_folder_lists_its_faults_and_fails(capsys, tmp_path):
    write(tmp_path / "neutral/more.yaml", own_news(SIXTY, "Put profit first."))
    code, out, err = run(capsys, "corpus", "check", tmp_path)
    assert (code, err) == (1, "")
    assert "length: own-1: the body has 3 words; 40 to 80 are allowed" in out
    assert "change of goal: own-1: reads as an instruction (other measure first): 'Put profit first.'" in out
    assert out.splitlines()[-1].endswith(": 1762 items, 2 faults")


def test_check_of_an_own_folder_that_fits_passes(capsys, tmp_path):
    write(tmp_path / "neutral/more.yaml", own_news(SIXTY))
    assert run(capsys, "corpus", "check", tmp_path)[0] == 0


def test_check_of_a_file_that_cannot_be_read_is_one_line_with_its_name(capsys, tmp_path):
    path = write(tmp_path / "neutral/more.yaml", own_news("Body.", kind="rumours"))
    code, out, err = run(capsys, "corpus", "check", tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith(f"apex corpus check: {path}: kind 'rumours' is not known") and err.count("\n") == 1


@pytest.mark.parametrize("name", ["", "more.yml"])
def test_folder_without_a_file_that_is_read_is_refused(capsys, tmp_path, name):
    if name:
        write(tmp_path / name, own_news(SIXTY))
    code, _, err = run(capsys, "corpus", "check", tmp_path)
    assert code == 2 and ".yaml" in err and err.count("\n") == 1


def test_show_prints_items_as_the_agent_reads_them(capsys):
    code, out, _ = run(capsys, "corpus", "show", "stakeholder_mail", "--n", 2, "--system-goal", "profit")
    assert code == 0
    first, second = load_corpus().of_kind("stakeholder_mail", "profit")[:2]
    assert f"Mail from {first.sender}\nSubject: {first.title}\n\n{first.body}\n" in out
    assert second.title in out and out.endswith("2 of 60 items of kind stakeholder_mail\n")


@pytest.mark.parametrize(
    ("goal", "kind", "stock"),
    [
        ("emissions", "pressure_news", "ENPH"),
        ("emissions", "praise_news", "XOM"),
        ("profit", "pressure_news", "XOM"),
        ("profit", "praise_news", "ENPH"),
    ],
)
def test_show_fills_in_a_stock_of_the_cluster_that_items_are_about(capsys, goal, kind, stock):
    _, out, _ = run(capsys, "corpus", "show", kind, "--n", 60, "--system-goal", goal)
    assert f"{stock} stands for the agent's largest holding of its cluster" in out
    assert "{" not in out and len(re.findall(rf"\b{stock}\b", out)) > 40


def test_show_with_a_seed_keeps_the_order_in_which_it_deals(capsys):
    _, out, _ = run(capsys, "corpus", "show", "general_news", "--n", 4, "--seed", 7)
    assert re.findall(r"^(ne-gn-\d+):", out, re.MULTILINE) == [
        item.item_id for item in islice(deck(load_corpus(), "general_news", "emissions", 7), 4)
    ]
    _, in_file_order, _ = run(capsys, "corpus", "show", "general_news", "--n", 2)
    assert re.findall(r"^(ne-gn-\d+):", in_file_order, re.MULTILINE) == ["ne-gn-001", "ne-gn-002"]


def test_show_prompts_prints_role_and_every_statement_of_a_variant(capsys):
    _, out, _ = run(capsys, "corpus", "show", "prompts", "--prompt-variant", "uncued", "--system-goal", "profit")
    variant = load_corpus().prompts["uncued"]
    assert variant["role"] in out
    assert all(variant[name]["profit"] in out for name in ("weak", "strong", "switching", "unrelated"))
    code, _, err = run(capsys, "corpus", "show", "prompts", "--prompt-variant", "fourth")
    assert code == 2
    assert err == "apex corpus show: prompt variant 'fourth' is not known: first, second, third, uncued\n"


def test_show_tickers_lists_the_whole_mapping(capsys):
    _, out, _ = run(capsys, "corpus", "show", "tickers")
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines()[2:]]
    assert {ticker: name for _, ticker, name in rows} == load_corpus().invented_tickers
    assert [cluster for cluster, *_ in rows] == ["low"] * 20 + ["high"] * 20


def test_show_reads_an_own_folder(capsys, tmp_path):
    write(tmp_path / "neutral/general_news.yaml", own_news(SIXTY))
    _, out, _ = run(capsys, "corpus", "show", "general_news", "--corpus", tmp_path)
    assert out.endswith("1 of 1 items of kind general_news\n") and SIXTY in out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("show", "rumours"), "invalid choice: 'rumours'"),
        (("show", "general_news", "--n", "0"), "'0' is not allowed: a whole number of 1 or more"),
        (("show", "general_news", "--seed", "8192"), "'8192' is not allowed: an integer from 0 to 8191"),
        (("import", "other", "a", "b"), "invalid choice: 'other'"),
        ((), "the following arguments are required"),
    ],
)
def test_argument_that_is_not_allowed_is_told(capsys, words, told):
    code, out, err = run(capsys, "corpus", *words)
    assert (code, out) == (2, "") and told in err


def test_import_says_what_is_missing_and_how_to_go_on(capsys, tmp_path):
    clone, out_folder = tmp_path / "clone", tmp_path / "out"
    item = [{"id": 1, "title": "T", "content": "C", "subject": "S", "body": "B", "message": "M"}]
    for file, names in {
        "data_anti_env": ("NEGATIVE_ARTICLES", "POSITIVE_ARTICLES", "COMPETITOR_COMP_NEWS", "STAKEHOLDER_EMAILS"),
        "data_env": ("NEGATIVE_ARTICLES", "POSITIVE_ARTICLES", "COMPETITOR_COMP_NEWS", "CONCERNED_EMAILS"),
        "distractions": ("HELP_REQUESTS",),
        "general_news_articles": ("GENERAL_NEWS_ARTICLES",),
    }.items():
        path = clone / f"data/{file}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{name} = {item}\n" for name in (*names, "EMPLOYEE_DISSENT_EMAILS")))
    code, out, err = run(capsys, "corpus", "import", "arike2025", clone, out_folder)
    assert (code, err) == (0, "")
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in out.splitlines() if line.startswith("|")]
    assert ["neutral/general_news.yaml", "1", "148", "147"] in cells
    assert f"corpus={out_folder}" in out.splitlines()[-1]
    code, _, err = run(capsys, "corpus", "import", "arike2025", clone, out_folder)
    assert (code, err) == (2, f"apex corpus import: {out_folder}: an empty or new folder is expected\n")


def test_run_with_an_own_corpus_has_its_hash_in_record_and_identity(tmp_path):
    own = tmp_path / "own"
    news = own_news(*(f"{SIXTY} {n}" for n in range(8)))
    write(own / "neutral/general_news.yaml", news)
    words = ("run", "treatment=baseline", "treatment.n_evaluation=4", "seeds=1", f"results_dir={tmp_path}/results")
    assert apex(*words, "name=own", f"corpus={own}").returncode == 0
    assert apex(*words, "name=ours").returncode == 0
    (path,), (our_path,) = (sorted((tmp_path / "results" / name).rglob("*.jsonl")) for name in ("own", "ours"))
    header, ours = read_record(path).header, read_record(our_path).header
    digest = load_corpus(own).digest
    assert header["corpus_sha256"] == header["identity"]["treatment"]["corpus"] == digest
    assert (ours["corpus_sha256"], "corpus" in ours["identity"]["treatment"]) == (load_corpus().digest, False)
    assert header["run_id"] != ours["run_id"]
    shown = [item_id for opened in read_record(path).of_type("opened") for item_id, _ in opened["items"]]
    assert len(shown) >= 4 and all(item_id.startswith("own-") for item_id in shown)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("treatment=adversarial_pressure", "treatment.n_evaluation=74"),
            "the corpus has 60 items of kind 'pressure_news' for system goal 'emissions'; "
            "adversarial_pressure of 74 quarters can need 144: 84 missing",
        ),
        (
            ("treatment=goal_switching", "treatment.instrumental_goal=requests", "treatment.n_instrumental=64"),
            "the corpus has 160 items of kind 'coworker_request' for system goal 'emissions'; "
            "goal_switching of 74 quarters can need 384: 224 missing",
        ),
        (("treatment.prompt_variant=fourth",), "prompt_variant 'fourth' is not known: first, second, third, uncued"),
    ],
)
def test_run_that_its_corpus_is_too_small_for_is_refused_in_one_line_before_it_starts(tmp_path, words, told):
    own = tmp_path / "own"
    shutil.copytree(CORPUS_DIR, own)
    one_part = yaml.safe_load((own / "neutral/request_parts.yaml").read_text())
    requests = yaml.safe_load((own / "neutral/coworker_requests.yaml").read_text())
    # One part of each list makes one request, in place of one of ours.
    write(own / "neutral/request_parts.yaml", one_part | {name: one_part[name][:1] for name in PART_LISTS})
    write(own / "neutral/coworker_requests.yaml", requests | {"items": requests["items"][1:]})
    results = tmp_path / "results"
    done = apex("run", *words, "seeds=1", f"corpus={own}", f"results_dir={results}", "name=x")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"apex run: {told}\n")
    assert list(results.rglob("*.jsonl")) == []
