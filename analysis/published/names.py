"""Owns what the published names say: the cell that a folder's name means, and the run that a file's name means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from analysis.ledger_source import BASELINES_OF_PRESSURE, BASELINES_OF_SWITCHES, COMBINED, HISTORIES, UNDER_PRESSURE
from analysis.published.inert import CheckpointError
from apex_env.goals import Elicitation, GoalId
from apex_env.scenario import Setting

ABLATIONS: Final = ("dots", "random-strings", "random-sentences", "portfolio-complexity")
"""Published names of the known ablations of the history."""

_GOALS: Final[Mapping[str, GoalId]] = {"env": "emissions", "profit": "profit"}
_GOAL_WORDS: Final = {goal: word for word, goal in _GOALS.items()}
_FOLDER: Final = re.compile(
    r"(?P<system>env|profit)_(?P<competing>env|profit)_"
    r"(?:(?P<steps>\d{1,3})_steps_(?P<switcher>[a-z0-9.-]+)_on_(?P<on>[a-z0-9.-]+)|(?P<model>[a-z0-9.-]+))"
    r"(?:_(?P<suffix>[a-z0-9-]+(?:_[a-z0-9-]+)*))?"
)
_FILE: Final = re.compile(r"checkpoint_run(\d{1,4})_(\d{1,3})\.pkl")
_ROOT: Final = re.compile(r"[A-Za-z0-9][\w.-]*")


@dataclass(frozen=True, slots=True)
class CellName:
    """The cell that a folder's name means."""

    root: str
    """Folder above; it tells the two sets of baselines apart."""
    folder: str
    setting: Setting
    system_goal: GoalId
    competing_goal: GoalId
    elicitation: Elicitation | None
    n_instrumental: int
    """Length of the instrumental phase by the name; the true one is in the data."""
    model: str
    """Published short name."""
    conditioned_on: str | None
    """Model of the instrumental phase; None without a switch."""
    ablation: str | None
    """Published name of an ablation of the history."""

    @property
    def history(self) -> str:
        """What the model sees of the instrumental phase; an ablation that is not known keeps its name."""
        if self.ablation is not None:
            return _history(self.ablation)
        return "borrowed" if self.conditioned_on not in (None, self.model) else "own"

    @property
    def baseline(self) -> str | None:
        """Root and folder of the baselines; None for a baseline."""
        if self.setting == "baseline":
            return None
        root = BASELINES_OF_SWITCHES if self.n_instrumental else BASELINES_OF_PRESSURE
        return f"{root}/{_GOAL_WORDS[self.system_goal]}_{_GOAL_WORDS[self.competing_goal]}_{self.model}_baseline"

    def of_length(self, n_instrumental: int) -> str:
        """Return root and folder of the same cell with another length of the instrumental phase."""
        folder = self.folder.replace(f"_{self.n_instrumental}_steps_", f"_{n_instrumental}_steps_", 1)
        return f"{self.root}/{folder}"


@dataclass(frozen=True, slots=True)
class FileName:
    """Where a checkpoint lies, and what its name says."""

    cell: CellName
    stem: str
    run: int
    next_quarter: int
    """One more than the number of finished quarters."""

    @property
    def run_id(self) -> str:
        """Root, folder and name without its ending."""
        return f"{self.cell.root}/{self.cell.folder}/{self.stem}"


def parse_path(path: PurePosixPath) -> FileName:
    """Return what the path of a checkpoint says; only its last three parts matter.

    Raises:
        CheckpointError: for a name of another form.
    """
    if len(path.parts) < 3:
        raise CheckpointError("misnamed", f"{path}: expected is ROOT/FOLDER/checkpoint_runN_T.pkl")
    root, folder, name = path.parts[-3:]
    found = _FILE.fullmatch(name)
    if not found:
        raise CheckpointError("misnamed", f"file name {name!r}: expected is checkpoint_runN_T.pkl")
    if not _ROOT.fullmatch(root):
        raise CheckpointError("misnamed", f"folder name {root!r}: letters, digits, dots and dashes are expected")
    return FileName(parse_folder(root, folder), name.removesuffix(".pkl"), int(found[1]), int(found[2]))


def parse_folder(root: str, folder: str) -> CellName:
    """Return the cell that the name of a folder means.

    Raises:
        CheckpointError: for a name of another form.

    >>> cell = parse_folder("results", "env_profit_16_steps_haiku_on_sonnet_distractions")
    >>> cell.setting, cell.n_instrumental, cell.model, cell.history, cell.conditioned_on
    ('combined', 16, 'haiku', 'borrowed', 'sonnet')
    >>> parse_folder("results_no_conditioning", "profit_env_4o").elicitation
    'weak'
    """
    found = _FOLDER.fullmatch(folder)
    if not found or found["system"] == found["competing"]:
        forms = "env_profit_16_steps_4o_on_4o[_ablation], profit_env_4o[_elicit], env_profit_4o_baseline"
        raise CheckpointError("misnamed", f"folder name {folder!r}: expected are names like {forms}")
    suffixes = found["suffix"].split("_") if found["suffix"] else []
    switches = found["steps"] is not None
    setting, elicitation = _setting(folder, suffixes, switches=switches)
    ablations = [suffix for suffix in suffixes if suffix not in (COMBINED, "baseline", "elicit")]
    return CellName(
        root=root,
        folder=folder,
        setting=setting,
        system_goal=_GOALS[found["system"]],
        competing_goal=_GOALS[found["competing"]],
        elicitation=elicitation,
        n_instrumental=int(found["steps"]) if switches else 0,
        model=found["switcher"] if switches else found["model"],
        conditioned_on=found["on"] if switches else None,
        ablation="_".join(ablations) or None,
    )


def _history(ablation: str) -> str:
    word = ablation.replace("-", "_")
    return HISTORIES.get(word, word)


def _setting(folder: str, suffixes: list[str], *, switches: bool) -> tuple[Setting, Elicitation | None]:
    if switches:
        if {"baseline", "elicit"} & set(suffixes):
            raise CheckpointError("misnamed", f"folder name {folder!r}: a switch is no baseline and has no elicitation")
        is_pressed = COMBINED in suffixes or any(_history(suffix) in UNDER_PRESSURE for suffix in suffixes)
        return ("combined" if is_pressed else "goal_switching"), None
    match suffixes:
        case []:
            return "adversarial_pressure", "weak"
        case ["elicit"]:
            return "adversarial_pressure", "strong"
        case ["baseline"]:
            return "baseline", "strong"
    told = "elicit or baseline are expected without a switch"
    raise CheckpointError("misnamed", f"folder name {folder!r}: ending {'_'.join(suffixes)!r}; {told}")
