from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from braid.experiment.partitioned_streams import PartitionedStreams
from braid.plan.keys import hash_of_key
from braid.state.groups import group_of
from braid.workload import PartitionSpec, rows

if TYPE_CHECKING:
    from pathlib import Path


def test_every_partitions_keys_are_of_the_group_of_its_number(tmp_path: Path) -> None:
    partitions = (PartitionSpec(3, 4.0, 600), PartitionSpec(4, 1.0, 900))
    streams = PartitionedStreams(partitions, rate=400.0, seconds=2)
    streams.write(tmp_path)
    spec = streams.spec
    assert streams.groups == spec.partition_count == 7
    for stream in streams.streams:
        drawn = rows(spec, stream, 0, 2_000_000)
        written = pa.concat_tables(
            pq.read_table(path) for path in sorted((tmp_path / stream).iterdir())
        )
        assert written.drop(["k"]) == drawn.drop(["k"])
        keys = written.column("k").to_pylist()
        hashes = hash_of_key(pa.array(keys, pa.int64()))
        partition = drawn.column("k").to_numpy() % spec.partition_count
        assert (group_of(hashes, spec.partition_count) == partition).all()
        pairs = set(zip(drawn.column("k").to_pylist(), keys, strict=True))
        assert len(pairs) == len(set(keys)) == len(set(drawn.column("k").to_pylist()))
