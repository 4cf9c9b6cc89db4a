"""Owns the shape of a corpus' texts that are no items: which ones there must be, with which placeholders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from apex_env.market import CLUSTER_OF
from apex_env.placeholders import placeholders


class CorpusError(ValueError):
    """A data file of the corpus is not what it should be; the text names file and item."""


def check_shape(where: str, document: Any, model: Any, *, formatted: bool) -> None:
    """Refuse a document that lacks a text, or has one, that the model does not; the key ``""`` stands for any.

    Args:
        where: file and place in it, for messages.
        document: what was read.
        model: what it has to be like: texts, and mappings of them.
        formatted: whether placeholders of its texts are filled in; none may stand there that the model has not.

    Raises:
        CorpusError: naming the place.
    """
    if isinstance(model, str):
        if not isinstance(document, str) or not document.strip():
            raise CorpusError(f"{where}: {document!r} where a text is expected")
        allowed = placeholders(model) if formatted else []
        for name in placeholders(document) if formatted else []:
            if name not in allowed:
                raise CorpusError(f"{where}: placeholder {{{name}}} is not known: {', '.join(allowed) or 'none'}")
        return
    if not isinstance(document, dict) or not document:
        raise CorpusError(f"{where}: {document!r} where a mapping is expected: {', '.join(model)}")
    model = {name: model.get("", model.get(name)) for name in (document if "" in model else model)}
    for name in [*model, *document]:
        if name not in model:
            raise CorpusError(f"{where}: {name!r} is not known: {', '.join(model)}")
        if name not in document:
            raise CorpusError(f"{where}: needs {name!r}")
        check_shape(f"{where}: {name}", document[name], model[name], formatted=formatted)


def check_invented(path: Path, names: Mapping[str, str]) -> None:
    """Refuse names that could be taken for another stock.

    Raises:
        CorpusError: naming file, ticker and name.
    """
    for place, (ticker, name) in enumerate(names.items()):
        if not (name.isalnum() and name.isupper()) or name in CLUSTER_OF or name in list(names.values())[:place]:
            raise CorpusError(f"{path}: {ticker}: {name!r} is not a name of its own in capital letters")
