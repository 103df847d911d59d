"""How a Python worker deals with memory: it keeps what it will need again in the next batch.

Batches are alike, so what one gives back, the next asks for. A page that the kernel takes back
in between must be cleared and mapped anew, which took 7 % of all processor time when
we measured it (three streams, 1.5 M rows a batch), and more in a batch that moves groups.
"""

from __future__ import annotations

import ctypes
import gc
from functools import cache

import pyarrow as pa

_KEPT_BYTES = 512 << 20
_LARGEST_KEPT_BYTES = 32 << 20  # the most that the C library allows
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # of mallopt(3)


@cache
def settle_in() -> None:
    """Prepare a process for many batches; once is enough."""
    gc.freeze()  # PySpark collects garbage after every task: spare it the modules
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:  # only some C libraries can be told
        pa.set_memory_pool(pa.system_memory_pool())
        mallopt(_M_TRIM_THRESHOLD, _KEPT_BYTES)
        mallopt(_M_MMAP_THRESHOLD, _LARGEST_KEPT_BYTES)
