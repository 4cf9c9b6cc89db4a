"""Owns the import of all checkpoints: in parallel, as they are found, whatever is wrong with some of them."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from analysis.published.clusters import Parted, part_clusters, rename_cluster, write_whole
from analysis.published.convert import convert
from analysis.published.facts import Facts, Failure, facts_of
from analysis.published.inert import CheckpointError
from analysis.published.names import FileName, parse_path
from analysis.published.places import Place, archives_in, places_in
from analysis.published.records import record_bytes
from experiments.errors import InputError

WAITING_PER_PROCESS: Final = 4
"""Checkpoints handed out and not imported yet, a process; it bounds the memory that an archive takes."""

Result = Facts | Failure


@dataclass(slots=True)
class Imported:
    """What came of an import."""

    runs: list[Facts] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    parted: list[Parted] = field(default_factory=list)

    def add(self, result: Result) -> None:
        """Take note of one checkpoint."""
        if isinstance(result, Failure):
            self.failures.append(result)
        else:
            self.runs.append(result)


def import_all(
    source: Path, out: Path, *, n_processes: int = 1, on_result: Callable[[Imported], None] = lambda _: None
) -> Imported:
    """Write a record of every checkpoint of a folder or an archive, and return what came of each.

    Args:
        source: a clone, an unpacked archive, or a packed one.
        out: folder for the records, `ROOT/FOLDER/checkpoint_runN_T.jsonl` each; made if missing.
        n_processes: how many checkpoints are imported at the same time.
        on_result: called after each.

    Raises:
        InputError: if there is no checkpoint, or the source cannot be read to its end.
    """
    imported = Imported()
    for result in _results(source, out, n_processes):
        imported.add(result)
        on_result(imported)
    if not imported.runs and not imported.failures:
        archives = archives_in(source)
        told = f"; archives are: {', '.join(archives)}; give the path of one" if archives else ""
        raise InputError(f"{source}: no checkpoint (.pkl) is there{told}")
    before = {run.name.run_id: run.cluster_id for run in imported.runs}
    imported.runs, imported.parted = part_clusters(imported.runs)
    for run in imported.runs:
        if run.cluster_id != before[run.name.run_id]:
            rename_cluster(record_path(out, run.name), run.cluster_id)
    imported.runs.sort(key=lambda run: (run.name.cell.root, run.name.cell.folder, run.name.run, run.name.stem))
    imported.failures.sort(key=lambda failure: failure.file)
    return imported


def record_path(out: Path, name: FileName) -> Path:
    """Return where the record of a checkpoint stands."""
    return out / f"{name.run_id}.jsonl"


def import_one(place: Place, name: FileName, out: Path) -> Result:
    """Import one checkpoint and return what the quality table has to know of it, or why it was not imported."""
    try:
        run = convert(place.read(), name, place.file)
        write_whole(record_path(out, name), record_bytes(run))
        return facts_of(run)
    except CheckpointError as error:
        return Failure(place.file, error.code, str(error))
    except OSError as error:
        return Failure(place.file, "not_written", f"{record_path(out, name)}: {error.strerror}")
    except Exception as error:  # foreign data: whatever one file does to us, the others are imported
        return Failure(place.file, "unforeseen", f"{type(error).__name__}: {error}"[:500])


def _results(source: Path, out: Path, n_processes: int) -> Iterator[Result]:
    todo = _named(source)
    if n_processes <= 1:
        for task in todo:
            yield task if isinstance(task, Failure) else import_one(*task, out)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(n_processes, mp_context=context, initializer=_end_with_parent) as pool:
        pending: set[Future[Result]] = set()
        try:
            for task in todo:
                if isinstance(task, Failure):
                    yield task
                    continue
                pending.add(pool.submit(import_one, *task, out))
                if len(pending) >= WAITING_PER_PROCESS * n_processes:
                    done, pending = wait(pending, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in done)
            yield from (future.result() for future in wait(pending).done)
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _end_with_parent() -> None:
    """Let this process end when the one that started it was killed; it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _named(source: Path) -> Iterator[tuple[Place, FileName] | Failure]:
    """Yield every checkpoint with what its path says, or why it cannot be imported; an archive may end too early."""
    taken: dict[str, str] = {}
    try:
        yield from _each_named(source, taken)
    except InputError as error:
        if not taken:
            raise
        yield Failure(source.name, "damaged_archive", str(error))


def _each_named(source: Path, taken: dict[str, str]) -> Iterator[tuple[Place, FileName] | Failure]:
    for place in places_in(source):
        if not isinstance(place, Place):
            yield Failure(place[0], place[1].code, str(place[1]))
            continue
        try:
            name = parse_path(place.path)
        except CheckpointError as error:
            yield Failure(place.file, error.code, str(error))
            continue
        if name.run_id in taken:
            told = f"{taken[name.run_id]} has the same root, folder and name, and was imported"
            yield Failure(place.file, "same_name", told)
            continue
        taken[name.run_id] = place.file
        yield place, name
