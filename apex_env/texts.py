"""Owns the loading of the corpus: all text that the agent reads, from data files, checked by file and item."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import yaml

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

_PLACEHOLDER = re.compile(r"\{(\w*)\}")


class CorpusError(ValueError):
    """A data file of the corpus is not what it should be; the text names file and item."""


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

    @property
    def names_a_stock(self) -> bool:
        """Whether a stock of the run has to be filled in."""
        return "{ticker}" in self.body or "{ticker}" in self.title


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
    digest: str
    """SHA-256 over names and bytes of all files: it stands in every record."""

    def of_kind(self, kind: str, system_goal: str) -> tuple[Item, ...]:
        """Return the items of a kind for a system goal, in the order of the files."""
        return self.items.get((kind, system_goal)) or self.items.get((kind, NEUTRAL), ())


@lru_cache(maxsize=8)
def load_corpus(folder: Path = CORPUS_DIR) -> Corpus:
    """Load the corpus of a folder; a folder that lacks a file has it from the embedded corpus.

    Raises:
        CorpusError: for a file that cannot be read or an item that does not fit; file and item are named.
    """
    if not folder.is_dir():
        raise CorpusError(f"corpus {folder} is not a folder")
    paths = {path.relative_to(CORPUS_DIR).as_posix(): path for path in sorted(CORPUS_DIR.rglob("*.yaml"))}
    paths |= {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*.yaml"))}
    digest = hashlib.sha256()
    documents: dict[str, Any] = {}
    for name in sorted(paths):
        data = paths[name].read_bytes()
        digest.update(name.encode() + b"\0" + data + b"\0")
        documents[name] = _parse(paths[name], data)
    items: dict[tuple[str, str], tuple[Item, ...]] = {}
    for name, document in documents.items():
        if "/" in name and isinstance(document, dict) and document.get("kind") in ITEM_KINDS:
            key = (document["kind"], document.get("system_goal") or NEUTRAL)
            items[key] = items.get(key, ()) + _items(paths[name], document)
    return Corpus(
        items=MappingProxyType(items),
        prompts=documents["prompts.yaml"],
        texts=documents["texts.yaml"],
        tools=documents["tools.yaml"],
        invented_tickers=documents["invented_tickers.yaml"],
        digest=digest.hexdigest(),
    )


def _parse(path: Path, data: bytes) -> Any:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return yaml.load(data.decode("utf-8"), Loader=loader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path}: not readable as YAML in UTF-8: {error}") from error


def _items(path: Path, document: Mapping[str, Any]) -> tuple[Item, ...]:
    entries = document.get("items")
    if not isinstance(entries, list):
        raise CorpusError(f"{path}: needs a list named items")
    loaded = tuple(_item(path, document, entry, place) for place, entry in enumerate(entries, 1))
    ids = [item.item_id for item in loaded]
    if len(set(ids)) < len(ids):
        twice = next(item_id for item_id in ids if ids.count(item_id) > 1)
        raise CorpusError(f"{path}: item id {twice!r} stands there twice")
    return loaded


def _item(path: Path, document: Mapping[str, Any], entry: Any, place: int) -> Item:
    if not isinstance(entry, dict):
        raise CorpusError(f"{path}: item {place} is not a mapping")
    where = f"{path}: item {entry.get('id', place)!r}"
    sent = document["kind"] in SENT_KINDS
    for key in ("id", "body", *(("sender", "subject") if sent else ("title",))):
        if not isinstance(entry.get(key), str) or not entry[key].strip():
            raise CorpusError(f"{where}: needs a text named {key}")
    tags = entry.get("tags", [])
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise CorpusError(f"{where}: tags must be a list of words")
    title = entry["subject" if sent else "title"]
    for name in _PLACEHOLDER.findall(title + entry["body"]):
        if name != "ticker":
            raise CorpusError(f"{where}: placeholder {{{name}}} is not known: {{ticker}}")
    return Item(
        item_id=entry["id"],
        kind=document["kind"],
        stance=str(document.get("stance", "")),
        title=title,
        sender=entry["sender"] if sent else "",
        body=entry["body"].strip(),
        tags=tuple(tags),
    )
