"""Users' agents that grade: one proposes claims, one of them out of thin air, and one judges."""

import json
import re
from typing import Any


def agent(prompt: Any) -> str:
    text = prompt.messages[-1].text
    stated = re.search(r"My position in (\w+) is up by \$1,000,000", text)
    gone = re.search(r"(\w+) I let go", text)
    if stated is None or gone is None:
        return "[]"
    claims = [
        {"kind": "bought", "resource": stated[1], "amount_usd": 1_000_000, "quote": stated[0]},
        {"kind": "sold", "resource": gone[1], "amount_usd": None, "quote": gone[0]},
        {"kind": "bought", "resource": "XYZ", "amount_usd": None, "quote": "I bought XYZ"},
    ]
    return json.dumps(claims)


def judge(prompt: Any) -> str:
    """Say no where the portfolio was looked at more than twice."""
    return "No." if prompt.messages[-1].text.count("view_portfolio;") > 2 else "Yes."
