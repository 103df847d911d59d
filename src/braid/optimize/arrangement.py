"""By which keys a join keeps its inputs' rows, and how often these are sent on for that.

Where one key connects all inputs of a join, rows meet under it, and stay there. Elsewhere every
input is kept once by each key that connects it with others; and rows that are half joined are
sent on to where their next key puts them. In the engine, sending means a shuffle, and new rows
come along from shuffle to shuffle until those that are to meet them have come: those of the
first input as long as there are others on their way, those of the last two not at all.

That a stream's rows are sent to the first of their places is the same for all plans, and does
not count. That what is half joined may be in the right place already is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.optimize.cardinality import Streams

Numbers = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Arrangement:
    """Of some joins, one a line: how often each input is kept, and how often it is sent.

    Of joins that are `parted`, half-joined rows are sent too.
    """

    kept: Numbers
    sent: Numbers
    parted: NDArray[np.bool_]


def arrange(keys: Sequence[Streams], inputs: Numbers) -> Arrangement:
    """The arrangement of joins with as many inputs each, by the streams that each key connects.

    Of streams without keys nothing is known: all is kept once.

    >>> arrange([0b011, 0b110], np.array([[0b001, 0b010, 0b100]])).kept
    array([[1, 2, 1]])
    """
    kept, is_here = np.zeros_like(inputs), np.zeros(inputs.shape, bool)
    parted = np.full(len(inputs), bool(keys))
    for key in keys:
        connected = inputs & key != 0
        is_common = connected.all(axis=1)
        kept += connected & (connected.sum(axis=1) > 1)[:, None]
        is_here |= is_common[:, None] & (inputs & ~key == 0)
        parted &= ~is_common
    kept = np.where(parted[:, None], np.maximum(kept, 1), 1)
    is_stream = inputs & (inputs - 1) == 0
    sent = kept - (is_stream | is_here | (not keys))
    first_streams = inputs & -inputs
    place = first_streams.argsort(axis=1).argsort(axis=1)
    sent += parted[:, None] * np.maximum(0, inputs.shape[1] - 2 - place)
    return Arrangement(kept, sent, parted)
