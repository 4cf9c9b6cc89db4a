"""Builders for corpora with a few items, and for the embedded one with changes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from apex_env.texts import Corpus, Item, load_corpus

Key = tuple[str, str]


def make_item(item_id: str, *, kind: str = "pressure_news", **fields: Any) -> Item:
    """An item without sender or tags."""
    given = {"stance": "some", "title": f"Title {item_id}", "sender": "", "body": "A body.", "tags": ()} | fields
    return Item(item_id=item_id, kind=kind, **given)


def make_corpus(items: Mapping[Key, Sequence[Item]]) -> Corpus:
    """A corpus with these items alone, and the embedded prompts and texts."""
    return replace(load_corpus(), items={key: tuple(group) for key, group in items.items()})


def with_items(corpus: Corpus, key: Key, items: Sequence[Item]) -> Corpus:
    """A corpus with more items of a kind."""
    return replace(corpus, items=dict(corpus.items) | {key: (*corpus.items.get(key, ()), *items)})


def without_items(corpus: Corpus, key: Key, n: int) -> Corpus:
    """A corpus that lacks the last items of a kind."""
    return replace(corpus, items=dict(corpus.items) | {key: corpus.items[key][: len(corpus.items[key]) - n]})
