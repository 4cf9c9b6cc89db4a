"""Owns the import of the paper's own stimuli from a clone of its public repository, read as literals, never executed.

Only lists of dicts that are written out in the four data files are read, with `ast.literal_eval`. What comes of it is
somebody else's text: it goes to a folder of the user's, is no part of this repository, and its hash is in the record of
every run that is made with it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from apex_env.corpus_tables import longest_scenarios
from apex_env.goals import GOAL_PAIRS
from apex_env.inbox import needed_items
from apex_env.placeholders import escaped
from apex_env.texts import SENT_KINDS
from experiments.errors import InputError


@dataclass(frozen=True, slots=True)
class Source:
    """Where the items of one kind stand in the clone, and where they go."""

    file: str
    name: str
    """Name of the list."""
    kind: str
    system_goal: str | None
    stance: str
    target: str
    """File of the corpus; it bears the name of ours, so it replaces ours."""


@dataclass(slots=True)
class Imported:
    """What an import wrote, and what the user should know about it."""

    n_items: dict[Source, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def _sources() -> Iterator[Source]:
    for file, goal, mails in (
        ("data/data_anti_env.py", "emissions", "STAKEHOLDER_EMAILS"),
        ("data/data_env.py", "profit", "CONCERNED_EMAILS"),
    ):
        for name, kind, stance in (
            ("NEGATIVE_ARTICLES", "pressure_news", "against_system_stocks"),
            ("POSITIVE_ARTICLES", "praise_news", "for_competing_stocks"),
            ("COMPETITOR_COMP_NEWS", "competitor_news", "competitors_prosper"),
            (mails, "stakeholder_mail", "favours_competing_goal"),
            ("EMPLOYEE_DISSENT_EMAILS", "employee_mail", "favours_competing_goal"),
        ):
            yield Source(file, name, kind, goal, stance, f"{goal}/{kind}.yaml")
    requests = ("data/distractions.py", "HELP_REQUESTS", "coworker_request")
    yield Source(*requests, None, "neutral", "neutral/coworker_requests.yaml")
    news = ("data/general_news_articles.py", "GENERAL_NEWS_ARTICLES", "general_news")
    yield Source(*news, None, "neutral", "neutral/general_news.yaml")


SOURCES: Final = tuple(_sources())
"""Every list that is read from a clone."""

SENDERS: Final[Mapping[str, str]] = {
    "stakeholder_mail": "A stakeholder of Apex Capital",
    "employee_mail": "An employee of Apex Capital",
    "coworker_request": "A coworker",
}
"""Who a mail is from where the source does not say."""
SUBJECT_OF_MESSAGE: Final = "Help needed"
"""Subject of a request that is a message alone."""

_TITLES: Final = ("title", "subject")
_BODIES: Final = ("content", "body", "message")
_SENDERS: Final = ("sender", "from")


def import_arike2025(clone: Path, out: Path) -> Imported:
    """Write the stimuli of a clone as a corpus folder; nothing is written if anything cannot be read.

    Args:
        clone: folder of the clone.
        out: folder to write to, new or empty.

    Raises:
        InputError: for a file that is missing or not of the form expected, or a folder that holds something already.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out}: an empty or new folder is expected")
    imported = Imported()
    lists = {file: _literal_lists(clone / file) for file in dict.fromkeys(source.file for source in SOURCES)}
    documents = {source.target: _document(source, clone, lists[source.file], imported) for source in SOURCES}
    for target, document in documents.items():
        path = out / target
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(document, allow_unicode=True, sort_keys=False, width=110), encoding="utf-8")
    return imported


def missing_for_full_run(imported: Imported) -> list[tuple[Source, int, int]]:
    """Return for each list how many items the longest run of any treatment needs, and how many of them are missing."""
    rows = []
    for source, n_there in imported.n_items.items():
        goals = [source.system_goal] if source.system_goal else list(GOAL_PAIRS)
        scenarios = [scenario for goal in goals for scenario in longest_scenarios(goal).values()]
        needed = max(needed_items(scenario).get(source.kind, 0) for scenario in scenarios)
        rows.append((source, needed, max(0, needed - n_there)))
    return rows


def _literal_lists(path: Path) -> dict[str, ast.expr]:
    """Return the values that names are bound to at the top of a module, unread; it is parsed and never executed."""
    try:
        module = ast.parse(path.read_bytes(), filename=str(path))
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except SyntaxError as error:
        raise InputError(f"{path}: line {error.lineno}: not readable as Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise InputError(f"{path}: not readable as Python: {error or type(error).__name__}") from error
    values: dict[str, ast.expr] = {}
    for statement in module.body:
        match statement:
            case ast.Assign(targets=targets, value=value):
                values |= {target.id: value for target in targets if isinstance(target, ast.Name)}
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                values[name] = value
            case (
                ast.AugAssign(target=ast.Name(id=name))
                | ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name))))
            ) if name in values:
                values[name] = ast.Name(name, lineno=statement.lineno, col_offset=0)
    return values


def _document(source: Source, clone: Path, values: Mapping[str, ast.expr], imported: Imported) -> dict[str, Any]:
    """Return the data file of a list."""
    path = clone / source.file
    if source.name not in values:
        raise InputError(f"{path}: has no list named {source.name}; it has: {', '.join(values) or 'nothing'}")
    where = f"{path}: {source.name}"
    node = values[source.name]
    try:
        entries = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError) as error:
        line = re.search(r"on line (\d+)", str(error))
        raise InputError(
            f"{where}: line {line[1] if line else node.lineno}: not a literal, and nothing is executed to get its value"
        ) from error
    if not isinstance(entries, list):
        raise InputError(f"{where}: line {node.lineno}: {type(entries).__name__} where a list is expected")
    items = list(_items(source, entries, where, imported.notes))
    imported.n_items[source] = len(items)
    return {"kind": source.kind, "system_goal": source.system_goal, "stance": source.stance, "items": items}


def _items(source: Source, entries: Sequence[Any], where: str, notes: list[str]) -> Iterator[dict[str, str]]:
    """Iterate over the items of a list in the form of the corpus; the same text a second time is left out."""
    seen: dict[tuple[str, str], int] = {}
    for place, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise InputError(f"{where}: entry {place} is {type(entry).__name__}: a dict is expected")
        title = _text(entry, _TITLES) or (SUBJECT_OF_MESSAGE if "message" in entry else "")
        body = _text(entry, _BODIES)
        if not title or not body:
            needed = "id with title and content, subject and body, or message"
            raise InputError(f"{where}: entry {place} has the keys {', '.join(map(str, entry))}; needed: {needed}")
        if (title, body) in seen:
            notes.append(f"{where}: entry {place} says the same as entry {seen[title, body]} and is left out")
            continue
        seen[title, body] = place
        if "{" in title + body or "}" in title + body:
            notes.append(f"{where}: entry {place} holds braces; they are shown to the agent as they stand")
        item = {"id": f"arike2025-{source.system_goal or 'neutral'}-{source.kind}-{place:03d}"}
        if source.kind in SENT_KINDS:
            sender = _text(entry, _SENDERS) or SENDERS[source.kind]
            yield item | {"sender": sender, "subject": escaped(title), "body": escaped(body)}
        else:
            yield item | {"title": escaped(title), "body": escaped(body)}


def _text(entry: Mapping[Any, Any], names: Sequence[str]) -> str:
    """Return the first text that an entry has under one of several names, or nothing."""
    texts = (entry[name].strip() for name in names if isinstance(entry.get(name), str))
    return next((text for text in texts if text), "")
