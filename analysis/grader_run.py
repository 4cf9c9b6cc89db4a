"""Owns putting a grading model to work: from a model's configuration file to claims for every text of some runs."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

from analysis.claim_rules import Said
from analysis.claims import passages_of, stock_names
from analysis.grader_model import Proposed, propose_claims
from analysis.runs import SourceError
from experiments.chat import Model
from experiments.errors import InputError, RunEnded
from experiments.models import build_model
from experiments.record import Record
from experiments.run_spec import ModelConfig


@dataclass(frozen=True, slots=True)
class Proposals:
    """What a model proposed for every text, checked."""

    by_text: Mapping[str, Proposed]

    def __call__(self, text: str, names: Mapping[str, str]) -> Iterable[Said]:
        """Return the claims of a text, as `analysis.claims.audit_claims` asks for them."""
        found = self.by_text.get(text)
        return () if found is None else found.claims

    @property
    def n_rejected(self) -> int:
        """How many proposals the text did not bear out."""
        return sum(len(found.rejected) for found in self.by_text.values())


def model_from_file(path: Path) -> Model:
    """Return the model of a configuration file such as those of ``conf/model``.

    Raises:
        SourceError: if there is no model in it.
    """
    return model_of(model_config(path), path)


def model_of(config: ModelConfig, path: Path) -> Model:
    """Return the model of a configuration that was read from a file.

    Raises:
        SourceError: if no model can be made of it.
    """
    try:
        return build_model(config)
    except InputError as error:
        raise SourceError(f"{path}: no model can be made of it: {error}") from error


def model_config(path: Path) -> ModelConfig:
    """Return the configuration of a model as a file such as those of ``conf/model`` holds it.

    Raises:
        SourceError: if there is none in it.
    """
    try:
        root = OmegaConf.create({"results_dir": "results", "name": "grader", "target": None})
        root.entry = OmegaConf.load(path)
        data: Any = OmegaConf.to_container(root.entry, resolve=True)
        return ModelConfig(**data)
    except (OmegaConfBaseException, YAMLError, TypeError, ValueError, OSError) as error:
        raise SourceError(f"{path}: no model can be made of it: {error}") from error


def propose_for(model: Model, records: Sequence[Record]) -> Proposals:
    """Return what a model finds in every text of some runs; equal texts are asked about once.

    Raises:
        SourceError: if the model does not answer.
    """
    texts = {passage.text: stock_names(record) for record in records for passage in passages_of(record) if passage.text}

    async def ask_all() -> list[Proposed]:
        return await asyncio.gather(*(propose_claims(model, text, names) for text, names in texts.items()))

    try:
        answers = asyncio.run(ask_all())
    except RunEnded as error:
        raise SourceError(f"the grading model {model.name!r} does not answer: {error.reason}") from error
    return Proposals(dict(zip(texts, answers, strict=True)))
