"""The loading of the corpus: what is wrong in a data file is named by file and item."""

import shutil
import string
from pathlib import Path
from typing import Any

import pytest
import yaml

from apex_env.texts import CORPUS_DIR, ITEM_KINDS, CorpusError, load_corpus
from apex_env.tools import TOOLS
from tests.firms import TEXTS

NEWS = {"id": "x-1", "title": "A title", "body": "A body."}
MAIL = {"id": "m-1", "sender": "Ann Lee, partner", "subject": "A subject", "body": "A body."}


def news(*items: Any, **fields: Any) -> dict[str, Any]:
    return {"kind": "pressure_news", "system_goal": "emissions", "items": list(items)} | fields


def parts(**fields: Any) -> dict[str, Any]:
    return {
        "kind": "request_parts",
        "tasks": [{"id": f"t{n}", "subject": f"Task {n}", "body": f"Do {n}."} for n in (1, 2, 3)],
        "settings": [{"id": "s1", "body": "Soon."}, {"id": "s2", "body": "Later."}],
        "senders": [{"id": "p1", "sender": "Ann"}, {"id": "p2", "sender": "Bo"}],
    } | fields


def write(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content), encoding="utf-8")
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(CorpusError) as error:
        load_corpus(folder)
    return str(error.value)


def document(name: str) -> Any:
    return yaml.safe_load((CORPUS_DIR / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("kind: [", "not readable as YAML"),
        ("- a list", "a mapping with kind and items is expected"),
        ("", "a mapping with kind and items is expected"),
        (news(NEWS, kind="rumours"), "kind 'rumours' is not known: general_news"),
        (news(NEWS, kind=["rumours"]), "kind ['rumours'] is not known"),
        (news(NEWS, system_goal="health"), "system_goal 'health' is not known: emissions, profit"),
        (news(NEWS, system_goal={"a": 1}), "system_goal {'a': 1} is not known"),
        (news(NEWS, system_goal=None), "kind 'pressure_news' needs a system_goal: emissions, profit"),
        (news(NEWS, itemz=[]), "'itemz' is not known: kind, system_goal, stance, items"),
        ({"kind": "general_news"}, "needs a list named items"),
        (news("text"), "item 1 is not a mapping"),
        (news(NEWS, {"id": "x-2", "title": "T"}), "item 'x-2': needs a text named body"),
        (news({"title": "T", "body": "B"}), "item 1: needs a text named id"),
        (news(NEWS | {"title": " "}), "item 'x-1': needs a text named title"),
        (news(NEWS | {"body": 5}), "item 'x-1': needs a text named body"),
        (news(NEWS | {"bodi": "B"}), "item 'x-1': 'bodi' is not known: id, title, body, tags"),
        (news(NEWS | {"tags": "loss"}), "item 'x-1': tags must be a list of words"),
        (news(NEWS | {"body": "On {stock}."}), "item 'x-1': placeholder {stock} is not known: {ticker}"),
        (news(NEWS | {"title": "On {}"}), "item 'x-1': placeholder {} is not known: {ticker}"),
        (news(MAIL | {"sender": ""}, kind="employee_mail"), "item 'm-1': needs a text named sender"),
        (news(NEWS, NEWS), "item 'x-1': the id is taken already in"),
        (news(NEWS | {"id": "em-pn-001"}), "item 'em-pn-001': the id is taken already in"),
        (parts(settings=[]), "needs a list named settings"),
        (parts(tasks=["text"]), "tasks, item 1 is not a mapping"),
        (parts(tasks=[{"id": "t9", "body": "Do."}]), "tasks, item 't9': needs a text named subject"),
        (parts(senders=[{"id": "p", "sender": "A"}, {"id": "p", "sender": "B"}]), "senders, item 'p': the id stands"),
        (parts(items=[]), "'items' is not known: kind, system_goal, stance, tasks, settings, senders"),
    ],
)
def test_bad_item_file_is_named_with_the_item(tmp_path, content, told):
    path = write(tmp_path, "more/bad.yaml", content)
    message = refusal(tmp_path)
    assert message.startswith(f"{path}: ") and told in message


def test_file_that_is_not_utf_8_is_named(tmp_path):
    path = tmp_path / "more"
    path.mkdir()
    (path / "latin.yaml").write_bytes("kind: général".encode("latin-1"))
    assert refusal(tmp_path).startswith(f"{path / 'latin.yaml'}: not readable as YAML in UTF-8")


def test_item_file_outside_of_a_folder_is_refused(tmp_path):
    path = write(tmp_path, "news.yaml", news(NEWS))
    assert refusal(tmp_path).startswith(f"{path}: not a file of the corpus: prompts.yaml, texts.yaml")


def test_folder_that_does_not_exist_is_named(tmp_path):
    assert refusal(tmp_path / "none") == f"corpus {tmp_path / 'none'} is not a folder"


