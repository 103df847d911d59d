"""From matches to result rows, and from result rows to Parquet files."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from braid.join.keys import key_from_hash
from braid.join.plan import FIRST_STORED, JoinPlan
from braid.state.commit import Part
from braid.state.files import checksum, room_in, sync_folder
from braid.state.runs import Hashes, Times, hashes_of, times_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from braid.join.probe import Partial, Stored


@dataclass(slots=True)
class PartWriter:
    """Writes one Parquet file, if there are rows for it or an empty one is wanted."""

    folder: Path
    file: str
    schema: pa.Schema
    rows: int = 0
    _writer: pq.ParquetWriter | None = field(default=None, init=False)

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        with room_in(self.folder):
            self._open().write_table(table)
        self.rows += table.num_rows

    def _open(self) -> pq.ParquetWriter:
        if self._writer is None:
            path = self.folder / self.file
            path.parent.mkdir(parents=True, exist_ok=True)
            # Join results seldom repeat values enough to pay for dictionaries.
            self._writer = pq.ParquetWriter(
                path, self.schema, compression="lz4", use_dictionary=False
            )
        return self._writer

    def finish(self, *, even_if_empty: bool = False) -> Part | None:
        """Close the file and make it durable."""
        if self._writer is None and not even_if_empty:
            return None
        with room_in(self.folder):
            self._open().close()
            path = self.folder / self.file
            with open(path, "rb") as file:
                os.fsync(file.fileno())
                data = pa.memory_map(str(path)).read_buffer()
            for folder in {path.parent, self.folder, self.folder.parent}:
                sync_folder(folder)
        return Part(self.file, self.rows, data.size, checksum(memoryview(data)))


def result_table(plan: JoinPlan, partial: Partial, stored: Mapping[int, Stored]) -> pa.Table:
    """The output columns of complete results."""
    columns = [
        _output(plan, out.stream, out.column, partial, stored) for out in plan.query.output
    ]
    return pa.Table.from_arrays(columns, schema=plan.result_schema)


def _output(
    plan: JoinPlan, stream: int, column: str, partial: Partial, stored: Mapping[int, Stored]
) -> pa.Array:
    layout = plan.wire.streams[stream]
    if column in layout.names:
        place = FIRST_STORED + layout.names.index(column)
        return stored[stream].column(place, partial.rows[stream])
    if column in plan.query.streams[stream].key:
        return _key_column(plan, partial.hashes)
    return _time_column(plan, stream, stored[stream].times(partial.rows[stream]))


def _key_column(plan: JoinPlan, hashes: Hashes) -> pa.Array:
    return key_from_hash(hashes, plan.wire.key_types[0])


def _time_column(plan: JoinPlan, stream: int, times: Times) -> pa.Array:
    return pa.array(np.ascontiguousarray(times)).view(plan.wire.time_types[stream])


def late_table(plan: JoinPlan, stream: int, rows: pa.RecordBatch) -> pa.Table:
    """Late rows of one stream, with those of its columns that the query uses."""
    layout = plan.wire.streams[stream]
    columns = {plan.wire.event_time: _time_column(plan, stream, times_of(rows))}
    if plan.wire.exact:
        columns[plan.query.streams[stream].key[0]] = _key_column(plan, hashes_of(rows))
    for place, name in enumerate(layout.names, FIRST_STORED):
        columns[name] = rows.column(place)
    return pa.table(columns)
