"""Mutations of valid queries: each binds, or is an error that points into the text.

`BRAID_FUZZ` says how many (`make fuzz` makes 100,000), `BRAID_FUZZ_SEED` where to start. A
failure names its seed: `BRAID_FUZZ=1 BRAID_FUZZ_SEED=…` makes that one again.
"""

from __future__ import annotations

import os
import random
import re
from typing import TYPE_CHECKING

import pytest

from braid.cql import bind, sources
from braid.model.errors import QueryError
from tests.laws.cql_corpus import SCHEMAS, VALID, WORDS

if TYPE_CHECKING:
    from braid.model.query import Query

MUTATIONS = int(os.environ.get("BRAID_FUZZ", "3000"))
FIRST_SEED = int(os.environ.get("BRAID_FUZZ_SEED", "0"))

TOKEN = re.compile(r"\s+|\w+|'[^']*'|.", re.DOTALL)
SUBTREE = re.compile(r"\w+\([^()]*\)|\([^()]*\)|\[[^\[\]]*\]|\w+\.\w+|\w+ [-+*/=<>|]+ \w+")
STRANGE = [
    *("é", "ß", "İ", "\u017f", "😀", "\u0301", "\uff11", "²", "\u2018", "«"),
    *("\u200b", "\u2028", "\x00", "\x1a", "\ufeff", "\ud800", "\xa0"),
    *("\\", "\\'", "\\u0041", "`", '"', "''"),
]
AROUND = [
    ("(", ")"),
    ("[", "]"),
    ("abs(", ")"),
    ("coalesce(b.v, ", ")"),
    ("if(TRUE, ", ", b.v)"),
    ("NOT ", ""),
    ("- ", ""),
    ("x -> ", ""),
    ("INTERVAL ", ""),
    ("CASE WHEN ", " THEN 1 END"),
    ("", " + 1"),
    ("", "[0]"),
    ("", " AND a.v > b.v"),
    ("", " OR a.k = b.j"),
    ("", " BETWEEN 1 AND b.v"),
    ("(", " BETWEEN a.v AND b.v)"),
    ("(", " <=> b.k)"),
]


def characters(draw: random.Random, text: str) -> str:
    at = draw.randrange(len(text) + 1)
    new = draw.choice([draw.choice(STRANGE), chr(draw.randrange(32, 127)), ""])
    return text[:at] + new + text[at + draw.randrange(3) :]


def tokens(draw: random.Random, text: str) -> str:
    found = TOKEN.findall(text)
    here, there = draw.randrange(len(found) + 1), draw.randrange(len(found) + 1)
    match draw.randrange(5):
        case 0:
            del found[here : here + draw.randrange(1, 5)]
        case 1:
            found[there:there] = found[here : here + draw.randrange(1, 12)]
        case 2:
            found[here:here] = [" ", draw.choice(WORDS), " "]
        case 3:
            found[here : here + 1] = [" ", draw.choice(WORDS), " "]
        case 4 if here < len(found) and there < len(found):
            found[here], found[there] = found[there], found[here]
    return "".join(found)


def subtrees(draw: random.Random, text: str) -> str:
    """Put a part of this or of another query in place of a part."""
    other = text if draw.random() < 0.5 else draw.choice(VALID)
    places, parts = list(SUBTREE.finditer(text)), SUBTREE.findall(other)
    if not places or not parts:
        return text
    place = draw.choice(places)
    part: str = draw.choice(parts)
    return text[: place.start()] + part + text[place.end() :]


def numbers(draw: random.Random, text: str) -> str:
    huge = draw.choice(["9" * draw.randrange(1, 6000), f"1e{draw.randrange(10**6)}", "1" * 40])
    huge = draw.choice(
        [huge, f"0.{huge}", f"-{huge}", f"{huge}L", f"{huge}BD", "00", "1.", ".1"]
    )
    found = list(re.finditer(r"\b\d+(\.\d+)?\b|\b[abo]\.[kv]\b", text))
    if not found:
        return text
    place = draw.choice(found)
    return text[: place.start()] + huge + text[place.end() :]


def depth(draw: random.Random, text: str) -> str:
    found = list(SUBTREE.finditer(text))
    if not found:
        return text
    place, times = draw.choice(found), draw.choice([2, 20, 60, 150, 400, 3000])
    before, after = draw.choice(AROUND)
    whole = before * times + place[0] + after * times
    return text[: place.start()] + whole + text[place.end() :]


def mutated(seed: int) -> str:
    draw = random.Random(seed)
    text = draw.choice(VALID)
    kinds = [characters, tokens, tokens, subtrees, subtrees, numbers, depth]
    weights = [4, 6, 6, 6, 6, 2, 1]
    for kind in draw.choices(kinds, weights, k=draw.choice([1, 1, 1, 2, 2, 3, 5])):
        text = kind(draw, text)
    return text


def outcome(text: str) -> Query | QueryError:
    try:
        return bind(text, SCHEMAS, event_time="ts")
    except QueryError as error:
        return error


def check(text: str) -> bool:
    """Whether a text is a query; anything but a query or a proper error fails."""
    found = outcome(text)
    if isinstance(found, QueryError):
        assert 0 <= found.lower <= found.upper <= len(text)
        assert found.text == text
        assert str(found).startswith(found.message)
        assert found.hint
        return False
    assert bind(found.text, SCHEMAS, event_time="ts") == found
    assert found.sources() == tuple(dict.fromkeys(_spelled(name) for name in sources(text)))
    return True


def _spelled(name: str) -> str:
    return next(known for known in SCHEMAS if known.lower() == name.lower())


def test_mutated_queries_bind_or_are_errors_that_point_into_the_text() -> None:
    bound = 0
    for seed in range(FIRST_SEED, FIRST_SEED + MUTATIONS):
        text = mutated(seed)
        try:
            bound += check(text)
        except Exception as error:
            shown = text if len(text) < 2000 else f"{text[:2000]}…"
            pytest.fail(f"seed {seed}: {type(error).__name__}: {error}\n{shown}")
    assert MUTATIONS < 100 or bound > MUTATIONS // 20  # some mutations keep a query a query


def test_the_corpus_binds() -> None:
    assert all(check(text) for text in VALID)
