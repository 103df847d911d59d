"""Random numbers by name: what a seed, a purpose and an event's number give is always the same.

The numbers are SplitMix64's, which gets from a counter to its output directly: the numbers of
any events can be had without those before them, on any machine and with any NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from braid.workload.arrivals import Floats, Ints

_STEP = np.uint64(0x9E3779B97F4A7C15)
_MIX = ((30, np.uint64(0xBF58476D1CE4E5B9)), (27, np.uint64(0x94D049BB133111EB)))


@dataclass(frozen=True, slots=True, eq=False)
class Chance:
    """What chance has for some events: for every purpose a number each.

    Purposes are independent of each other, and so are seeds.
    """

    seed: str
    events: Ints

    def below(self, limits: Ints | int, purpose: str) -> Ints:
        """Whole numbers from 0 to one less than the limits, which are at most 2^31."""
        high = (self._bits(purpose) >> np.uint64(33)).view(np.int64)
        numbers: Ints = high * limits >> 31
        return numbers

    def fraction(self, purpose: str) -> Floats:
        """Numbers from 0 to less than 1."""
        return (self._bits(purpose) >> np.uint64(11)) * np.float64(2.0**-53)

    def one_in(self, many: int, purpose: str) -> npt.NDArray[np.bool_]:
        """True once in so many times."""
        came: npt.NDArray[np.bool_] = self.below(many, purpose) == 0
        return came

    def _bits(self, purpose: str) -> npt.NDArray[np.uint64]:
        bits: npt.NDArray[np.uint64] = self.events.view(np.uint64) * _STEP
        bits += self._start(purpose)
        for shift, factor in _MIX:
            bits ^= bits >> np.uint64(shift)
            bits *= factor
        bits ^= bits >> np.uint64(31)
        return bits

    def _start(self, purpose: str) -> np.uint64:
        digest = blake2b(f"{self.seed}/{purpose}".encode(), digest_size=8).digest()
        return np.uint64(int.from_bytes(digest, "big"))
