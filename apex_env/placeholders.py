"""Owns the placeholders of an item's text: a name in braces, with doubled braces for a text's own."""

from __future__ import annotations

import re
from typing import Final

TICKER: Final = "ticker"
"""The only name that items know: the stock that an item is about, filled in from the run's own holdings."""

_BRACES: Final = re.compile(r"\{\{|\}\}|\{([^{}]*)\}")


def placeholders(text: str) -> list[str]:
    """Return the names of a text's placeholders, in order.

    >>> placeholders("{ticker} is no {{placeholder}}")
    ['ticker']
    """
    if "{" not in text:
        return []
    return [match[1] for match in _BRACES.finditer(text) if match[1] is not None]


def filled(text: str, ticker: str) -> str:
    """Return a text as the agent reads it: with a stock filled in, and single braces for doubled ones.

    >>> filled("{ticker} is no {{placeholder}}", "XOM")
    'XOM is no {placeholder}'
    """
    if "{" not in text and "}" not in text:
        return text
    return _BRACES.sub(lambda match: match[0][0] if match[1] is None else ticker, text)


def escaped(text: str) -> str:
    """Return a text that `filled` turns into this one.

    >>> filled(escaped("{ticker}"), "XOM")
    '{ticker}'
    """
    return text.replace("{", "{{").replace("}", "}}")
