"""Fixtures and settings that every test shares."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

os.environ.setdefault("MPLBACKEND", "Agg")

# No deadline: how long an example takes says more about the machine than about the code.
settings.register_profile(
    "apex",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("apex")


@pytest.fixture(scope="session")
def arike2025() -> Path:
    """The folder of the paper's public run data, named by APEX_ARIKE2025; tests that need it skip where it is unset."""
    value = os.environ.get("APEX_ARIKE2025")
    if not value:
        pytest.skip("APEX_ARIKE2025 is unset: it names the folder of the paper's public run data")
    folder = Path(value)
    if not folder.is_dir():
        pytest.fail(f"APEX_ARIKE2025 is {value!r}, which is no folder")
    return folder
