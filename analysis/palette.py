"""Owns how a model looks in every figure: its label, colour and marker, the same everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple


class ModelStyle(NamedTuple):
    """How one model is drawn."""

    label: str
    colour: str
    marker: str


MODEL_STYLES: Final[Mapping[str, ModelStyle]] = {
    "gpt-4o": ModelStyle("GPT-4o", "#0072B2", "o"),
    "gpt-4o-mini": ModelStyle("GPT-4o mini", "#56B4E9", "s"),
    "claude-3.5-sonnet": ModelStyle("Claude 3.5 Sonnet", "#D55E00", "^"),
    "claude-3.5-haiku": ModelStyle("Claude 3.5 Haiku", "#E69F00", "D"),
    "adherent": ModelStyle("adherent (scripted)", "#555555", "P"),
    "negligent": ModelStyle("negligent (scripted)", "#999999", "X"),
}
"""The paper's models and the two reference agents; colours of Okabe and Ito, one hue a family of models."""

_COLOURS: Final = ("#009E73", "#CC79A7", "#332288", "#000000", "#999933", "#882255", "#44AA99", "#661100")
_MARKERS: Final = ("o", "s", "^", "D", "v", "P", "X")


def styles_of(models: Iterable[str]) -> dict[str, ModelStyle]:
    """Return the style of each model, in the order in which known models are listed, then by name.

    A model that `MODEL_STYLES` does not name gets the colour that its name hashes to, so it keeps it from figure to
    figure; where another model of the same figure has it already, the next free one.
    """
    wanted = set(models)
    styles = {model: style for model, style in MODEL_STYLES.items() if model in wanted}
    taken: set[int] = set()
    for model in sorted(wanted - set(styles)):
        start = int.from_bytes(hashlib.sha256(model.encode()).digest()[:4])
        place = next(
            (p for step in range(len(_COLOURS)) if (p := (start + step) % len(_COLOURS)) not in taken),
            start % len(_COLOURS),
        )
        taken.add(place)
        styles[model] = ModelStyle(model, _COLOURS[place], _MARKERS[(start // len(_COLOURS)) % len(_MARKERS)])
    return styles
