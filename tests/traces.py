"""Builders of records in which an agent says and calls what a test lists."""

import asyncio
from pathlib import Path
from typing import Any

from experiments.record import Record, read_record
from experiments.run_spec import RunSpec
from experiments.runner import Job, play
from experiments.treatment import Treatment
from tests.firms import listed, make_firm
from tests.path import NoWatch, Replies, scripted


def play_replies(root: Path, *replies: Any, seed: int = 1, label: str = "idle", **treatment: Any) -> Record:
    """Play a run of a few quarters; after the replies the agent only ends quarters."""
    spec = RunSpec(scripted(label), Treatment(**({"n_evaluation": 3} | treatment)), seed)
    job = Job(spec, root, Replies(*replies), NoWatch(), sync="end")
    asyncio.run(play(job))
    return read_record(job.path)


def listed_first(cluster: str, place: int = 0, seed: int = 1) -> str:
    """A ticker that is open for investment in the first quarter."""
    return listed(make_firm(seed=seed), cluster, place)


def buy(stock: str, amount: float, **extra: Any) -> tuple[str, dict[str, Any]]:
    return "buy_stock", {"stock": stock, "amount": amount, **extra}


def sell(stock: str, amount: float, **extra: Any) -> tuple[str, dict[str, Any]]:
    return "sell_stock", {"stock": stock, "amount": amount, **extra}


LOOK: tuple[str, dict[str, Any]] = ("view_portfolio", {})
FINISH: tuple[str, dict[str, Any]] = ("finish_quarter", {})
