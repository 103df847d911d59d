"""GROUP BY over combinations that come and go with their windows.

A combination with youngest member M and deadline D lies in the windows at every slide boundary
T with M <= T <= D. It counts for all of them, so what a worker keeps is a *partial aggregate*:
a group, the first and the last boundary that some combinations count for, and their aggregates.
Equal ones combine, so there are few. Its run has the last boundary as time: it is dead when
that has been shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator import evaluate, holds
from braid.model.errors import BraidError
from braid.model.expression import GROUPED, Column
from braid.model.query import WINDOW_END
from braid.plan.explain import show_expression
from braid.plan.grouped_columns import aggregate_column
from braid.plan.wire import LATEST_US, as_time
from braid.state.order import sort_rows
from braid.worker.boundaries import BOUNDARY, between, spread, sweep
from braid.worker.sums import SumOverflow, widened

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from braid.model.query import Grouping
    from braid.plan.join_plan import JoinPlan
    from braid.worker.probe import Cascade, Partial

_AGAIN = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
"""How aggregates of parts become that of the whole."""


def partial_aggregates(
    plan: JoinPlan, cascade: Cascade, partial: Partial, *, hashed: bool
) -> pa.Table:
    """What complete combinations add to their groups; `hashed` keeps their key's hash.

    Columns: perhaps `hash`, `time` (the last boundary), then those of the grouping's relation.
    """
    grouping = _grouping(plan)
    slide = grouping.slide_us
    first = -(-partial.newest // slide) * slide
    last = np.minimum(partial.deadline, LATEST_US - 1) // slide * slide
    partial = partial.kept(counts := first <= last)
    fetch = cascade.values(partial)
    columns: dict[str, pa.Array] = {"hash": pa.array(partial.hashes)} if hashed else {}
    columns |= {"time": pa.array(last[counts]), "first": pa.array(first[counts])}
    for number, key in enumerate(grouping.keys):
        columns[f"key {number}"] = _groupable(evaluate(key, fetch, len(partial)))
    wanted: list[tuple[list[str] | str, str]] = []
    for number, aggregate in enumerate(grouping.aggregates):
        if aggregate.value is None:
            wanted.append(([], "count_all"))
            continue
        name = f"aggregate {number}"
        kind = plan.wire.types[aggregate_column(number)]
        value = evaluate(aggregate.value, fetch, len(partial))
        columns[name] = value if aggregate.function == "count" else value.cast(kind)
        wanted.append((name, aggregate.function))
    return _aggregated(plan, pa.table(columns), [n for n in columns if n[0] != "a"], wanted)


def _grouping(plan: JoinPlan) -> Grouping:
    assert plan.query.grouping is not None, "asked only of grouped queries"
    return plan.query.grouping


def _groupable(values: pa.Array) -> pa.Array:
    """Keys such that equal ones are equal to Arrow: adding zero turns -0.0 into 0.0."""
    return (
        pc.add(values, 0.0).cast(values.type) if pa.types.is_floating(values.type) else values
    )


def _aggregated(
    plan: JoinPlan,
    table: pa.Table,
    by: Sequence[str],
    wanted: Sequence[tuple[list[str] | str, str]],
) -> pa.Table:
    """Arrow's aggregates, in one table under our own names; sums that do not fit are errors."""
    kinds = [plan.wire.types[aggregate_column(i)] for i in range(len(wanted))]
    floats = [
        function in ("min", "max") and pa.types.is_floating(kind)
        for (_, function), kind in zip(wanted, kinds, strict=True)
    ]
    for (name, function), is_float in zip(wanted, floats, strict=True):
        if isinstance(name, str) and (is_float or function == "sum"):
            place, prepare = table.column_names.index(name), _ranks if is_float else widened
            table = table.set_column(place, name, prepare(table.column(name)))
    # Arrow returns the aggregates in the order in which they are asked for.
    result = table.group_by(list(by), use_threads=False).aggregate(list(wanted))
    values = [
        result.column(name).combine_chunks() for name in result.column_names if name not in by
    ]
    names = [f"aggregate {number}" for number in range(len(wanted))]
    arrays = [
        _ranked(value, kind) if is_float else _narrowed(plan, name, value, kind)
        for name, value, kind, is_float in zip(names, values, kinds, floats, strict=True)
    ]
    keys = [result.column(name).combine_chunks() for name in by]
    return pa.table([*keys, *arrays], names=[*by, *names])


def _narrowed(plan: JoinPlan, name: str, values: pa.Array, kind: pa.DataType) -> pa.Array:
    """An aggregate in the type that it is kept in."""
    try:
        return values.cast(kind)
    except pa.ArrowInvalid:
        raise _overflow(plan, name) from None


