"""Sending the state of groups from one worker to another, through Spark.

A job of its own, beside those of the batches: the sender's executor reads the files that the
groups were taken out in, a shuffle brings them to the receiver's, and it writes them into its
own folders. What does not arrive, the receiver makes from the log.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from braid.model.failpoints import reach
from braid.spark.task import executor_stores
from braid.state.runs import SortedRun

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from braid.record.commit import Commit
    from braid.record.move import Move
    from braid.spark.pinning import Anchor
    from braid.state.store import RunStore

_PIECE_BYTES = 512 << 10
_CARGO = "slot int, state int, part int, data binary"
_RECEIPT = "state int, run string"


@dataclass(frozen=True, slots=True)
class Shipment:
    """The files of a move that is under way since a batch, and whose they are."""

    commit: Commit
    move: Move
    checkpoint: Path
    incarnation: str
    memory_bytes: int | None
    slot: int  # of the receiver

    def send(self, anchor: Anchor) -> dict[int, SortedRun]:
        """Have it done; the runs that arrived, by state."""
        cargo = anchor.held.mapInArrow(self._load, _CARGO)
        receipts = anchor.pin(cargo).mapInArrow(self._unload, _RECEIPT).collect()
        return {row["state"]: SortedRun.from_json(json.loads(row["run"])) for row in receipts}

    @property
    def _runs(self) -> Mapping[int, SortedRun]:
        assert self.move.runs is not None, "the sender has taken the groups out"
        return self.move.runs

    def _load(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """At the sender: the files, in pieces."""
        for _ in batches:
            pass  # only to be where the anchor is
        if _worker() != self.move.sender:
            return
        store = self._store()
        for state, run in self._runs.items():
            rows = store.read_rows(run)
            if rows is not None:
                yield from self._pieces(state, memoryview(rows))
        reach("state read", self.commit.batch)

    def _pieces(self, state: int, data: memoryview) -> Iterator[pa.RecordBatch]:
        for part, first in enumerate(range(0, len(data), _PIECE_BYTES)):
            piece = data[first : first + _PIECE_BYTES]
            values = ([self.slot], [state], [part], [piece])
            kinds = (pa.int32(), pa.int32(), pa.int32(), pa.binary())
            columns = [pa.array(*column) for column in zip(values, kinds, strict=True)]
            yield pa.RecordBatch.from_arrays(columns, ["slot", "state", "part", "data"])

    def _unload(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """At the receiver: the files, made whole and written."""
        pieces = [piece for batch in batches for piece in zip(*batch.columns, strict=True)]
        pieces.sort(key=lambda piece: (piece[0].as_py(), piece[1].as_py()))
        for state, of_state in groupby(pieces, key=lambda piece: piece[0].as_py()):
            rows = pa.py_buffer(b"".join(data.as_buffer() for _, _, data in of_state))
            run = self._store().install(self._runs[state], rows)
            text = json.dumps(run.to_json())
            yield pa.RecordBatch.from_pydict(
                {"state": pa.array([state], pa.int32()), "run": [text]}
            )
        if pieces:
            reach("state installed", self.commit.batch)

    def _store(self) -> RunStore:
        """Of the worker whose task this is, for the space of the groups."""
        spaces = range(len(self.commit.assignments))
        stores = executor_stores(
            self.checkpoint,
            self.incarnation,
            [self.commit.owned(space, _worker()) for space in spaces],
            _worker(),
            self.memory_bytes,
            is_firm=True,
        )
        return stores[self.move.space]


def _worker() -> int:
    context = TaskContext.get()
    assert context is not None, "a task runs inside Spark"
    return context.partitionId()
