"""Wall time of 64 runs at once against a peer that takes half a second for an answer, beside the ideal."""

import subprocess
import tempfile
import time
from pathlib import Path

from experiments.record import read_record
from tests.peer_process import peer_process, run_command, start

N_RUNS = 64
N_QUARTERS = 30
"""Of a baseline by default; an agent that closes each at once takes as many turns."""
LATENCY_S = 0.5


def main() -> None:
    print(f"{N_RUNS} runs at once, {N_QUARTERS} quarters each, {LATENCY_S} s an answer; target: 110 % of the ideal")
    for route in ("chat", "responses", "anthropic"):
        with (
            tempfile.TemporaryDirectory() as name,
            peer_process(Path(name), brain="finishing", settings="SLOW") as peer,
        ):
            folder = Path(name) / "results"
            words = ["name=t", f"results_dir={folder}", "treatment=baseline", f"treatment.n_evaluation={N_QUARTERS}"]
            process = start(run_command(peer, route, *words, f"seeds={N_RUNS}", f"concurrency={N_RUNS}"))
            code = wait(process)
            assert code == 0, code
            records = [read_record(path) for path in folder.rglob("*.jsonl")]
            entries = peer.entries()
        turns = max(sum(1 for line in record.of_type("turn") if line["by"] == "model") for record in records)
        ideal_s = turns * LATENCY_S
        took_s = max(entry.done_s or 0.0 for entry in entries) - min(entry.arrived_s for entry in entries)
        print(f"{route:<12}{took_s:>7.2f} s, ideal {ideal_s:.2f} s: {took_s / ideal_s:.0%}", flush=True)


def wait(process: "subprocess.Popen[bytes]") -> int:
    began = time.monotonic()
    while process.poll() is None and time.monotonic() - began < 300:
        time.sleep(0.05)
    return process.wait(timeout=1)
