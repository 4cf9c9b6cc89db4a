"""Runs every benchmark of this folder, or those named: `python -m tests.bench [NAME...]`."""

import importlib
import pkgutil
import sys

from tests import bench

PREFIX = "bench_"


def available() -> list[str]:
    """Names of the benchmarks: each `bench_<name>.py` beside this file offers `main()`, which prints its numbers."""
    return sorted(
        module.name.removeprefix(PREFIX)
        for module in pkgutil.iter_modules(bench.__path__)
        if module.name.startswith(PREFIX)
    )


def main(names: list[str]) -> int:
    known = available()
    unknown = [name for name in names if name not in known]
    if unknown or not known:
        print(f"bench: no benchmark {', '.join(unknown) or 'exists'}; there are: {', '.join(known)}", file=sys.stderr)
        return 2
    for name in names or known:
        print(f"== {name}", flush=True)
        importlib.import_module(f"{bench.__name__}.{PREFIX}{name}").main()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
