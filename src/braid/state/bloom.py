"""Bloom filters of key hashes, so that a run on disk is touched only where it has matches.

The leading bits of a hash choose a word, and its other bits four bits in that word. So sorted
probes pass through the filter from front to back, as they do through the run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from braid.state.compiled import compiled

if TYPE_CHECKING:
    from braid.state.groups import Hashes

Words = NDArray[np.uint64]

_KEYS_PER_WORD = 4  # 16 bits a key: of keys that are not there, one in fifty passes


@compiled(inline="always")
def _word_of(key: np.uint64, words: int) -> np.int64:
    return np.int64(((key >> np.uint64(32)) * np.uint64(words)) >> np.uint64(32))


@compiled(inline="always")
def _bits_of(key: np.uint64) -> np.uint64:
    # The low bits of an inverted or a multiplied key may be alike: mix them.
    mixed = (key ^ (key >> np.uint64(29))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = np.uint64(0)
    for _ in range(4):
        bits |= np.uint64(1) << (mixed >> np.uint64(58))
        mixed <<= np.uint64(6)
    return bits


@compiled()
def _fill(hashes: Hashes, words: Words) -> None:
    for key in hashes:
        words[_word_of(key, len(words))] |= _bits_of(key)


@compiled()
def may_have(words: Words, hashes: Hashes) -> NDArray[np.bool_]:
    """Which of some key hashes may be in a run; those that are in it are among them."""
    passed = np.empty(len(hashes), np.bool_)
    for place in range(len(hashes)):
        bits = _bits_of(hashes[place])
        passed[place] = words[_word_of(hashes[place], len(words))] & bits == bits
    return passed


def filter_of(hashes: Hashes) -> Words:
    """The filter of a run's key hashes."""
    words = np.zeros(len(hashes) // _KEYS_PER_WORD + 1, np.uint64)
    _fill(hashes, words)
    return words
