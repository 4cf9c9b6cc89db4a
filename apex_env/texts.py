"""Owns the loading of the corpus: all text that the agent reads, from data files, checked by file and item."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

from apex_env.corpus_shape import CorpusError as CorpusError
from apex_env.corpus_shape import check_invented, check_shape
from apex_env.goals import GOAL_PAIRS
from apex_env.placeholders import TICKER, placeholders

CORPUS_DIR: Final = Path(__file__).parent / "corpus"

ITEM_KINDS: Final = (
    "general_news",
    "pressure_news",
    "praise_news",
    "competitor_news",
    "stakeholder_mail",
    "employee_mail",
    "coworker_request",
)
SENT_KINDS: Final = ("stakeholder_mail", "employee_mail", "coworker_request")
"""Kinds that have a sender and a subject; the others have a title."""

NEUTRAL: Final = ""
"""Stands for the system goal of kinds that are the same for every goal."""

NEUTRAL_KINDS: Final = ("general_news", "coworker_request")
"""Kinds that can be the same for every system goal."""

PARTS: Final = "request_parts"
"""Kind of a file from whose parts further requests of coworkers are put together."""
PART_LISTS: Final = {"tasks": ("id", "subject", "body"), "settings": ("id", "body"), "senders": ("id", "sender")}
"""Lists of such a file, and the texts that each entry needs."""

_ROOT_FILES: Final = tuple(
    f"{name}.yaml" for name in ("prompts", "texts", "tools", "invented_tickers", "history", "interview")
)
"""Files that stand in no folder."""


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of news, one mail or one request."""

    item_id: str
    kind: str
    stance: str
    title: str
    """Title of news, subject of mails and requests."""
    sender: str
    """Name and role of who wrote; empty for news."""
    body: str
    tags: tuple[str, ...]
    round: int = 0
    """Items of a later round are dealt after all of the earlier ones; requests put together from parts repeat tasks."""

    names_a_stock: bool = field(init=False, repr=False, compare=False)
    """Whether a stock of the run has to be filled in; found once, since briefings ask for it all the time."""

    def __post_init__(self) -> None:
        """Look for the place of a stock."""
        object.__setattr__(self, "names_a_stock", TICKER in placeholders(self.title + self.body))


@dataclass(frozen=True, slots=True, eq=False)
class Corpus:
    """All text that the agent reads."""

    items: Mapping[tuple[str, str], tuple[Item, ...]]
    """By kind and system goal (`NEUTRAL` where the kind is the same for all)."""
    prompts: Mapping[str, Any]
    """By variant: role, weak, strong, switching, unrelated."""
    texts: Mapping[str, Any]
    tools: Mapping[str, Any]
    invented_tickers: Mapping[str, str]
    """By real ticker."""
    history: Mapping[str, str]
    """What stands in place of an agent's own history."""
    interview: Mapping[str, str]
    """Questions outside of the agent's work, by topic."""
    digest: str
    """SHA-256 over names and bytes of all files: it stands in every record."""

    def of_kind(self, kind: str, system_goal: str) -> tuple[Item, ...]:
        """Return the items of a kind for a system goal, in the order of the files."""
        return self.items.get((kind, system_goal)) or self.items.get((kind, NEUTRAL), ())


@lru_cache(maxsize=8)
def load_corpus(folder: Path = CORPUS_DIR) -> Corpus:
    """Load the corpus of a folder over the embedded one: its files replace ours of the same name, others add items.

    Raises:
        CorpusError: for a file that cannot be read or an item that does not fit; file and item are named.
    """
    if not folder.is_dir():
        raise CorpusError(f"corpus {folder} is not a folder")
    paths = _files(CORPUS_DIR) | _files(folder)
    digest = hashlib.sha256()
    documents: dict[str, Any] = {}
    for name in sorted(paths):
        data, documents[name] = _parse(paths[name])
        digest.update(name.encode() + b"\0" + data + b"\0")
    for name in _ROOT_FILES:
        check_shape(str(paths[name]), documents[name], _shape_of(name), formatted=name == "texts.yaml")
    check_invented(paths["invented_tickers.yaml"], documents["invented_tickers.yaml"])
    return Corpus(
        items=MappingProxyType(_all_items(paths, documents)),
        prompts=documents["prompts.yaml"],
        texts=documents["texts.yaml"],
        tools=documents["tools.yaml"],
        invented_tickers=documents["invented_tickers.yaml"],
        history=documents["history.yaml"],
        interview=documents["interview.yaml"],
        digest=digest.hexdigest(),
    )


def _files(folder: Path) -> dict[str, Path]:
    """Return the data files of a folder by name."""
    for path in sorted(folder.rglob("*.yml")):
        raise CorpusError(f"{path}: would not be read; the files of a corpus end in .yaml")
    paths = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.yaml"))}
    if not paths:
        raise CorpusError(f"corpus {folder} has no file that ends in .yaml")
    return paths


def _parse(path: Path) -> tuple[bytes, Any]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        data = path.read_bytes()
        return data, yaml.load(data.decode("utf-8"), Loader=loader)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: not readable as YAML in UTF-8: {error}") from error


