"""What a worker sends to the next round: the wire's form, written in Python.

The next round's hash is left to Catalyst, which hashes all rows alike; but rows that are only
carried along have it already, and of a key that its hash stands for, nothing but the hash is
sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.plan.keys import hash_of_key
from braid.plan.wire import REPORT, TAG_BITS, UNTIL, Layout, Wire, tag_of
from braid.state.runs import hashes_of, times_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from braid.model.expression import Column
    from braid.plan.rounds import Round
    from braid.state.groups import Hashes
    from braid.state.runs import Times
    from braid.worker.probe import Partial


def sent_partial(
    wire: Wire, to: Round, port: int, partial: Partial, fetch: Callable[[Column], pa.Array]
) -> pa.RecordBatch:
    """Half-made results, results of a join below another, or a stream's rows by another key."""
    layout = wire.layout(to.ports[port])
    hashes = hash_of_key(fetch(layout.recovered[0])) if layout.recovered else None
    values = {
        column: pa.array(partial.deadline) if column == UNTIL else fetch(column)
        for column in layout.columns
    }
    return _sent(wire, to, port, partial.newest, hashes, layout, values)


def carried(wire: Wire, to: Round, port: int, rows: pa.RecordBatch) -> pa.RecordBatch:
    """Rows in the form of runs, as they came."""
    layout = wire.layout(to.ports[port])
    values = dict(zip(layout.columns, rows.columns[2:], strict=True))
    return _sent(wire, to, port, times_of(rows), hashes_of(rows), layout, values)


def sent_aggregates(wire: Wire, to: Round, port: int, table: pa.Table) -> pa.RecordBatch:
    """Partial aggregates on their way to where their groups are."""
    layout = wire.layout(to.ports[port])
    values = {c: table.column(c.column).combine_chunks() for c in layout.columns}
    return _sent(wire, to, port, table.column("time").to_numpy(), None, layout, values)


def sent_report(wire: Wire, to: Round, report: str) -> pa.RecordBatch:
    """A report, which travels with the rows that it is of."""
    columns = [pa.array([REPORT], pa.int64()), pa.nulls(1, pa.int64())]
    columns += [pa.nulls(1, wire.slots[slot]) for slot in wire.slots_of(to)]
    schema = wire.schema(to, reports=True)
    return pa.RecordBatch.from_arrays([*columns, pa.array([report])], schema=schema)


def _sent(
    wire: Wire,
    to: Round,
    port: int,
    times: Times,
    hashes: Hashes | None,
    layout: Layout,
    values: Mapping[Column, pa.Array],
) -> pa.RecordBatch:
    rows = len(times)
    filled = {slot: values[c] for slot, c in zip(layout.slots, layout.columns, strict=True)}
    columns = [
        pa.array((times << TAG_BITS) | tag_of(to, port)),
        pa.nulls(rows, pa.int64()) if hashes is None else pa.array(hashes.view(np.int64)),
        *(
            filled[slot] if slot in filled else pa.nulls(rows, wire.slots[slot])
            for slot in wire.slots_of(to)
        ),
        pa.nulls(rows, pa.string()),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=wire.schema(to, reports=True))
