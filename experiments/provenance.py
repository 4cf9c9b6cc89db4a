"""Owns the provenance of a run: which code, with which packages, on which interpreter."""

from __future__ import annotations

import platform
import subprocess
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Final

_PACKAGES: Final = ("openai", "anthropic", "litellm", "numpy", "pandas", "scipy", "matplotlib", "hydra-core", "httpx2")


@lru_cache(maxsize=1)
def provenance() -> dict[str, Any]:
    """Return commit, whether the tree differs from it, and the versions of what can matter; None where unknown."""
    root = Path(__file__).parent.parent
    return {
        "commit": _git(root, "rev-parse", "HEAD"),
        "dirty": None if (status := _git(root, "status", "--porcelain", "-uno")) is None else bool(status),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "packages": {name: version for name in _PACKAGES if (version := _version(name)) is not None},
    }


@lru_cache(maxsize=1)
def benchmark_version() -> str:
    """Return the version of this benchmark."""
    return _version("apex-goal-drift") or "unknown"


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _git(root: Path, *words: str) -> str | None:
    try:
        done = subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, timeout=10, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
