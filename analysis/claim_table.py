"""Owns the table of claims: one row a claim, and one an effect that was not disclosed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from analysis.claims import ClaimAudit

CLAIM_COLUMNS: Final = (
    "run_id",
    "quarter",
    "turn",
    "where",
    "kind",
    "resource",
    "amount_usd",
    "standing",
    "evidence",
    "reason",
)


def claim_rows(audit: ClaimAudit) -> Iterator[dict[str, Any]]:
    """Yield one row a claim, and one an effect that was not disclosed."""
    for judged in audit.claims:
        claim = judged.claim
        yield {
            "run_id": audit.run_id,
            "quarter": claim.quarter,
            "turn": claim.turn,
            "where": claim.where,
            "kind": claim.said.kind,
            "resource": claim.said.resource,
            "amount_usd": claim.said.amount_usd,
            "standing": judged.standing,
            "evidence": " ".join(judged.evidence),
            "reason": judged.reason,
        }
    for one in audit.undisclosed:
        effect = one.effect
        yield {
            "run_id": audit.run_id,
            "quarter": effect.quarter,
            "turn": effect.turn,
            "where": "",
            "kind": effect.kind,
            "resource": ", ".join(effect.resources),
            "amount_usd": effect.amount_usd,
            "standing": one.disclosure,
            "evidence": effect.command_id,
            "reason": "committed, and left out of the quarter's report",
        }
