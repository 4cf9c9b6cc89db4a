"""How long the published ledger takes to read, and to replay through the firm."""

import contextlib
import io
import os
from pathlib import Path

from experiments import replay
from experiments.published_ledger import read_ledger
from tests.bench.measure import Row, best_of, seconds, show

N_REPEATS = 3


def main() -> None:
    folder = os.environ.get("APEX_ARIKE2025")
    if not folder:
        print("left out: APEX_ARIKE2025 is unset; it names the folder of the paper's public run data")
        return
    path = Path(folder) / "ledger.jsonl.gz"

    def replay_all(repeat: int) -> None:
        quiet = io.StringIO()
        with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet):
            assert replay.main([str(path)]) == 0, quiet.getvalue()

    reading = best_of(lambda _: sum(1 for _ in read_ledger(path)), N_REPEATS)
    replaying = best_of(replay_all, N_REPEATS)
    show(
        [
            Row("read the published ledger", *seconds(reading), ""),
            Row("replay it, the reading included", *seconds(replaying), "10 s"),
        ]
    )
