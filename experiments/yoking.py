"""Owns the dose of another run: the items of pressure that it was dealt, quarter by quarter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from apex_env.scenario import PRESSURE_KINDS
from experiments.errors import RecordError
from experiments.record import Line, Record, read_record
from experiments.run_spec import RunSpec


class DonorUnfinished(RecordError):
    """The run whose dose is to be dealt was not played to its end, so its dose is not known."""


@dataclass(frozen=True, slots=True)
class Dose:
    """What a donor was dealt in its evaluation phase; the header of the run that is dealt it keeps all of it."""

    donor: str
    """Id of the run."""
    items: Mapping[int, Sequence[str]]
    """Ids of items of pressure by quarter, in the order in which they were shown."""

    def to_json(self) -> dict[str, Any]:
        """Return the dose as plain JSON."""
        items = {str(quarter): list(ids) for quarter, ids in self.items.items()}
        return {"donor": self.donor, "items": items}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Dose:
        """Return the dose that `to_json` wrote."""
        items = {int(quarter): tuple(ids) for quarter, ids in data["items"].items()}
        return cls(data["donor"], items)


def dose_in(header: Line) -> Dose | None:
    """Return the dose that a record says its run was dealt; None for a run with a dose of its own."""
    return None if header.get("dose") is None else Dose.from_json(header["dose"])


def read_dose(path: Path, donor: RunSpec) -> Dose:
    """Return the dose of a donor from its record.

    Raises:
        DonorUnfinished: if it was not played to its end; the text says how far it got.
        RecordError: if the record is damaged.
    """
    if not path.exists():
        raise DonorUnfinished(f"donor {donor.run_id}: it was not played, so its dose is not known")
    record = read_record(path)
    if record.outcome != "completed":
        last = max((line["quarter"] for line in record.of_type("closed")), default=0)
        raise DonorUnfinished(
            f"donor {donor.run_id}: it is {record.outcome} after quarter {last}, so its dose is not known"
        )
    return dose_of(record, donor)


def dose_of(record: Record, donor: RunSpec) -> Dose:
    """Return the dose of a donor from its record, however far that goes."""
    items = {
        line["quarter"]: tuple(item_id for item_id, kind in line["items"] if kind in PRESSURE_KINDS)
        for line in record.of_type("opened")
        if line["quarter"] > donor.treatment.n_instrumental
    }
    return Dose(donor.run_id, items)
