"""Owns what a run sees of its instrumental phase: pure functions from a conversation to the one that is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from experiments.chat import Message
from experiments.treatment import History, Treatment

Recipe = Mapping[str, Any]
"""How a shown history is made from the parent's conversation, as plain JSON: the same recipe gives the same bytes."""


def recipe_for(treatment: Treatment) -> Recipe:
    """Return the recipe of a treatment's history."""
    kind: History = treatment.history
    return {"kind": kind}


def shown(recipe: Recipe, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation that a run is shown in place of its parent's."""
    if recipe["kind"] == "none":
        return ()
    return tuple(messages)
