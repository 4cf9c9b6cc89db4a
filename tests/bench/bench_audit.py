"""How long it takes to audit all published runs of the ledger."""

import os
from pathlib import Path

from analysis.audit.command import audit_paths
from tests.bench.measure import Row, best_of, seconds, show

N_REPEATS = 2


def main() -> None:
    folder = os.environ.get("APEX_ARIKE2025")
    if not folder:
        print("left out: APEX_ARIKE2025 is unset; it names the folder of the paper's public run data")
        return
    path = Path(folder) / "ledger.jsonl.gz"
    timing = best_of(lambda _: audit_paths([path]), N_REPEATS)
    show([Row("audit the published ledger", *seconds(timing), "60 s on 2 cores")])
