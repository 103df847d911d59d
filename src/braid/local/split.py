"""The split and the shuffle in this process: from rows of streams to batches for workers.

What `braid.spark.split` says in SQL is computed here on Arrow arrays; `braid.plan.wire`
explains the form.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.local.hashing import spark_hashes
from braid.model.query import time_column
from braid.plan.wire import (
    LATEST_US,
    NULL_KEY,
    NULL_TIME,
    OUT_OF_RANGE,
    REPORT,
    TAG_BITS,
    TAGS,
    tag_of,
)
from braid.state.groups import group_of, marked

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from braid.engine.cluster import Pair
    from braid.local.hashing import Hashing
    from braid.model.query import Query
    from braid.plan.join_plan import JoinPlan
    from braid.plan.placement import ByHash
    from braid.plan.rounds import Port
    from braid.state.groups import Hashes

    StreamRows = Mapping[int, pa.Table]
    """The rows of a batch that pass their stream's filter, with derived columns, by stream."""


@dataclass(frozen=True, slots=True)
class LocalSplit:
    """Sends rows to workers; keys are hashed as Spark does it, unless a test wants collisions.

    A key that its hash stands for is always hashed as Spark does it.
    """

    plan: JoinPlan
    placements: Sequence[ByHash]
    hashing: Hashing = spark_hashes

    def shares(
        self, number: int, rows: StreamRows, sent: Sequence[pa.RecordBatch], workers: int
    ) -> list[list[pa.RecordBatch]]:
        """By worker, what comes into a round: from streams, and from the round before."""
        batches = [self._rehashed(number, batch) for batch in sent]
        batches += self._entering(number, rows)
        return self._by_worker(number, batches, workers)

    def _entering(self, number: int, rows: StreamRows) -> Iterator[pa.RecordBatch]:
        """The rows of streams, by each of their ports of a round."""
        seen = {
            port.stream
            for a_round in self.plan.rounds.rounds[:number]
            for port in a_round.ports
        }
        for place, port in enumerate(self.plan.rounds.rounds[number].ports):
            if port.stream is not None and port.stream in rows:
                first = port.stream not in seen
                yield self._tagged(number, place, rows[port.stream], all_of_them=first)
                seen.add(port.stream)

    def _tagged(
        self, number: int, place: int, rows: pa.Table, *, all_of_them: bool
    ) -> pa.RecordBatch:
        """A stream's rows by one port; those that cannot join come by the first port only."""
        a_round, wire = self.plan.rounds.rounds[number], self.plan.wire
        port = a_round.ports[place]
        at = self._at(port, rows, tag_of(a_round, place))
        joins = at & TAGS == tag_of(a_round, place)
        hashes = np.where(joins, self._hashes(port, rows), np.uint64(0))
        goes = self._goes_through(port, hashes) & joins
        kept = pa.array(goes | ~joins if all_of_them else goes)
        layout = wire.layout(port)
        filled = dict(zip(layout.slots, layout.columns, strict=True))
        slots = [
            _column(rows, filled[slot].column).cast(wire.slots[slot])
            if slot in filled
            else pa.nulls(rows.num_rows, wire.slots[slot])
            for slot in wire.slots_of(a_round)
        ]
        columns = [pa.array(at), pa.array(hashes.view(np.int64)), *slots]
        columns += [pa.nulls(rows.num_rows, pa.string())] if number else []
        schema = wire.schema(a_round, reports=number > 0)
        return pa.RecordBatch.from_arrays(columns, schema=schema).filter(kept)

    def _at(self, port: Port, rows: pa.Table, tag: int) -> NDArray[np.int64]:
        """Event times with a tag: the port's, or why a row can never join."""
        assert port.stream is not None, "asked only of streams' own rows"
        time = time_column(self.plan.wire.event_time, port.stream).column
        moments = _column(rows, time)
        times = moments.cast(pa.timestamp("us", moments.type.tz)).view(pa.int64())
        has_time = times.is_valid().to_numpy(zero_copy_only=False)
        known = times.fill_null(0).to_numpy()
        fits = (known > -LATEST_US) & (known < LATEST_US)
        at = np.where(fits, known << TAG_BITS | tag, OUT_OF_RANGE)
        at = np.where(has_time, at, NULL_TIME)
        names = (key.of(port.stream) for key in self.plan.query.keys)
        for name in filter(None, names):
            is_null = _column(rows, name).is_null().to_numpy(zero_copy_only=False)
            at = np.where(is_null, NULL_KEY, at)
        return at.astype(np.int64)

    def _hashes(self, port: Port, rows: pa.Table) -> Hashes:
        assert port.stream is not None, "asked only of streams' own rows"
        keys = self.plan.rounds.spaces[port.space].keys
        names = (self.plan.query.keys[key].of(port.stream) for key in keys)
        return self._hashed(port.space, [_column(rows, name) for name in names if name], rows)

    def _hashed(
        self, space: int, columns: Sequence[pa.Array], rows: pa.Table | pa.RecordBatch
    ) -> Hashes:
        if not columns:
            return np.zeros(rows.num_rows, np.uint64)
        hashing = spark_hashes if self.plan.wire.exact[space] else self.hashing
        return hashing(columns, rows.num_rows)

    def _goes_through(self, port: Port, hashes: Hashes) -> NDArray[np.bool_]:
        """Which rows are of groups that go through a port's tree."""
        if not self.plan.routes:
            return np.ones(len(hashes), bool)
        groups = self.plan.groups
        return marked(self.plan.routes[port.tree], groups)[group_of(hashes, groups)]

    def _rehashed(self, number: int, batch: pa.RecordBatch) -> pa.RecordBatch:
        """What a worker has sent into a round, with the hashes that it left open."""
        hashes = batch.column("hash")
        a_round = self.plan.rounds.rounds[number]
        tags = batch.column("at").to_numpy() & TAGS
        made = hashes.fill_null(0).to_numpy().view(np.uint64).copy()
        is_open = hashes.is_null().to_numpy(zero_copy_only=False) & (tags != REPORT)
        for tag in np.unique(tags[is_open]).tolist():
            port = a_round.ports[a_round.sent[tag]]
            if self.plan.wire.layout(port).recovered:
                continue  # what has no key but its hash comes with it
            places = np.flatnonzero(is_open & (tags == tag))
            mine = batch.take(pa.array(places))
            columns = [mine.column(f"slot{slot}") for slot in self.plan.hashed_slots(port)]
            made[places] = self._hashed(port.space, columns, mine)
        columns = batch.columns
        columns[1] = pa.array(made.view(np.int64))
        return pa.RecordBatch.from_arrays(columns, schema=batch.schema)

    def _by_worker(
        self, number: int, batches: Sequence[pa.RecordBatch], workers: int
    ) -> list[list[pa.RecordBatch]]:
        """Each row where its group is; those that cannot join, and reports, to the first."""
        a_round = self.plan.rounds.rounds[number]
        spaces = np.array([a_round.ports[place].space for place in a_round.sent])
        shares: list[list[pa.RecordBatch]] = [[] for _ in range(workers)]
        for batch in batches:
            hashes = batch.column("hash").to_numpy().view(np.uint64)
            tags = batch.column("at").to_numpy() & TAGS
            worker = np.zeros(len(tags), np.int64)
            joins = tags < NULL_KEY
            for space in np.unique(spaces[tags[joins]]).tolist():
                mine = joins & np.isin(tags, np.flatnonzero(spaces == space))
                worker[mine] = self.placements[space].store(hashes[mine])
            for place, share in enumerate(shares):
                share.append(batch.filter(pa.array(worker == place)))
        return shares


def shared_hashes(query: Query, rows: StreamRows, stream: int, pair: Pair) -> Hashes:
    """The hashes of the keys that two streams share, of those rows of one that have them."""
    own = rows.get(stream)
    if own is None:
        return np.zeros(0, np.uint64)
    names = (key.of(stream) for key in query.keys if pair <= key.streams)
    columns = [_column(own, name) for name in names if name is not None]
    whole = np.ones(own.num_rows, bool)
    for column in columns:
        whole &= column.is_valid().to_numpy(zero_copy_only=False)
    return spark_hashes(columns, own.num_rows)[whole]


def _column(rows: pa.Table, name: str) -> pa.Array:
    """A column as one array."""
    chunks = rows.column(name).combine_chunks()
    if isinstance(chunks, pa.ChunkedArray):
        return chunks.chunk(0) if chunks.num_chunks else pa.array([], chunks.type)
    return chunks
