"""What a join's operations cost on this machine, in seconds of one core.

What workers do is measured in `braid.engine.calibrate`; here is what it costs to send a row to
another worker within a batch. What else Spark does is the same for all plans.

Rows are sent through Spark, as between two rounds: out of Python, hashed, shuffled, into Python
again, and sorted. All go to one worker, so that nothing happens at the same time. A job costs
something whatever it sends, which is the same for many rows and for few; so it is the
difference between the two that counts.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.engine.calibrate import measure_operations
from braid.spark.pinning import drop_anchor
from braid.spark.session import quiet, session
from braid.state.order import sort_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

    from braid.optimize.cost_model import IndexProbes
    from braid.spark.pinning import Anchor

_FEW, _MANY = 1 << 14, 1 << 18
_ROUNDS = 3
_WIRE = "at bigint, hash bigint, slot0 bigint, slot1 bigint, report string"
_WORKERS = 2  # with one, Spark would not shuffle


def measure_costs(*, several_keys: bool) -> IndexProbes:
    """The costs of inserting, purging, searching, matching and shuffling a row.

    Where there are not several keys nothing is shuffled between joins, and Spark is not needed
    to find out what it would cost.
    """
    costs = measure_operations()
    return replace(costs, shuffle=measure_shuffle()) if several_keys else costs


@cache
def measure_shuffle() -> float:
    """The quickest of some rounds, which take a second or two, once in a process."""
    spark = session().newSession()
    quiet(spark, _WORKERS)
    anchor = drop_anchor(spark, _WORKERS)
    try:
        few, many = (_quickest(spark, anchor, rows) for rows in (_FEW, _MANY))
    finally:
        anchor.release()
    return max(0.0, many - few) / (_MANY - _FEW)


def _quickest(spark: SparkSession, anchor: Anchor, rows: int) -> float:
    """Seconds of the quickest round, after one in which Spark gets to know the job."""
    job = _sent(spark, anchor, rows)
    job.collect()
    taken = []
    for _ in range(_ROUNDS):
        began = perf_counter()
        job.collect()
        taken.append(perf_counter() - began)
    return min(taken)


def _sent(spark: SparkSession, anchor: Anchor, rows: int) -> DataFrame:
    made = spark.range(0, 1, 1, 1).mapInArrow(partial(_make, rows), _WIRE)
    hashed = "coalesce(hash, xxhash64(slot0)) AS hash"
    slot = f"{anchor.slot_keys[0]} AS slot"
    sent = anchor.pin(made.selectExpr("at", hashed, "slot0", "slot1", "report", slot))
    return sent.mapInArrow(_receive, "rows bigint")


def _make(rows: int, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In place of a worker: rows as `braid.worker.outgoing` writes them."""
    for _ in batches:
        numbers = pa.array(np.random.default_rng(1).integers(0, 2**40, rows))
        columns = (numbers, pa.nulls(rows, pa.int64()), numbers, numbers)
        names = ["at", "hash", "slot0", "slot1", "report"]
        yield pa.RecordBatch.from_arrays([*columns, pa.nulls(rows, pa.string())], names)


def _receive(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In place of the next: put them in order as `braid.worker.arrivals` does."""
    received = list(batches)
    rows = 0
    if received:
        table = pa.Table.from_batches(received).combine_chunks()
        at, hashes = (table.column(name).chunk(0).to_numpy() for name in ("at", "hash"))
        order = sort_order(hashes.view(np.uint64), at)
        rows = table.take(pa.array(order)).num_rows
    yield pa.RecordBatch.from_pydict({"rows": [rows]})
