"""Owns the counting of tokens where no provider has reported any: one named counter, the same on every machine."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from experiments.chat import Message

COUNTER: Final = "o200k_base"
"""Name of the counter: the encoding of OpenAI's models since GPT-4o. Counts of other models' tokens are approximate."""


def count_text(text: str) -> int:
    """Return the number of tokens of a text."""
    return _counter()(text)


def count_messages(messages: Sequence[Message]) -> int:
    """Return the number of tokens of what messages say, calls included, without any provider's framing.

    >>> count_messages([Message("user", "one two three")])
    3
    """
    return sum(map(_count_message, messages))


@lru_cache(maxsize=65536)
def _count_said(text: str) -> int:
    return count_text(text)


def _count_message(message: Message) -> int:
    n = _count_said(message.text)
    for call in message.calls:
        arguments = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        n += _count_said(f"{call.name} {arguments}")
    return n


@lru_cache(maxsize=1)
def _counter() -> Callable[[str], int]:
    # The encoding is downloaded on first use elsewhere; litellm carries it, so it is read from there.
    spec = find_spec("litellm")
    if spec is not None and spec.origin is not None:
        carried = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(carried))
    import tiktoken

    encoding = tiktoken.get_encoding(COUNTER)
    return lambda text: len(encoding.encode(text.encode("utf-8", "replace").decode(), disallowed_special=()))