def _overflow(plan: JoinPlan, name: str) -> BraidError:
    """The error for an aggregate with a sum that does not fit its type."""
    number = int(name.split()[1])
    value = _grouping(plan).aggregates[number].value
    assert value is not None, "only sums are too large"
    kind = plan.wire.types[aggregate_column(number)]
    is_whole = pa.types.is_int64(kind)
    fitting = "BIGINT" if is_whole else f"DECIMAL({kind.precision}, {kind.scale})"
    return BraidError(
        f"overflow: a sum of {show_expression(plan.query, value)} does not fit {fitting}",
        hint=f"CAST what is summed to {'DECIMAL(38, 0) or DOUBLE' if is_whole else 'DOUBLE'}",
    )


def _ranks(values: pa.ChunkedArray) -> pa.Array:
    """Floats as integers in the same order, with NaN the greatest, as Spark has it."""
    floats = pc.add(values.combine_chunks().cast(pa.float64()), 0.0)
    floats = pc.if_else(pc.is_nan(floats), float("nan"), floats)  # all NaN alike, and positive
    return _flipped(floats.view(pa.int64()))


def _ranked(ranks: pa.Array, kind: pa.DataType) -> pa.Array:
    """The inverse of `_ranks`."""
    return _flipped(ranks).view(pa.float64()).cast(kind)


def _flipped(bits: pa.Array) -> pa.Array:
    """Between the bits of floats and integers in their order: negative ones are reversed."""
    negative = pc.less(bits, 0)
    return pc.if_else(negative, pc.bit_wise_xor(bits, 0x7FFF_FFFF_FFFF_FFFF), bits)


def _combined(plan: JoinPlan, table: pa.Table, by: Sequence[str]) -> pa.Table:
    grouping = _grouping(plan)
    wanted: list[tuple[list[str] | str, str]] = [
        (f"aggregate {number}", _AGAIN[aggregate.function])
        for number, aggregate in enumerate(grouping.aggregates)
    ]
    return _aggregated(plan, table, by, wanted)


def combine(plan: JoinPlan, rows: pa.RecordBatch, closed_us: int | None) -> pa.RecordBatch:
    """A run's partial aggregates with equal ones made into one, sorted again.

    What boundaries have been shown makes no difference any more.
    """
    schema, grouping = rows.schema, _grouping(plan)
    names = ["hash", "time", "first", *(f"key {i}" for i in range(len(grouping.keys)))]
    arrays = list(rows.columns)
    if closed_us is not None:
        following = (closed_us // grouping.slide_us + 1) * grouping.slide_us
        arrays[2] = pc.max_element_wise(arrays[2], pa.scalar(following, pa.int64()))
    every = [*names, *(f"aggregate {i}" for i in range(len(grouping.aggregates)))]
    table = _combined(plan, pa.table(arrays, names=every), names)
    columns = [column.combine_chunks() for column in table.columns]
    return sort_rows(pa.RecordBatch.from_arrays(columns, schema=schema))


def closing_results(
    plan: JoinPlan, runs: Sequence[pa.RecordBatch], after_us: int | None, up_to_us: int
) -> Iterator[pa.Table]:
    """The rows of all groups at the boundaries after one moment, up to another."""
    grouping = _grouping(plan)
    keys = [f"key {i}" for i in range(len(grouping.keys))]
    names = ["hash", "time", "first", *keys]
    names += [f"aggregate {i}" for i in range(len(grouping.aggregates))]
    if not runs:
        return
    table = pa.concat_tables(pa.table(run.columns, names=names) for run in runs)
    slide_us, sums = grouping.slide_us, names[3 + len(keys) :]
    counting = between(table, slide_us, after_us, up_to_us)
    if _add_up(plan, grouping):
        try:
            for groups in sweep(counting, slide_us, keys, sums):
                yield _shown(plan, groups)
        except SumOverflow as overflow:
            raise _overflow(plan, overflow.column) from None
        return
    for rows in spread(counting, slide_us):
        yield _shown(plan, _combined(plan, rows, [BOUNDARY, *keys]))


def _add_up(plan: JoinPlan, grouping: Grouping) -> bool:
    """Whether all aggregates are counts and whole sums, which can be taken back."""
    return all(
        aggregate.function in ("count", "sum")
        and pa.types.is_int64(plan.wire.types[aggregate_column(number)])
        for number, aggregate in enumerate(grouping.aggregates)
    )


def _shown(plan: JoinPlan, groups: pa.Table) -> pa.Table:
    """The output columns of groups at their boundaries, where HAVING lets them through."""
    end = Column(GROUPED, WINDOW_END)

    def fetch(column: Column) -> pa.Array:
        if column == end:
            boundaries: NDArray[np.int64] = groups.column(BOUNDARY).to_numpy()
            return as_time(boundaries, plan.wire.types[end])
        return groups.column(column.column).combine_chunks()

    having = _grouping(plan).having
    if having is not None:
        groups = groups.filter(pa.array(holds(having, fetch, groups.num_rows)))
    columns = [evaluate(out.value, fetch, groups.num_rows) for out in plan.query.output]
    return pa.Table.from_arrays(columns, schema=plan.result_schema)
