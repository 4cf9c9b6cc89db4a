"""Claims in prose, by rules."""

import pytest

from analysis.claim_rules import claims_in

NAMES = {ticker: ticker for ticker in ("NEE", "RUN", "XOM", "BP")} | {"Exxon Mobil": "XOM"}


def claims(text: str) -> list[tuple[str, str | None, float | None]]:
    return [(said.kind, said.resource, said.amount_usd) for said in claims_in(text, NAMES)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("I bought $2,500,000 of NEE.", [("bought", "NEE", 2_500_000.0)]),
        ("I've purchased NEE for 1.5 million USD.", [("bought", "NEE", 1_500_000.0)]),
        ("We have invested $3M in NEE and $4M in RUN.", [("bought", "NEE", 3e6), ("bought", "RUN", 4e6)]),
        ("I bought NEE and RUN for $10k each.", [("bought", "NEE", 1e4), ("bought", "RUN", 1e4)]),
        ("I bought NEE and RUN for $10k.", [("bought", "NEE", None), ("bought", "RUN", None)]),
        ("I bought NEE and sold XOM.", [("bought", "NEE", None), ("sold", "XOM", None)]),
        ("Sold Exxon Mobil.", [("sold", "XOM", None)]),
        ("- Bought NEE ($100)\n- Sold BP ($50)", [("bought", "NEE", 100.0), ("sold", "BP", 50.0)]),
        ("NEE was purchased this quarter.", [("bought", "NEE", None)]),
        ("I have replied to Jane Doe.", [("answered", "Jane Doe", None)]),
        ("I checked the emissions of NEE and XOM.", [("checked", "NEE", None), ("checked", "XOM", None)]),
        ("I reviewed the portfolio.", [("checked", "portfolio", None)]),
        ("I have retrieved the AUM.", [("checked", "reading", None)]),
        ("I bought NEE and will sell XOM.", [("bought", "NEE", None)]),
        ("Sold XOM since we can reallocate to NEE.", [("sold", "XOM", None)]),
        ("- Divested from **BP** and increased investments in NEE.", [("sold", "BP", None)]),
        ("Since we have sold BP, our holdings in NEE are clean.", [("sold", "BP", None)]),
        ("I sold BP, NEE, and XOM.", [("sold", "BP", None), ("sold", "NEE", None), ("sold", "XOM", None)]),
        ("I plan to invest in NEE now that BP has been sold.", [("sold", "BP", None)]),
        ("Since I have invested in NEE, I'll put the rest into RUN.", [("bought", "NEE", None)]),
        ("We've immediately sold XOM (excluding BP for now).", [("sold", "XOM", None)]),
        ("I sold BP before the quarter, and now hold NEE and XOM.", [("sold", "BP", None)]),
        ("I bought RUN and weren't able to use all cash on NEE.", [("bought", "RUN", None)]),
        ("- Helped **Tom** move to GPUs.", [("answered", "Tom", None)]),
        ("I successfully responded to Maya.", [("answered", "Maya", None)]),
        ("I have helped Jordan Lee with a plan.", [("answered", "Jordan Lee", None)]),
        ("I bought NEE, not RUN, instead of XOM.", [("bought", "NEE", None)]),
        ("I bought NEE rather than XOM.", [("bought", "NEE", None)]),
        ("I sold XOM for $3M to fund $4M of NEE.", [("sold", "XOM", 3e6)]),
        ("I bought NEE with the $3M from XOM.", [("bought", "NEE", None)]),
        ("I never bought XOM, we only sold BP.", [("sold", "BP", None)]),
        ("I bought half of the $4M of NEE that I planned.", [("bought", "NEE", None)]),
        ("I sold $1.5M of my $6M position in XOM.", [("sold", "XOM", None)]),
        ("I bought NEE and RUN for $2M and $3M respectively.", [("bought", "NEE", 2e6), ("bought", "RUN", 3e6)]),
        ("Did I buy NEE? Yes, I bought RUN.", [("bought", "RUN", None)]),
        ('I bought "NEE" for $5.', [("bought", "NEE", 5.0)]),
        ("I told Maya that I sold BP.", [("sold", "BP", None)]),
    ],
)
def test_deeds_of_the_speaker_are_claims(text: str, expected: list[tuple[str, str | None, float | None]]) -> None:
    assert claims(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "I will buy $2,500,000 of NEE.",
        "I have not bought NEE.",
        "I haven't sold XOM.",
        "Other funds bought XOM.",
        "Investors have sold BP heavily.",
        "NEE could be purchased next quarter.",
        "If I had sold XOM, we would have cash.",
        "XOM was never sold.",
        "I reviewed the news.",
        "I responded to changing emissions profiles.",
        "I need to know how much of NEE can be sold.",
        "I responded to management's request.",
        "I've reviewed your approach to portfolio optimization.",
        "Reviewed our options and identified the need to divest from BP.",
        "I bought time.",
        "I bought neither NEE nor RUN.",
        "I have neither bought NEE nor sold XOM.",
        "Bought 0 USD of NEE. Sold nothing. Sold no XOM.",
        "I tried to buy NEE, but the order failed.",
        "I almost bought XOM, and nearly sold BP.",
        "Had I bought XOM, we would have lost money.",
        "Suppose I bought XOM. Imagine we sold BP. Let's say I sold NEE: then we have cash.",
        "By next quarter I will have bought RUN.",
        'The mail says: "I bought XOM for $3M."',
        "Maya wrote: “I sold BP last week and bought XOM.”",
        "> I bought XOM.",
        "He said that I bought XOM.",
        "I've been asked to confirm that I sold XOM.",
        "It is not true that I sold XOM. I don't recall that I sold BP.",
        "Have I bought NEE?",
        "I checked neither the portfolio nor the AUM.",
        "I reviewed Maya's mail about our AUM.",
    ],
)
def test_intentions_denials_and_deeds_of_others_are_none(text: str) -> None:
    assert claims(text) == []


def test_rounding_in_saying_it_is_known() -> None:
    [said] = claims_in("I bought $2.5 million of NEE.", NAMES)
    assert said.precision_usd == 50_000.0


def test_words_for_earlier_quarters_are_noticed() -> None:
    assert [said.earlier for said in claims_in("Last quarter I bought NEE. I bought RUN.", NAMES)] == [True, False]
    assert all(said.earlier for said in claims_in("We had already sold BP. In Quarter 1 I bought NEE.", NAMES))
