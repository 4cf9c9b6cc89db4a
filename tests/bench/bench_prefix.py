"""Share of consecutive requests of a run that keep the whole request before them as their prefix, by client."""

import contextlib
import io
import tempfile
from pathlib import Path

from experiments.treatment import Treatment
from tests.path import plan, sweep_runs
from tests.peers import Peer
from tests.wire import ROUTES, config_of, scripted_brain

RUN = Treatment("adversarial_pressure", n_evaluation=10)


def main() -> None:
    print("target: all, so that the providers' prompt caches hit")
    for route in ROUTES:
        # One run a peer: runs that begin alike would be taken for one conversation.
        with Peer(scripted_brain("inertial", seed=1)) as peer, tempfile.TemporaryDirectory() as folder:
            (run,) = [
                run for run in plan(config_of(route, peer), RUN, seeds=[1]) if run.treatment.setting == RUN.setting
            ]
            with contextlib.redirect_stderr(io.StringIO()):
                assert sweep_runs(Path(folder), [run]).complete
            share = peer.log.prefix_share()
        assert share is not None
        print(f"{route:<20}{len(peer.log):>5} requests{share:>8.1%}")
