"""The words in NEXMark's rows: short lists, and stretches of one text that says nothing.

Everything here is made once and then picked from, so no text is made row by row.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.workload.nexmark.chance import Chance

FIRST_NAMES = pa.array(
    [
        "Peter",
        "Paul",
        "Luke",
        "John",
        "Saul",
        "Vicky",
        "Kate",
        "Julie",
        "Sarah",
        "Deiter",
        "Walter",
    ]
)
LAST_NAMES = pa.array(
    ["Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris"]
)
STATES = pa.array(["AZ", "CA", "ID", "OR", "WA", "WY"])
CITIES = pa.array(
    [
        "Phoenix",
        "Los Angeles",
        "San Francisco",
        "Boise",
        "Portland",
        "Bend",
        "Redmond",
        "Seattle",
        "Kent",
        "Cheyenne",
    ]
)
CARD_GROUPS = pa.array([f"{number:04d}" for number in range(10_000)])

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = pa.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(10_000))])
"""Channels that bids come through; the hot ones first."""

_POOL = 1024
"""Different stretches of each range of lengths."""


@cache
def stretches(shortest: int, longest: int) -> pa.Array:
    """A pool of letters; lengths from `shortest` to `longest` are equally likely."""
    lengths = shortest + _chance(_POOL).below(longest - shortest + 1, "lengths")
    letters = ord("a") + _chance(_POOL + longest).below(26, "letters")
    text = letters.astype(np.uint8).tobytes().decode()
    return pa.array([text[n : n + length] for n, length in enumerate(lengths.tolist())])


@cache
def fillings(average_bytes: int) -> pa.Array:
    """A pool to fill rows with: about so many letters, give or take a fifth."""
    spread = average_bytes // 5
    return stretches(average_bytes - spread, average_bytes + spread)


@cache
def urls() -> pa.Array:
    """Where each channel's bids come from; nine in ten cold channels are named in it."""
    chance = _chance(len(CHANNELS))
    folders = [stretches(5, 5).take(chance.below(_POOL, f"folder {n}")) for n in range(3)]
    named = ~chance.one_in(10, "unnamed")
    named[: len(HOT_CHANNELS)] = False
    return pa.array(
        f"https://www.nexmark.com/{path}/item.htm?query=1"
        + f"&channel_id={n - len(HOT_CHANNELS)}" * bool(named[n])
        for n, path in enumerate(pc.binary_join_element_wise(*folders, "/").to_pylist())
    )


def _chance(count: int) -> Chance:
    """The words are the same for all seeds."""
    return Chance("words", np.arange(count))
