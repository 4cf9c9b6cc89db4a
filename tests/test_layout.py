"""The layout of the repository: which package may import which, what stands at the top, what the lock files hold."""

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

MAY_IMPORT = {
    "apex_env": {"apex_env"},
    "experiments": {"apex_env", "experiments"},
    "analysis": {"apex_env", "experiments", "analysis"},
}
OURS = {*MAY_IMPORT, "tests", "conf"}
NO_MODEL_API_NO_HYDRA = {"openai", "anthropic", "litellm", "hydra", "omegaconf"}

TOP_LEVEL = {
    *MAY_IMPORT,
    *("conf", "results", "tests"),
    *("pyproject.toml", "Makefile", "README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md"),
}
LOCKS = sorted((ROOT / ".ci").glob("*.lock"))


def imported_names(source: str) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import, wherever it stands, dynamic ones of a literal name included."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, alias.name) for alias in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield node.lineno, module
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def imports_outside(package: str, *, allowed: set[str], among: set[str]) -> list[str]:
    """Imports in a package's files of a top-level name that is in `among` but not `allowed`, each with its place."""
    return [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sorted((ROOT / package).rglob("*.py"))
        for line, name in imported_names(path.read_text(encoding="utf-8"))
        if (top := name.partition(".")[0]) in among and top not in allowed
    ]


def test_imports_are_found_at_any_depth_and_in_every_form():
    source = """
import numpy as np, experiments.run
from apex_env.market import Stock
from . import sibling
from .sibling import thing
if TYPE_CHECKING:
    from analysis import drift
def late():
    import openai
    importlib.import_module("litellm.main")
    import_module(computed)
    __import__("hydra")
"""
    assert sorted(imported_names(source)) == [
        (2, "experiments.run"),
        (2, "numpy"),
        (3, "apex_env.market"),
        (7, "analysis"),
        (9, "openai"),
        (10, "litellm.main"),
        (12, "hydra"),
    ]


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_packages_import_one_way(package):
    assert (ROOT / package / "__init__.py").is_file()
    assert imports_outside(package, allowed=MAY_IMPORT[package], among=OURS) == []


def test_the_firm_imports_no_model_api_and_no_hydra():
    assert imports_outside("apex_env", allowed=set(), among=NO_MODEL_API_NO_HYDRA) == []


@pytest.mark.parametrize("package", MAY_IMPORT)
def test_every_folder_with_modules_is_a_package(package):
    folders = {path.parent for path in (ROOT / package).rglob("*.py")}
    assert [str(folder.relative_to(ROOT)) for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_nothing_unplanned_stands_at_the_top():
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip(f"no git checkout: {listing.stderr.strip()}")
    top = {line.partition("/")[0] for line in listing.stdout.splitlines()}
    assert {name for name in top if not name.startswith(".")} <= TOP_LEVEL


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_lock_pins_every_package_by_hash_and_names_no_address(lock):
    text = lock.read_text(encoding="utf-8")
    requirements = re.split(r"\n(?! )", text.strip())
    # Nothing but pins by version and SHA-256: no address, no option, no path fits this form.
    form = re.compile(r"[\w.-]+==[\w.+]+( ; [^\n\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+")
    assert [requirement for requirement in requirements if not form.fullmatch(requirement)] == []
    assert len(requirements) > 50


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.name)
def test_lock_holds_no_compromised_litellm(lock):
    versions = re.findall(r"^litellm==(\S+)", lock.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert versions
    assert not {"1.82.7", "1.82.8"} & set(versions)