def _all_items(paths: Mapping[str, Path], documents: Mapping[str, Any]) -> dict[tuple[str, str], tuple[Item, ...]]:
    items: dict[tuple[str, str], tuple[Item, ...]] = {}
    owner: dict[str, Path] = {}
    for name, document in documents.items():
        if name in _ROOT_FILES:
            continue
        if "/" not in name:
            raise CorpusError(
                f"{paths[name]}: not a file of the corpus: {', '.join(_ROOT_FILES)}; items lie in folders"
            )
        key = _kind_and_goal(paths[name], document)
        if key[0] == PARTS:
            key, loaded = ("coworker_request", key[1]), _composed(paths[name], document)
        else:
            loaded = _items(paths[name], document)
        for item in loaded:
            if item.item_id in owner:
                raise CorpusError(
                    f"{paths[name]}: item {item.item_id!r}: the id is taken already in {owner[item.item_id]}"
                )
            owner[item.item_id] = paths[name]
        items[key] = items.get(key, ()) + loaded
    return items


def _kind_and_goal(path: Path, document: Any) -> tuple[str, str]:
    if not isinstance(document, dict):
        raise CorpusError(f"{path}: a mapping with kind and items is expected")
    kind, goal = document.get("kind"), document.get("system_goal")
    if kind not in (*ITEM_KINDS, PARTS):
        raise CorpusError(f"{path}: kind {kind!r} is not known: {', '.join(ITEM_KINDS)}, {PARTS}")
    known = ("kind", "system_goal", "stance", *(PART_LISTS if kind == PARTS else ("items",)))
    unknown = [str(key) for key in document if key not in known]
    if unknown:
        raise CorpusError(f"{path}: {unknown[0]!r} is not known: {', '.join(known)}")
    if goal is None and kind not in (*NEUTRAL_KINDS, PARTS):
        raise CorpusError(f"{path}: kind {kind!r} needs a system_goal: {', '.join(GOAL_PAIRS)}")
    if goal is not None and goal not in tuple(GOAL_PAIRS):
        raise CorpusError(f"{path}: system_goal {goal!r} is not known: {', '.join(GOAL_PAIRS)}")
    return kind, goal or NEUTRAL


def _items(path: Path, document: Mapping[str, Any]) -> tuple[Item, ...]:
    entries = document.get("items")
    if not isinstance(entries, list):
        raise CorpusError(f"{path}: needs a list named items")
    return tuple(_item(path, document, entry, place) for place, entry in enumerate(entries, 1))


def _composed(path: Path, document: Mapping[str, Any]) -> tuple[Item, ...]:
    """Return requests put together from parts, in rounds: each round has every task once, with another setting."""
    tasks, settings, senders = (_parts(path, document, name, keys) for name, keys in PART_LISTS.items())
    return tuple(
        Item(
            item_id=f"{task['id']}+{setting['id']}+{sender['id']}",
            kind="coworker_request",
            stance=str(document.get("stance", "")),
            title=task["subject"],
            sender=sender["sender"],
            body=f"{task['body'].strip()} {setting['body'].strip()}",
            tags=tuple(task.get("tags", ())),
            round=turn + 1,
        )
        for turn in range(len(settings))
        for place, task in enumerate(tasks)
        for setting in (settings[(place + turn) % len(settings)],)
        for sender in (senders[(place + turn) % len(senders)],)
    )


def _parts(path: Path, document: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> list[dict[str, str]]:
    entries = document.get(name)
    if not isinstance(entries, list) or not entries:
        raise CorpusError(f"{path}: needs a list named {name}")
    for place, entry in enumerate(entries, 1):
        if not isinstance(entry, dict):
            raise CorpusError(f"{path}: {name}, item {place} is not a mapping")
        for key in keys:
            where = f"{path}: {name}, item {entry.get('id', place)!r}"
            if not isinstance(entry.get(key), str) or not entry[key].strip():
                raise CorpusError(f"{where}: needs a text named {key}")
            _check_placeholders(where, entry[key])
    ids = [entry["id"] for entry in entries]
    for place, part_id in enumerate(ids):
        if part_id in ids[:place]:
            raise CorpusError(f"{path}: {name}, item {part_id!r}: the id stands there twice")
    return entries


def _item(path: Path, document: Mapping[str, Any], entry: Any, place: int) -> Item:
    if not isinstance(entry, dict):
        raise CorpusError(f"{path}: item {place} is not a mapping")
    where = f"{path}: item {entry.get('id', place)!r}"
    sent = document["kind"] in SENT_KINDS
    needed = ("id", *(("sender", "subject") if sent else ("title",)), "body")
    for key in needed:
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise CorpusError(f"{where}: needs a text named {key}")
    unknown = [str(key) for key in entry if key not in (*needed, "tags")]
    if unknown:
        raise CorpusError(f"{where}: {unknown[0]!r} is not known: {', '.join(needed)}, tags")
    tags = entry.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise CorpusError(f"{where}: tags must be a list of words")
    title = entry["subject" if sent else "title"]
    _check_placeholders(where, title + entry["body"])
    return Item(
        item_id=entry["id"],
        kind=document["kind"],
        stance=str(document.get("stance", "")),
        title=title,
        sender=entry["sender"] if sent else "",
        body=entry["body"].strip(),
        tags=tuple(tags),
    )


def _check_placeholders(where: str, text: str) -> None:
    for name in placeholders(text):
        if name != TICKER:
            raise CorpusError(
                f"{where}: placeholder {{{name}}} is not known: {{{TICKER}}}; double the braces of a text's own"
            )


def _shape_of(name: str) -> Any:
    """Return the document that a file of this name has to be like; a variant of the prompts is like the first one."""
    _, document = _parse(CORPUS_DIR / name)
    return {"": document["first"]} if name == "prompts.yaml" else document
