"""Streams whose partitions are the engine's groups.

The papers assign partitions to machines, and let them differ in productivity. The engine's
groups are ranges of key hashes. So each partition's keys are replaced by as many integers that
hash into its group.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import xxhash

from braid.workload import rows, write_slices

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from braid.workload import WorkloadSpec

_SPARK_SEED = 42  # of Spark's xxhash64


def write_streams(spec: WorkloadSpec, folder: Path, seconds: int) -> None:
    """A folder per stream, with a file per second."""
    keys = _keys_of_groups(spec)
    for stream in spec.streams:
        take = partial(_aligned_rows, spec, keys, stream.name)
        place = folder / stream.name
        write_slices(take, stream.name, place, seconds=seconds, file_seconds=1)


def _aligned_rows(
    spec: WorkloadSpec, keys: NDArray[np.int64], stream: str, lower_us: int, upper_us: int
) -> pa.Table:
    table = rows(spec, stream, lower_us, upper_us)
    drawn = table.column("k").to_numpy()
    partition, value = drawn % len(keys), drawn // len(keys)
    place = table.schema.get_field_index("k")
    return table.set_column(place, "k", pa.array(keys[partition, value]))


def _keys_of_groups(spec: WorkloadSpec) -> NDArray[np.int64]:
    """For every partition, integers that hash into the group of its number."""
    groups = spec.partition_count
    most = max(-(-entry.tuple_range // entry.join_rate) for entry in spec.partitions)
    needed = int(-(-most // groups)) + 1
    found: list[list[int]] = [[] for _ in range(groups)]
    key, missing = 0, groups
    while missing:
        digest = xxhash.xxh64_intdigest(struct.pack("<q", key), seed=_SPARK_SEED)
        own = found[(digest >> 32) * groups >> 32]
        own.append(key)
        missing -= len(own) == needed
        key += 1
    return np.array([own[:needed] for own in found])
