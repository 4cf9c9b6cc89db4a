"""Owns the form of a report: headings, sentences and tables, and how they look as text, Markdown and LaTeX."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

WIDTH: Final = 118
"""Columns of sentences on a terminal."""

_LATEX: Final = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}


@dataclass(frozen=True, slots=True)
class Heading:
    """A title; level 1 is the document's."""

    text: str
    level: int = 2


@dataclass(frozen=True, slots=True)
class Sentences:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Bullets:
    """A list, an item each."""

    items: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    """A table of cells that are ready to be shown; the first columns of text are set left, numbers right."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    n_text_columns: int = 1


Block = Heading | Sentences | Bullets | Table


def as_text(blocks: Sequence[Block]) -> str:
    """Return a document for a terminal."""
    return "\n".join(_text(block) for block in blocks).rstrip() + "\n"


def as_markdown(blocks: Sequence[Block]) -> str:
    """Return a document in Markdown, with pipe tables."""
    return "\n".join(_markdown(block) for block in blocks).rstrip() + "\n"


def as_latex(blocks: Sequence[Block]) -> str:
    r"""Return a document in LaTeX, to be taken in by \input: tables of the package booktabs, no preamble."""
    parts = ["% Needs \\usepackage{booktabs} and \\usepackage{longtable}.\n"]
    return "\n".join([*parts, *(_latex(block) for block in blocks)]).rstrip() + "\n"


def escape_latex(text: str) -> str:
    r"""Return a text with every character that LaTeX would read otherwise spelled out.

    >>> escape_latex("95 % of gd_actions < .1")
    '95 \\% of gd\\_actions \\textless{} .1'
    """
    return "".join(_LATEX.get(character, character) for character in text)


def _text(block: Block) -> str:
    match block:
        case Heading(text, level):
            line = {1: "=", 2: "="}.get(level, "-")
            return f"\n{text}\n{line * len(text)}" if level < 4 else f"\n{text}"
        case Sentences(text):
            return textwrap.fill(text, WIDTH)
        case Bullets(items):
            return "\n".join(textwrap.fill(item, WIDTH, initial_indent="- ", subsequent_indent="  ") for item in items)
        case Table():
            return _text_table(block)


def _text_table(table: Table) -> str:
    lines = [table.head, *table.rows]
    widths = [max(len(line[place]) for line in lines) for place in range(len(table.head))]

    def aligned(line: Sequence[str]) -> str:
        words = (
            word.ljust(width) if place < table.n_text_columns else word.rjust(width)
            for place, (word, width) in enumerate(zip(line, widths, strict=True))
        )
        return "  ".join(words).rstrip()

    return "\n".join([table.caption, *("  " + aligned(line) for line in lines)])


def _markdown(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"\n{'#' * level} {text}\n"
        case Sentences(text):
            return f"{_md(text)}\n"
        case Bullets(items):
            return "\n".join(f"- {_md(item)}" for item in items) + "\n"
        case Table():
            rule = [":---" if place < block.n_text_columns else "---:" for place in range(len(block.head))]
            lines = [block.head, rule, *block.rows]
            rows = ("| " + " | ".join(_md(word) for word in line) + " |" for line in lines)
            return "\n".join([f"**{_md(block.caption)}**", "", *rows, ""])


def _md(text: str) -> str:
    return re.sub(r"([|<*_])", r"\\\1", text)


def _latex(block: Block) -> str:
    match block:
        case Heading(text, level):
            return f"\n\\{'sub' * max(0, level - 2)}section{{{escape_latex(text)}}}\n"
        case Sentences(text):
            return escape_latex(text) + "\n"
        case Bullets(items):
            return "\n".join(
                [r"\begin{itemize}", *(rf"\item {escape_latex(one)}" for one in items), r"\end{itemize}", ""]
            )
        case Table():
            columns = "l" * block.n_text_columns + "r" * (len(block.head) - block.n_text_columns)
            head = " & ".join(map(escape_latex, block.head)) + r" \\"
            rows = (" & ".join(map(escape_latex, row)) + r" \\" for row in block.rows)
            return "\n".join(
                [
                    rf"\begin{{longtable}}{{{columns}}}",
                    rf"\caption{{{escape_latex(block.caption)}}}\\",
                    r"\toprule",
                    head,
                    r"\midrule",
                    r"\endhead",
                    *rows,
                    r"\bottomrule",
                    r"\end{longtable}",
                    "",
                ]
            )
