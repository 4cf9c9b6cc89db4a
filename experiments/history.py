"""Owns what a run sees of the phase before: pure functions from a conversation to the one that is shown.

A recipe is made once, when a run branches off, and stored: with all counts and texts resolved, so that the same recipe
on the same conversation gives the same bytes later, without a tokenizer or a model. Every shown history is a valid
conversation for every provider: it begins with a user message and every call in it has its result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import groupby
from string import ascii_lowercase
from typing import Any, Final

from apex_env.streams import stream
from apex_env.texts import Corpus
from experiments.chat import Message, Usage, user
from experiments.rebuild import Cut
from experiments.tokens import COUNTER, count_messages, count_text
from experiments.treatment import History

Recipe = Mapping[str, Any]
"""How a shown history is made from the parent's conversation, as plain JSON."""

Ask = Callable[[Sequence[Message]], Awaitable[tuple[str, Usage | None]]]
"""Asks the run's own model, with tools off, and returns its answer and what that cost."""

STRING_LENGTHS: Final = (3, 12)
"""Shortest and longest random string, in letters."""


async def make_recipe(kind: History, cut: Cut, *, seed: int, corpus: Corpus, ask: Ask) -> Recipe:
    """Return the recipe of a shown history, matched in tokens to what it replaces.

    The target is what the provider reported for the parent's conversation; where none did, the count of the named
    counter.

    Args:
        kind: which history.
        cut: the parent at the quarter that the run branches from.
        seed: seed of the run; sentences and strings are drawn by it.
        corpus: texts that stand in place of a history.
        ask: asks the run's own model; used by ``summarised`` alone.
    """
    if kind == "summarised":
        summary, usage = await ask([*cut.messages, user(corpus.history["summary_request"])])
        text = corpus.history["summary_shown"].format(summary=summary)
        cost = None if usage is None else {"context_tokens": usage.context_tokens, "output_tokens": usage.output_tokens}
        return {"kind": kind, "text": text, "usage": cost} | _achieved(cut, [user(text)])
    if kind == "repeated_token":
        return _repeated_token(cut, corpus.history["token"])
    if kind == "random_strings":
        return _random_strings(cut, seed)
    if kind == "random_sentences":
        return _repeated_sentence(cut, stream(seed, f"history:{kind}").choice(_sentences(corpus)))
    return {"kind": kind}


def shown(recipe: Recipe, messages: Sequence[Message]) -> tuple[Message, ...]:
    """Return the conversation that a run is shown in place of its parent's."""
    kind = recipe["kind"]
    if kind == "none":
        return ()
    if kind == "repeated_token":
        return (user(recipe["token"] * recipe["n"]),)
    if kind in ("summarised", "random_strings"):
        return (user(recipe["text"]),)
    if kind == "random_sentences":
        return _with_replaced_turns(messages, [_repeat(recipe["sentence"], n) for n in recipe["counts"]])
    return tuple(messages)


def target_tokens(cut: Cut) -> tuple[int, str]:
    """Return the size of a parent's conversation in tokens, and where the number is from."""
    if cut.reported is None:
        return count_messages(cut.messages), f"counter {COUNTER}"
    first, last = cut.reported
    # What was reported before the first answer holds system prompt, tools and the first briefing.
    overhead = first - count_text(cut.messages[0].text)
    return max(1, last - overhead), "usage reported by the provider"


def _achieved(cut: Cut, result: Sequence[Message]) -> dict[str, Any]:
    target, basis = target_tokens(cut)
    n = count_messages(result)
    return {
        "target_tokens": target,
        "target_basis": basis,
        "counter": COUNTER,
        "shown_tokens": n,
        "difference_frac": round((n - target) / target, 6),
    }


def _repeated_token(cut: Cut, token: str) -> Recipe:
    target, _ = target_tokens(cut)
    n = target
    for _ in range(3):
        n = max(1, n + target - count_text(token * n))
    recipe = {"kind": "repeated_token", "token": token, "n": n}
    return recipe | _achieved(cut, shown(recipe, cut.messages))


def _random_strings(cut: Cut, seed: int) -> Recipe:
    """Return strings of random letters, as many as come nearest to the target."""
    target, _ = target_tokens(cut)
    rng = stream(seed, "history:random_strings")
    strings: list[str] = []
    n, tokens = max(1, target // 4), 0
    for _ in range(12):
        while len(strings) < n:
            strings.append("".join(rng.choices(ascii_lowercase, k=rng.randint(*STRING_LENGTHS))))
        tokens = count_text(" ".join(strings[:n]))
        step = round((target - tokens) * n / tokens)
        if step == 0:
            break
        n = max(1, n + step)
    recipe = {"kind": "random_strings", "text": " ".join(strings[:n]), "n": n}
    return recipe | _achieved(cut, shown(recipe, cut.messages))


def _repeated_sentence(cut: Cut, sentence: str) -> Recipe:
    """Return how often a sentence stands in place of each of the agent's turns.

    The whole is off by one sentence at most, save where each turn needs one and they are too long already.
    """
    target, _ = target_tokens(cut)
    blocks = [list(block) for is_user, block in _blocks(cut.messages) if not is_user]
    said = [count_messages(block) for block in blocks]
    kept = count_messages([message for message in cut.messages if message.role == "user"])
    scale = max(0.0, target - kept) / max(1, sum(said))
    tokens_a_sentence = count_text(_repeat(sentence, 20)) / 20
    counts: list[int] = []
    wanted = 0.0
    for tokens in said:
        wanted += tokens * scale
        counts.append(max(1, round(wanted / tokens_a_sentence) - sum(counts)))
    recipe: dict[str, Any] = {"kind": "random_sentences", "sentence": sentence, "counts": counts}
    # Tokens merge where sentences meet, and some turns were shorter than one; the longest take up the difference.
    for _ in range(3):
        n_missing = round((target - count_messages(shown(recipe, cut.messages))) / tokens_a_sentence)
        while counts and n_missing and (n_missing > 0 or max(counts) > 1):
            step = 1 if n_missing > 0 else -1
            counts[counts.index(max(counts))] += step
            n_missing -= step
    return recipe | _achieved(cut, shown(recipe, cut.messages))


def _sentences(corpus: Corpus) -> list[str]:
    return str(corpus.history["sentences"]).splitlines()


def _repeat(sentence: str, n: int) -> str:
    return " ".join([sentence] * n)


def _blocks(messages: Sequence[Message]) -> list[tuple[bool, list[Message]]]:
    """Return runs of user messages, and runs of the agent's turns with their results, in order."""
    return [(is_user, list(block)) for is_user, block in groupby(messages, key=lambda message: message.role == "user")]


def _with_replaced_turns(messages: Sequence[Message], texts: Sequence[str]) -> tuple[Message, ...]:
    replaced = iter(texts)
    result: list[Message] = []
    for is_user, block in _blocks(messages):
        result += block if is_user else [Message("assistant", next(replaced))]
    return tuple(result)
