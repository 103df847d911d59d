"""Streams whose partitions are the engine's groups.

The papers assign partitions to machines, and let them differ in productivity. The engine's
groups are ranges of key hashes. So each partition's keys are replaced by as many integers that
hash into its group.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.plan.keys import hash_of_key
from braid.state.groups import group_of
from braid.workload import PartitionSpec, Phase, StreamSpec, WorkloadSpec, rows, write_slices

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PartitionedStreams:
    """Three streams for a three-way join without windows, whose state only grows.

    Rates are in tuples per second of each stream; a batch is a second.
    """

    partitions: tuple[PartitionSpec, ...]
    rate: float = 3000.0
    seconds: int = 30
    phases: tuple[Phase, ...] = ()

    @property
    def streams(self) -> tuple[str, ...]:
        """Their names."""
        return "a", "b", "c"

    @property
    def query(self) -> str:
        """The query's text."""
        return (
            "SELECT a.k, a.v AS va, b.v AS vb, c.v AS vc "
            "FROM a [UNBOUNDED], b [UNBOUNDED], c [UNBOUNDED] "
            "WHERE a.k = b.k AND b.k = c.k"
        )

    @property
    def groups(self) -> int:
        """A partition is a group."""
        return self.spec.partition_count

    @property
    def spec(self) -> WorkloadSpec:
        """The streams as the generator takes them."""
        streams = tuple(StreamSpec(name, self.rate, self.phases) for name in self.streams)
        return WorkloadSpec(streams, self.partitions, seed=1)

    def write(self, folder: Path) -> None:
        """Write a folder per stream, with a file per second."""
        spec = self.spec
        keys = _keys_of_groups(spec)
        for name in self.streams:
            take = partial(_aligned_rows, spec, keys, name)
            write_slices(take, name, folder / name, seconds=self.seconds, file_seconds=1)


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
    count = 2 * groups * needed
    while True:
        keys = np.arange(count)
        of_keys = group_of(hash_of_key(pa.array(keys)), groups)
        if np.bincount(of_keys, minlength=groups).min() >= needed:
            return np.array([keys[of_keys == group][:needed] for group in range(groups)])
        count *= 2
