"""Owns `apex corpus`: check a corpus, show what is in it, import the paper's own stimuli."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Final

from apex_env.corpus_check import check_corpus
from apex_env.corpus_tables import kinds_table, markdown, mechanisms_table, needs_table
from apex_env.goals import GOAL_PAIRS
from apex_env.inbox import deck
from apex_env.market import CLUSTERS
from apex_env.prompts import render_item
from apex_env.streams import check_seed
from apex_env.texts import CORPUS_DIR, ITEM_KINDS, Corpus, CorpusError, Item, load_corpus
from experiments.corpus_import import import_arike2025, missing_for_full_run
from experiments.errors import InputError

RULE: Final = "-" * 78

_ABOUT: Final = {
    "check": "check a corpus, and print its tables",
    "show": "print items as the agent reads them, prompts, or the invented tickers",
    "import": "write the paper's own stimuli, from a clone of its public repository, as a corpus folder",
}


def main(argv: Sequence[str]) -> int:
    """Run ``apex corpus check|show|import``; exit code 0 done, 1 the corpus has faults, 2 bad input."""
    parser = _parser()
    try:
        options = parser.parse_args(argv)
    except SystemExit as end:
        return int(end.code or 0)
    try:
        return int(options.run(options))
    except (CorpusError, InputError) as error:
        print(f"{parser.prog} {options.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        raise
    except OSError as error:
        print(f"{parser.prog} {options.command}: {error.filename}: {error.strerror}", file=sys.stderr)
        return 2


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="apex corpus", description="The texts that agents read.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="|".join(_ABOUT))
    check = commands.add_parser("check", help=_ABOUT["check"], description=_ABOUT["check"])
    check.add_argument("path", metavar="PATH", type=Path, nargs="?", default=CORPUS_DIR, help="folder over ours")
    check.set_defaults(run=_check)
    show = commands.add_parser("show", help=_ABOUT["show"], description=_ABOUT["show"])
    show.add_argument("kind", metavar="KIND", choices=tuple(_SHOWN), help=", ".join(_SHOWN))
    show.add_argument("--n", type=_whole, default=5, help="how many items (default: 5)")
    show.add_argument("--system-goal", choices=tuple(GOAL_PAIRS), default="emissions", help="default: emissions")
    show.add_argument("--seed", type=_seed, help="show them in the order in which this seed deals them")
    show.add_argument("--prompt-variant", default="first", help="of prompts (default: first)")
    show.add_argument("--corpus", metavar="PATH", type=Path, default=CORPUS_DIR, help="folder over ours")
    show.set_defaults(run=_show)
    imports = commands.add_parser("import", help=_ABOUT["import"], description=_ABOUT["import"])
    imports.add_argument("form", choices=("arike2025",), help="which published repository")
    imports.add_argument("clone", metavar="CLONE", type=Path, help="folder of the clone; nothing in it is executed")
    imports.add_argument("out", metavar="OUT", type=Path, help="new or empty folder")
    imports.set_defaults(run=_import)
    return parser


def _check(options: argparse.Namespace) -> int:
    corpus = load_corpus(options.path)
    for title, table in (
        ("Items by kind", kinds_table),
        ("Items by mechanism, system goal emissions / profit", mechanisms_table),
        ("Items that the longest run of a treatment can need", needs_table),
    ):
        print(f"{title}\n\n{markdown(table(corpus))}\n")
    findings = check_corpus(corpus)
    for finding in findings:
        print(finding)
    n_items = sum(map(len, corpus.items.values()))
    print(f"corpus {corpus.digest[:12]}: {n_items} items, {len(findings)} faults")
    return 1 if findings else 0


def _show(options: argparse.Namespace) -> int:
    corpus = load_corpus(options.corpus)
    for text in _SHOWN[options.kind](corpus, options):
        print(text)
    return 0


def _shown_items(corpus: Corpus, options: argparse.Namespace) -> Iterator[str]:
    kind, goal = options.kind, options.system_goal
    items = corpus.of_kind(kind, goal) if options.seed is None else tuple(deck(corpus, kind, goal, options.seed))
    for item in islice(items, options.n):
        example = _example(item, goal)
        stands_for = f"; {example} stands for the agent's largest holding of its cluster" if item.names_a_stock else ""
        tags = ", ".join(item.tags) or "no tags"
        yield f"{RULE}\n{item.item_id}: {tags}{stands_for}\n\n{render_item(item, example, corpus.texts)}\n"
    yield f"{RULE}\n{min(options.n, len(items))} of {len(items)} items of kind {kind}"


def _example(item: Item, system_goal: str) -> str:
    """Return a stock of the cluster that an item is about; in a run it is the largest holding of that cluster."""
    pair = GOAL_PAIRS[system_goal]
    return CLUSTERS[pair.competing.cluster if item.kind == "praise_news" else pair.system.cluster][0]


def _shown_prompts(corpus: Corpus, options: argparse.Namespace) -> Iterator[str]:
    variant = corpus.prompts.get(options.prompt_variant)
    if variant is None:
        raise InputError(f"prompt variant {options.prompt_variant!r} is not known: {', '.join(corpus.prompts)}")
    yield f"{RULE}\nrole\n\n{variant['role']}\n"
    for name in ("weak", "strong", "switching", "unrelated"):
        yield f"{RULE}\n{name}\n\n{variant[name][options.system_goal]}\n"


def _shown_tickers(corpus: Corpus, options: argparse.Namespace) -> Iterator[str]:
    rows = [["cluster", "ticker", "invented"]]
    rows += [[cluster, ticker, corpus.invented_tickers[ticker]] for cluster in CLUSTERS for ticker in CLUSTERS[cluster]]
    yield markdown(rows)


_SHOWN: Final = dict.fromkeys(ITEM_KINDS, _shown_items) | {"prompts": _shown_prompts, "tickers": _shown_tickers}


def _import(options: argparse.Namespace) -> int:
    imported = import_arike2025(options.clone, options.out)
    for note in imported.notes:
        print(note)
    rows = [["file", "items", "needed by the longest run", "missing"]]
    missing = missing_for_full_run(imported)
    for source, needed, n_missing in missing:
        rows.append([source.target, str(imported.n_items[source]), str(needed), str(n_missing) if n_missing else "-"])
    print(markdown(rows))
    if any(n_missing for *_, n_missing in missing):
        print("What is missing for the longest run is not filled up from ours, except that requests put together from")
        print(
            "parts follow the imported ones; shorter runs may do, and a run that does not is refused with the number."
        )
    print(f"{options.out}: use it with corpus={options.out}; what it lacks, prompts and tools among it, is ours")
    return 0


def _whole(word: str) -> int:
    if not word.isdecimal() or int(word) < 1:
        raise argparse.ArgumentTypeError(f"{word!r} is not allowed: a whole number of 1 or more")
    return int(word)


def _seed(word: str) -> int:
    try:
        return check_seed(int(word) if word.isdecimal() else -1)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{word!r} is not allowed: an integer from 0 to 8191") from error
