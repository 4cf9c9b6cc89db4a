"""The import of the paper's own stimuli from a clone, on a file tree of the same shape."""

import os
from pathlib import Path

import pytest
import yaml

from apex_env.prompts import render_item
from apex_env.texts import CORPUS_DIR, Corpus, load_corpus
from experiments.corpus_import import SENDERS, import_arike2025, missing_for_full_run
from experiments.errors import InputError

MODULES = {
    "data/data_anti_env.py": """
import os
os.mkdir("executed")
COMPANIES = ["one"]
NEGATIVE_ARTICLES = [
    {"id": 1, "title": "Bad day", "content": "It fell "
        "again."},
    {"id": 2, "title": "Worse {day}", "content": 'A set {a} and a lone }'},
]
POSITIVE_ARTICLES = [{"id": "p1", "title": "Good day", "content": "It rose."}]
COMPETITOR_COMP_NEWS: list = [{"id": 1, "title": "Rival", "content": "It won."}]
STAKEHOLDER_EMAILS = [{"id": 1, "subject": "Worried", "body": "Dear all."}]
EMPLOYEE_DISSENT_EMAILS = [{"id": 1, "subject": "Hm", "body": "Dear boss.", "sender": "Bo Li"}]
""",
    "data/data_env.py": """
NEGATIVE_ARTICLES = [{"id": 1, "title": "Smoke", "content": "It smoked."}]
POSITIVE_ARTICLES = [{"id": 1, "title": "Sun", "content": "It shone."}]
COMPETITOR_COMP_NEWS = [{"id": 1, "title": "Rival", "content": "It was clean."}]
CONCERNED_EMAILS = [{"id": 1, "subject": "Air", "body": "Dear fund."}]
EMPLOYEE_DISSENT_EMAILS = [{"id": 1, "subject": "Soot", "body": "Dear desk."}]
""",
    "data/distractions.py": 'HELP_REQUESTS = [{"id": 1, "message": "Help me."}, {"id": 2, "message": "Help me."}]',
    "data/general_news_articles.py": 'GENERAL_NEWS_ARTICLES = [{"id": 1, "title": "News", "content": "It rained."}]',
}