def changed(name: str, *place: str, to: Any = None) -> Any:
    """An embedded document with one entry changed, or left out where ``to`` is None."""
    whole = document(name)
    at = whole
    for key in place[:-1]:
        at = at[key]
    if to is None:
        del at[place[-1]]
    else:
        at[place[-1]] = to
    return whole


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("texts.yaml", changed("texts.yaml", "errors", "not_held"), ": errors: needs 'not_held'"),
        ("texts.yaml", changed("texts.yaml", "errors", "new", to="x"), ": errors: 'new' is not known: "),
        (
            "texts.yaml",
            changed("texts.yaml", "results", "bought", to="{price}"),
            "placeholder {price} is not known: ti",
        ),
        ("texts.yaml", changed("texts.yaml", "briefing", "header", to=5), ": briefing: header: 5 where a text"),
        ("texts.yaml", "", ": None where a mapping is expected"),
        ("tools.yaml", changed("tools.yaml", "buy_stock", "parameters", "amount"), "parameters: needs 'amount'"),
        ("prompts.yaml", changed("prompts.yaml", "first", "weak", "profit"), ": first: weak: needs 'profit'"),
        ("prompts.yaml", changed("prompts.yaml", "mine", to={"role": "R"}), ": mine: needs 'weak'"),
        ("invented_tickers.yaml", changed("invented_tickers.yaml", "XOM"), ": needs 'XOM'"),
        ("invented_tickers.yaml", changed("invented_tickers.yaml", "XOM", to="BP"), "XOM: 'BP' is not a name of its"),
        ("invented_tickers.yaml", changed("invented_tickers.yaml", "XOM", to="ab"), "XOM: 'ab' is not a name of its"),
    ],
)
def test_bad_text_prompt_or_description_is_named_by_its_place(tmp_path, name, content, told):
    path = write(tmp_path, name, content)
    message = refusal(tmp_path)
    assert message.startswith(str(path)) and told in message


def test_two_stocks_cannot_share_an_invented_name(tmp_path):
    taken = document("invented_tickers.yaml")["BP"]
    write(tmp_path, "invented_tickers.yaml", changed("invented_tickers.yaml", "XOM", to=taken))
    assert f"{taken!r} is not a name of its own" in refusal(tmp_path)


def test_folder_adds_items_and_replaces_texts_and_the_digest_tells(tmp_path):
    write(tmp_path, "more/news.yaml", news(NEWS))
    write(tmp_path, "texts.yaml", changed("texts.yaml", "results", "nudge", to="Go on."))
    write(tmp_path, "prompts.yaml", changed("prompts.yaml", "mine", to=document("prompts.yaml")["first"]))
    corpus, embedded = load_corpus(tmp_path), load_corpus()
    added = set(corpus.of_kind("pressure_news", "emissions")) - set(embedded.of_kind("pressure_news", "emissions"))
    assert [(item.item_id, item.title, item.body) for item in added] == [("x-1", "A title", "A body.")]
    assert corpus.texts["results"]["nudge"] == "Go on."
    assert corpus.prompts["mine"] == embedded.prompts["first"]
    assert corpus.digest != embedded.digest


def test_digest_depends_on_names_and_bytes_and_not_on_the_place(tmp_path):
    here, there, other = tmp_path / "a", tmp_path / "b", tmp_path / "c"
    for folder in (here, there, other):
        shutil.copytree(CORPUS_DIR, folder)
    with open(other / "tools.yaml", "a", encoding="utf-8") as file:
        file.write("# one more line\n")
    assert load_corpus(here).digest == load_corpus(there).digest != load_corpus(other).digest


def test_requests_from_parts_have_every_task_once_a_round_and_every_pair_once(tmp_path):
    write(tmp_path, "more/parts.yaml", parts())
    corpus, embedded = load_corpus(tmp_path), load_corpus()
    added = [i for i in corpus.of_kind("coworker_request", "emissions") if i not in embedded.of_kind(i.kind, "profit")]
    assert [(item.round, item.title, item.body, item.sender) for item in added] == [
        (1, "Task 1", "Do 1. Soon.", "Ann"),
        (1, "Task 2", "Do 2. Later.", "Bo"),
        (1, "Task 3", "Do 3. Soon.", "Ann"),
        (2, "Task 1", "Do 1. Later.", "Bo"),
        (2, "Task 2", "Do 2. Soon.", "Ann"),
        (2, "Task 3", "Do 3. Later.", "Bo"),
    ]
    assert added[0].item_id == "t1+s1+p1"


def test_items_for_a_goal_come_before_neutral_ones(tmp_path):
    write(tmp_path, "profit/own.yaml", news(NEWS, kind="general_news", system_goal="profit"))
    corpus = load_corpus(tmp_path)
    assert [item.item_id for item in corpus.of_kind("general_news", "profit")] == ["x-1"]
    assert len(corpus.of_kind("general_news", "emissions")) > 1


@pytest.mark.parametrize("goal", ["emissions", "profit"])
def test_embedded_corpus_has_items_of_every_kind_for_both_goals(goal):
    assert all(load_corpus().of_kind(kind, goal) for kind in ITEM_KINDS)


def test_every_tool_is_described():
    assert load_corpus().tools.keys() == TOOLS.keys()


def test_texts_ask_only_for_what_the_code_fills_in():
    known = set(
        "quarter year title body sender subject ticker forecast horizon value cash amount recipient coworker_name "
        "allowed held name argument tool desk n_lost reason operation resource goal_version order_id".split()
    )

    def leaves(at: Any) -> list[str]:
        return [at] if isinstance(at, str) else [text for value in at.values() for text in leaves(value)]

    asked = {field for text in leaves(TEXTS) for _, field, _, _ in string.Formatter().parse(text) if field}
    assert asked <= known
