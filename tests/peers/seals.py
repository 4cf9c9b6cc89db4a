"""Signatures of thinking blocks and sealed reasoning, made and checked by the peer alone."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Literal

_SECRET = b"loopback peer"
_N_BYTES = 24

Verdict = Literal["good", "altered", "foreign"]
"""`good`: ours, for this text; `altered`: ours, for another text; `foreign`: not ours or damaged."""


def sign(text: str) -> str:
    """A signature of a thinking text, stable from one peer process to the next."""
    content = _digest(text)
    return base64.b64encode(content + _mac(b"thinking", content)).decode()


def check(text: str, signature: str) -> Verdict:
    """Judge a thinking text that came back with a signature."""
    raw = _decoded(signature)
    if len(raw) != 2 * _N_BYTES or not hmac.compare_digest(raw[_N_BYTES:], _mac(b"thinking", raw[:_N_BYTES])):
        return "foreign"
    return "good" if raw[:_N_BYTES] == _digest(text) else "altered"


def seal(item_id: str, text: str) -> str:
    """Opaque content that stands for a reasoning text and belongs to one item id (empty for redacted thinking)."""
    body = _bytes(text)
    return "gAAAAA" + base64.urlsafe_b64encode(_mac(_bytes(item_id), body) + body).decode()


def opens(item_id: str, sealed: str) -> bool:
    """True if the sealed content is ours, unchanged, and made for this item id."""
    if not sealed.startswith("gAAAAA"):
        return False
    raw = _decoded(sealed[6:], urlsafe=True)
    return len(raw) >= _N_BYTES and hmac.compare_digest(raw[:_N_BYTES], _mac(_bytes(item_id), raw[_N_BYTES:]))


def _digest(text: str) -> bytes:
    return hashlib.sha256(_bytes(text)).digest()[:_N_BYTES]


def _mac(kind: bytes, content: bytes) -> bytes:
    return hmac.new(_SECRET + b"/" + kind, content, "sha256").digest()[:_N_BYTES]


def _decoded(text: str, *, urlsafe: bool = False) -> bytes:
    try:
        return base64.b64decode(text, altchars=b"-_" if urlsafe else None, validate=True)
    except ValueError:
        return b""


def _bytes(text: str) -> bytes:
    """Any text as bytes; JSON can hold lone surrogates."""
    return text.encode("utf-8", "surrogatepass")
