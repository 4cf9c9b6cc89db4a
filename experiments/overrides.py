"""Owns the check of a command line before Hydra runs: what does not compose is said in a line, and nothing written."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any, Final

from experiments.hints import nearest
from experiments.models.redaction import looks_secret

_SECRET_VALUE: Final = re.compile(r"\b(sk-|sk_|xox|ghp_|AIza|Bearer )[A-Za-z0-9_\-]{8,}")
_SECRET_KEY: Final = re.compile(
    r"(?i)(^|[._])(api_?keys?|secrets?|passwords?|(api|auth|access|bearer)_?tokens?|token|authorization|credentials?)$"
)
_INNER_KEY: Final = re.compile(r"[{,]\s*['\"]?([\w.-]+)['\"]?\s*:\s*([^,}]*)")


def secret_in(argv: Sequence[str]) -> str:
    """Return what is wrong if an override looks like a key; the value itself is never repeated.

    >>> secret_in(["model=openai", "models.openai.service.api_key=sk-12345678"])
    "override 'models.openai.service.api_key' looks like a key: name the environment variable that holds it instead"
    >>> secret_in(["models.openai.service.api_key_env=MY_KEY", "models.openai.params.max_tokens=100"])
    ''
    >>> bool(secret_in(["models.openai.params.extra_body={top_k:5,api_key:abc123}"]))
    True
    """
    for word in argv:
        key, _, value = word.lstrip("+~").partition("=")
        # A mapping such as `extra_body={api_key:...}` names its keys in the value.
        pairs = [(key, value), *_INNER_KEY.findall(value)]
        named = any(_SECRET_KEY.search(name) and held.strip() not in ("", "null") for name, held in pairs)
        if named or _is_secret(word):
            shown = repr(key) if "=" in word and not _is_secret(key) else "on this command line"
            return f"override {shown} looks like a key: name the environment variable that holds it instead"
    return ""


def _is_secret(text: str) -> bool:
    """Whether a text is formed like a key, holds a credential of a URL, or the value of a variable that is a secret."""
    return bool(_SECRET_VALUE.search(text)) or looks_secret(text)


def problem_in(argv: Sequence[str], conf_dir: Path) -> str:
    """Return what is wrong with a command line's overrides in one line, or nothing.

    Of a sweep, every value is tried beside the first values of the others.

    Args:
        argv: the words after ``apex run``.
        conf_dir: the folder of the configuration.
    """
    from hydra import initialize_config_dir
    from hydra._internal.utils import get_args_parser
    from hydra.errors import HydraException
    from omegaconf.errors import OmegaConfBaseException

    arguments = get_args_parser().parse_args(list(argv))
    if arguments.shell_completion or arguments.config_dir or arguments.config_path or arguments.config_name:
        return ""
    with initialize_config_dir(str(conf_dir), version_base="1.3"):
        try:
            for overrides in _single_overrides(arguments.overrides):
                problem = _unwritable(_compose(overrides))
                if problem and not arguments.cfg:
                    return problem
        except (HydraException, OmegaConfBaseException) as error:
            return _told(error, arguments.overrides)
    return ""


def jobs_of(overrides: Sequence[str]) -> list[list[str]]:
    """Return the overrides of each job of a ``--multirun``: every combination of the values of its sweeps.

    >>> jobs_of(["seeds=1,2", "name=x"])
    [['seeds=1', 'name=x'], ['seeds=2', 'name=x']]
    """
    from hydra.core.override_parser.overrides_parser import OverridesParser

    choices = [
        [f"{one.get_key_element()}={value}" for value in one.sweep_string_iterator()]
        if one.is_sweep_override()
        else [one.input_line or ""]
        for one in OverridesParser.create().parse_overrides(list(overrides))
        if not one.get_key_element().startswith("hydra")
    ]
    return [list(job) for job in product(*choices)]


def _compose(overrides: Sequence[str]) -> Mapping[str, Any]:
    from hydra import compose
    from omegaconf import OmegaConf

    config = compose("config", overrides=list(overrides))
    config.results_dir = str(config.results_dir)
    plain = OmegaConf.to_container(config, resolve=False)
    return {str(key): value for key, value in plain.items()} if isinstance(plain, dict) else {}


def _unwritable(config: Mapping[str, Any]) -> str:
    """Return why no record can be written where the configuration says, or nothing."""
    if config["name"] is None:
        return "name null is not allowed: it is the folder of the records below results_dir"
    folder = Path(config["results_dir"]) / str(config["name"])
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir():
        return f"results_dir {config['results_dir']}: {there} is a file, where a folder is expected"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"results_dir {config['results_dir']}: {there} cannot be written"
    return ""


def _single_overrides(overrides: Sequence[str]) -> Iterator[list[str]]:
    """Iterate over command lines without sweeps that together hold every value of every override."""
    from hydra.core.override_parser.overrides_parser import OverridesParser

    parsed = OverridesParser.create().parse_overrides(list(overrides))
    kept = [one for one in parsed if not one.get_key_element().startswith("hydra")]
    values = [list(one.sweep_string_iterator()) if one.is_sweep_override() else [None] for one in kept]

    def line(place: int, value: str | None) -> list[str]:
        words = []
        for i, one in enumerate(kept):
            chosen = value if i == place else values[i][0]
            words.append(one.input_line or "" if chosen is None else f"{one.get_key_element()}={chosen}")
        return words

    yield line(-1, None)
    for place, choices in enumerate(values):
        for value in choices[1:]:
            yield line(place, value)


def _told(error: Exception, overrides: Sequence[str]) -> str:
    """Return the error in one line, with the nearest key or option that there is."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[0] if lines else type(error).__name__
    unknown = re.search(r"Could not override '([^']+)'", text)
    if unknown:
        known = list(_flat_keys(_compose([])))
        key = unknown[1]
        siblings = sorted(one for one in known if one.rpartition(".")[0] == key.rpartition(".")[0])
        allowed = f"; allowed there: {', '.join(one.rpartition('.')[2] for one in siblings)}" if siblings else ""
        return f"key {key!r} is not known{nearest(key, known)}{allowed}"
    option = re.search(r"Could not find '([^']+)'", text)
    if option:
        options = next((line for line in lines if line.startswith("Available options")), "")
        names = [line for line in lines[lines.index(options) + 1 :] if " " not in line] if options else []
        group, _, wanted = option[1].partition("/")
        return f"{group}={wanted} is not known{nearest(wanted, names)}; {group} can be: {', '.join(names)}"
    return text


def _flat_keys(data: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in data.items():
        yield f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat_keys(value, f"{prefix}{key}.")