@pytest.fixture
def clone(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "clone"
    for name, text in MODULES.items():
        write(folder / name, text)
    return folder


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def shown(corpus: Corpus, kind: str, goal: str) -> list[str]:
    """Items of a kind as the agent reads them, those put together from parts left out."""
    return [render_item(item, "XOM", corpus.texts) for item in corpus.of_kind(kind, goal) if not item.round]


def refusal(clone: Path, out: Path) -> str:
    with pytest.raises(InputError) as error:
        import_arike2025(clone, out)
    return str(error.value)


def test_every_list_replaces_our_items_of_its_kind_and_goal(clone, tmp_path):
    import_arike2025(clone, tmp_path / "out")
    corpus = load_corpus(tmp_path / "out")
    anti = {kind: shown(corpus, kind, "emissions") for kind in ("pressure_news", "praise_news", "competitor_news")}
    assert anti == {
        "pressure_news": ["Market news: Bad day\nIt fell again.", "Market news: Worse {day}\nA set {a} and a lone }"],
        "praise_news": ["Market news: Good day\nIt rose."],
        "competitor_news": ["From the industry: Rival\nIt won."],
    }
    assert shown(corpus, "pressure_news", "profit") == ["Market news: Smoke\nIt smoked."]
    assert shown(corpus, "competitor_news", "profit") == ["From the industry: Rival\nIt was clean."]
    assert shown(corpus, "general_news", "profit") == ["Business news: News\nIt rained."]


def test_sender_that_is_missing_is_generic(clone, tmp_path):
    import_arike2025(clone, tmp_path / "out")
    corpus = load_corpus(tmp_path / "out")
    assert shown(corpus, "stakeholder_mail", "emissions") == [
        f"Mail from {SENDERS['stakeholder_mail']}\nSubject: Worried\n\nDear all."
    ]
    assert shown(corpus, "stakeholder_mail", "profit")[0].endswith("Subject: Air\n\nDear fund.")
    assert shown(corpus, "employee_mail", "emissions") == ["Mail from Bo Li\nSubject: Hm\n\nDear boss."]
    assert shown(corpus, "coworker_request", "profit") == [
        f"Request from {SENDERS['coworker_request']}\nSubject: Help needed\n\nHelp me."
    ]


def test_nothing_of_the_clone_is_executed(clone, tmp_path):
    import_arike2025(clone, tmp_path / "out")
    assert not os.path.exists("executed")


def test_same_text_twice_and_braces_are_noted(clone, tmp_path):
    notes = import_arike2025(clone, tmp_path / "out").notes
    assert [note.split(": ", 1)[1] for note in notes] == [
        "NEGATIVE_ARTICLES: entry 2 holds braces; they are shown to the agent as they stand",
        "HELP_REQUESTS: entry 2 says the same as entry 1 and is left out",
    ]


def test_what_is_missing_for_the_longest_run_is_counted(clone, tmp_path):
    rows = {
        (source.kind, source.system_goal): (needed, missing)
        for source, needed, missing in missing_for_full_run(import_arike2025(clone, tmp_path / "out"))
    }
    # 74 quarters of 2 news; 28 pressured quarters of 2 news, and of 1 mail for the emissions goal; 64 quarters of 6
    # requests and 10 of 2.
    assert rows["general_news", None] == (148, 147)
    assert rows["pressure_news", "emissions"] == (56, 54)
    assert rows["stakeholder_mail", "emissions"] == (28, 27)
    assert rows["stakeholder_mail", "profit"] == (56, 55)
    assert rows["coworker_request", None] == (404, 403)
    assert len(rows) == 12


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("HELP_REQUESTS = [", "line 1: not readable as Python"),
        ("HELP = []", "has no list named HELP_REQUESTS; it has: HELP"),
        ("", "has no list named HELP_REQUESTS; it has: nothing"),
        ("HELP_REQUESTS = {'a': 1}", "line 1: dict where a list is expected"),
        ("HELP_REQUESTS = [\n  {'message': open('x').read()}]", "line 2: not a literal, and nothing is executed"),
        ("HELP_REQUESTS = []\nHELP_REQUESTS += [{}]", "line 2: not a literal"),
        ("HELP_REQUESTS = []\nHELP_REQUESTS.append({})", "line 2: not a literal"),
        ("HELP_REQUESTS = [f'{1}']", "line 1: not a literal"),
        ("HELP_REQUESTS = ['text']", "HELP_REQUESTS: entry 1 is str: a dict is expected"),
        ("HELP_REQUESTS = [{'id': 1}]", "entry 1 has the keys id; needed: id with title and content"),
        ("HELP_REQUESTS = [{'id': 1, 'message': '  '}]", "entry 1 has the keys id, message; needed"),
        ("HELP_REQUESTS = [{'id': 1, 'message': 5}]", "entry 1 has the keys id, message; needed"),
        ("HELP_REQUESTS = [{'id': 1, 'content': 'No title.'}]", "entry 1 has the keys id, content; needed"),
    ],
)
def test_file_that_is_not_as_expected_is_named_and_nothing_is_written(clone, tmp_path, text, told):
    write(clone / "data/distractions.py", text)
    message = refusal(clone, tmp_path / "out")
    assert message.startswith(f"{clone / 'data/distractions.py'}: ") and told in message
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("data", [b"HELP_REQUESTS = '\xff'", b"HELP_REQUESTS = '\0'", b"x = " + b"(" * 5000])
def test_file_that_is_no_python_text_is_named(clone, tmp_path, data):
    (clone / "data/distractions.py").write_bytes(data)
    assert f"{clone / 'data/distractions.py'}: " in refusal(clone, tmp_path / "out")


def test_file_that_is_missing_is_named(clone, tmp_path):
    (clone / "data/data_env.py").unlink()
    assert (
        refusal(clone, tmp_path / "out") == f"{clone / 'data/data_env.py'}: cannot be read: No such file or directory"
    )


def test_folder_with_something_in_it_is_left_alone(clone, tmp_path):
    write(tmp_path / "out/mine.txt", "mine")
    assert refusal(clone, tmp_path / "out") == f"{tmp_path / 'out'}: an empty or new folder is expected"
    assert refusal(clone, tmp_path / "out/mine.txt").endswith("an empty or new folder is expected")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


def test_imported_files_bear_the_names_of_ours_so_that_they_replace_them(clone, tmp_path):
    import_arike2025(clone, tmp_path / "out")
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*.yaml")}
    assert files == {
        path.relative_to(CORPUS_DIR).as_posix()
        for path in CORPUS_DIR.rglob("*/*.yaml")
        if path.name != "request_parts.yaml"
    }
    document = yaml.safe_load((tmp_path / "out/profit/stakeholder_mail.yaml").read_text())
    assert document["items"][0]["id"] == "arike2025-profit-stakeholder_mail-001"
