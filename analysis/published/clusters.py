"""Owns the finding out of trajectories that begin alike and part later, so that each has a cluster of its own."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from analysis.published.facts import Facts


@dataclass(frozen=True, slots=True)
class Parted:
    """A cluster that turned out to be several trajectories."""

    cluster_id: str
    quarter: int
    """First quarter in which they differ."""
    parts: tuple[str, ...]
    """Clusters that took its place."""
    n_undecided: int
    """Runs too short to tell; they keep the cluster's name, and depend on more than one of the parts."""


def part_clusters(runs: Iterable[Facts]) -> tuple[list[Facts], list[Parted]]:
    """Return all runs, those of a cluster that parts with a new cluster, and what was parted."""
    by_cluster: dict[str, list[Facts]] = defaultdict(list)
    for run in runs:
        by_cluster[run.cluster_id].append(run)
    result: list[Facts] = []
    parted: list[Parted] = []
    for members in by_cluster.values():
        result.extend(_part(members, parted))
    return result, parted


def _part(members: Sequence[Facts], parted: list[Parted]) -> list[Facts]:
    quarter = _first_difference(members)
    if quarter is None:
        return list(members)
    cluster_id = members[0].cluster_id
    undecided = [run for run in members if len(run.trajectory) < quarter]
    parts: dict[str, list[Facts]] = defaultdict(list)
    for run in members:
        if len(run.trajectory) >= quarter:
            name = f"{cluster_id}.{quarter}-{run.trajectory[quarter - 1][:8]}"
            parts[name].append(replace(run, cluster_id=name))
    parted.append(Parted(cluster_id, quarter, tuple(parts), len(undecided)))
    return undecided + [run for part in parts.values() for run in _part(part, parted)]


def _first_difference(members: Sequence[Facts]) -> int | None:
    longest = max(len(run.trajectory) for run in members)
    for quarter in range(1, longest + 1):
        if len({run.trajectory[quarter - 1] for run in members if len(run.trajectory) >= quarter}) > 1:
            return quarter
    return None


def rename_cluster(record: Path, cluster_id: str) -> None:
    """Give a record another cluster; nothing else of it changes, and it is there in whole at any moment.

    Raises:
        OSError: if the record cannot be read or written.
    """
    header, rest = record.read_bytes().split(b"\n", 1)
    line = json.loads(header) | {"cluster_id": cluster_id}
    write_whole(record, json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n" + rest)


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that it is there in whole or not at all; folders above it are made.

    Raises:
        OSError: if it cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.part")
    part.write_bytes(data)
    os.replace(part, path)
