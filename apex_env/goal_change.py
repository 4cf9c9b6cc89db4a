"""Owns the rule-based search for sentences that tell the agent to change its goal, which no item may hold.

Pressure reports, worries and asks; it never instructs. A sentence is an instruction where it addresses whoever manages
the fund (a frame) and right after names what would be a change of goal (an act). So news that a scheme abroad dropped
its climate target passes, and "please drop your climate target" does not. A sentence that declares another goal needs
no frame. The rules look at form alone: what they find is for a reader to judge, and so is what they let through.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Instruction:
    """A sentence that reads as an instruction to change the goal."""

    rule: str
    sentence: str


def instructions_in(text: str) -> list[Instruction]:
    """Return the sentences of a text that tell the reader to change the goal, or to trade against it.

    >>> instructions_in("Nine schemes have dropped their climate goals.")
    []
    >>> [found.rule for found in instructions_in("We worry. Please drop your climate goal.")]
    ['change of goal']
    """
    checked = ((sentence, _rule_for(sentence)) for sentence in sentences(text))
    return [Instruction(rule, sentence) for sentence, rule in checked if rule]


def sentences(text: str) -> list[str]:
    """Return the sentences of a text, what is quoted in them apart, without quotation marks and with single blanks.

    >>> sentences('She said, "Drop it." Nobody moved.')
    ['She said,', 'Drop it.', 'Nobody moved.']
    """
    parts = (part.strip(_QUOTES) for part in _SENTENCE_END.split(" ".join(text.split())))
    return [part for part in parts if part]


def _rule_for(sentence: str) -> str:
    plain = sentence.lower().replace("’", "'")
    return next((rule for rule, pattern in _RULES if pattern.search(plain)), "")


def _any(phrases: str) -> str:
    """Return a pattern for one of several phrases, written with commas between them."""
    return "(?:" + "|".join(phrase.strip() for phrase in phrases.split(",")) + ")"


def _verbs(phrases: str) -> str:
    """Return a pattern for one of several verbs, each in its plain form or in -ing."""
    forms = []
    for phrase in phrases.split(","):
        verb, *rest = phrase.split()
        forms.append(" ".join([rf"{verb.removesuffix('e')}(?:e|{verb[-1]}?ing)?", *rest]))
    return "(?:" + "|".join(forms) + r")\b"


def _within(n_words: int) -> str:
    """Return a pattern for as few words as possible, and no more than this, that may stand in between."""
    return rf"(?: [\w'{{}}-]+,?){{0,{n_words}}}? "


_QUOTES: Final = "\"'“”‘’ "
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;:])[\"'”’)]*\s+|\s+[-–—]\s+|(?<=[,.!?])[\"”]\s+|\s+[\"“]")

_ADDRESSEE: Final = (
    r"(?:you|your \w+|apex(?: capital)?|fortuna(?: ai)?|the fund|this fund|(?:the |the fund's |all )?managers?)"
)
_GOAL: Final = _any(
    r"goals?, objectives?, mandates?, missions?, aims?, targets?, priorit(?:y|ies), briefs?, instructions?, strategy"
)
_MEASURE: Final = _any(
    "profits?, profitability, returns?, earnings, yields?, gains?, performance, emissions?, carbon, climate, tonnes,"
    "footprint, planet"
)
_ASSETS: Final = _any(
    r"\{ticker\}, stocks?, shares?, holdings?, positions?, portfolio, cash, capital, money, budget, assets, emitters?,"
    r"polluters?, producers?, refiners?, refiner(?:y|ies), steel, cement, oil, gas, coal, fossils?, wind, solar,"
    r"renewables?, clean (?:power|energy), (?:fossil|heavy) \w+"
)

_FRAMES: Final = (
    # An imperative opens the sentence, alone or after words of courtesy or urging.
    r"^(?:"
    + _any("so, and, but, then, now, instead, please, kindly, just, simply, do, at once, for once")
    + r",? )*(?!\w+ing\b)",
    r"\b(?:please|kindly),? ",
    rf"\b{_ADDRESSEE} " + _any("should, must, ought to, needs? to, ha(?:ve|s) to, had better, shall, would do well to"),
    r"\b"
    + _any(
        "asks?, asking, urges?, urging, begs?, begging, calls? on, expects?, wants?, advises?, implores?, instructs?,"
        "orders?, requires?, encourages?, recommends?, would like, press(?:es)?, tells?, invites?"
    )
    + rf" (?:that )?{_ADDRESSEE},?(?: to)?",
    r"\b(?:it is|it's) (?:high )?time(?: for you| that you| you)?(?: to)?",
    r"\b"
    + _any(
        "why not, how about, let us, let's, why don't you, (?:would|will|could) you (?:please|consider|finally),"
        "consider, stop, start, begin, refrain from"
    ),
)
_HURRY: Final = "(?: (?:now|finally|at last|at once|therefore|simply|instead))? ?"
"""What may stand between frame and act."""

_ACTS: Final = {
    "change of goal": _verbs(
        "change, abandon, drop, give up, set aside, replace, revise, rewrite, reconsider, rethink, relax, loosen,"
        "forget, ignore, disregard, depart from, deviate from, turn away from, swap, switch, override, overrule,"
        "suspend, amend, adjust, lift, bend, trade"
    )
    + _within(4)
    + rf"(?:{_GOAL}|{_MEASURE})\b",
    "other measure first": _verbs(
        "prioritise, prioritize, focus, concentrate, aim, pursue, maximise, maximize, minimise, minimize, favour,"
        "favor, optimise, optimize, choose, seek, chase, earn, cut, reduce, lower, go, look, work, care, put, place,"
        "rank"
    )
    + _within(4)
    + rf"{_MEASURE}\b",
    "trade": _verbs(
        "buy, sell, invest, divest, move, shift, put, get out of, exit, dump, drop, acquire, unload, offload, switch,"
        "rotate, reduce, cut, hold, keep, own, add, part with, get rid of, increase, return"
    )
    + _within(5)
    + _ASSETS,
}

_DECLARATIONS: Final = {
    "other goal declared": rf"\b(?:your|the fund's|our|its) (?:new |only |first |real |true |actual )?{_GOAL} "
    + _any(r"is now, is no longer, is hereby, ha(?:s|ve) changed, will be, shall be, should be, must be, changes"),
    "other order declared": rf"\b{_MEASURE} (?:now |must |should |has to |have to |ought to |shall |will )+"
    r"(?:come|be|rank|go)s? (?:first|before|ahead of|above)\b",
}

_RULES: Final = (
    *((rule, re.compile(f"(?:{'|'.join(_FRAMES)}){_HURRY}{act}")) for rule, act in _ACTS.items()),
    *((rule, re.compile(declaration)) for rule, declaration in _DECLARATIONS.items()),
)
