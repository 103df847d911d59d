"""From complete combinations to result rows, and from rows to Parquet files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from braid.evaluator import evaluate
from braid.model.query import time_column
from braid.plan.keys import key_from_hash
from braid.plan.wire import FIRST_STORED, as_time
from braid.record.commit import ResultFile
from braid.state.files import checksum, room_in, sync_folder
from braid.state.runs import hashes_of, times_of
from braid.worker.spark_schema import with_note

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from braid.model.expression import Column
    from braid.plan.join_plan import JoinPlan
    from braid.plan.wire import Layout


_ESCAPED = re.compile(r"""["#%'*/:=?\\{}\[\]^\x00-\x1f\x7f\ud800-\udfff]""")
_LONGEST_NAME = 200  # bytes; file systems allow 255, and some encrypt names into longer ones


def stream_folder(alias: str) -> str:
    """The folder of a stream's late rows, with a name for each alias that no other one has.

    Characters are escaped as in the partition folders of Hive and Spark, so that readers get
    the alias back. A name too long for a file system is cut, and a digest of the whole put
    behind it; no escaped name has such an end.

    >>> stream_folder("orders"), stream_folder("p/../x")
    ('stream=orders', 'stream=p%2F..%2Fx')
    """
    name = _ESCAPED.sub(
        lambda found: "".join(f"%{byte:02X}" for byte in _utf8(found[0])), alias
    )
    if len(name.encode()) > _LONGEST_NAME:
        start = name.encode()[:_LONGEST_NAME].decode(errors="ignore")
        name = f"{start}%~{sha256(_utf8(alias)).hexdigest()[:32]}"
    return f"stream={name}"


def _utf8(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


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
                path, with_note(self.schema), compression="lz4", use_dictionary=False
            )
        return self._writer

    def finish(self, *, even_if_empty: bool = False) -> ResultFile | None:
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
        return ResultFile(self.file, self.rows, data.size, checksum(memoryview(data)))


def result_table(plan: JoinPlan, fetch: Callable[[Column], pa.Array], rows: int) -> pa.Table:
    """The output columns of complete combinations."""
    columns = [evaluate(out.value, fetch, rows) for out in plan.query.output]
    return pa.Table.from_arrays(columns, schema=plan.result_schema)


def late_table(plan: JoinPlan, stream: int, layout: Layout, rows: pa.RecordBatch) -> pa.Table:
    """Late rows of one stream, with those of its columns that the query uses."""
    types, time = plan.wire.types, time_column(plan.wire.event_time, stream)
    columns = {time.column: as_time(times_of(rows), types[time])}
    for column in layout.recovered:
        columns[column.column] = key_from_hash(hashes_of(rows), types[column])
    for place, column in enumerate(layout.columns, FIRST_STORED):
        columns[column.column] = rows.column(place)
    return pa.table(columns)
