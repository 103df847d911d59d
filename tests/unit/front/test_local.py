"""Queries over tables, without Spark, as somebody tests a query of his own."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import braid
from braid.model.errors import BraidError
from tests.oracle.values import EPOCH, TIME

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = (
    "SELECT o.id, p.amount FROM orders o [RANGE 1 MINUTE], payments p [RANGE 1 MINUTE] "
    "WHERE o.id = p.id"
)


def table(*rows: tuple[int, float, int], **kinds: pa.DataType) -> pa.Table:
    """Rows of an id, a second and an amount."""
    ids, seconds, amounts = zip(*rows, strict=True) if rows else ((), (), ())
    moments = [EPOCH + dt.timedelta(seconds=s) for s in seconds]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "ts": pa.array(moments, kinds.get("ts", TIME)),
            "amount": pa.array(amounts, kinds.get("amount", pa.int64())),
        }
    )


ORDERS = table((1, 0, 10), (2, 1, 20), (3, 2, 30))
PAYMENTS = table((1, 5, 10), (2, 90, 20), (3, 7, 30), (4, 7, 40))


def found(result: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row.values()) for row in result.to_pylist())


def test_a_query_over_tables_gives_what_it_means() -> None:
    shown = braid.local().run(PAIRS, orders=ORDERS, payments=PAYMENTS, event_time="ts")
    assert shown.column_names == ["id", "amount"]
    assert found(shown) == Counter([(1, 10), (3, 30)])


@pytest.mark.parametrize("workers", [1, 3])
def test_batches_make_no_difference(workers: int) -> None:
    apart = [ORDERS.slice(n, 1) for n in range(3)], [PAYMENTS.slice(n, 2) for n in (0, 2)]
    shown = braid.local(workers).run(
        PAIRS, {"orders": apart[0], "payments": apart[1]}, event_time="ts", lateness="1 hour"
    )
    assert found(shown) == Counter([(1, 10), (3, 30)])


def test_filters_columns_and_groups_are_computed() -> None:
    query = (
        "SELECT o.amount % 20 AS rest, count(*) AS n, sum(p.amount) AS total "
        "FROM orders o [RANGE 1 MINUTE SLIDE 1 MINUTE], payments p [RANGE 1 MINUTE] "
        "WHERE o.id = p.id AND p.amount > 10 GROUP BY o.amount % 20"
    )
    later = table((9, 100, 0))  # so that a minute is over
    orders, payments = pa.concat_tables([ORDERS, later]), pa.concat_tables([PAYMENTS, later])
    shown = braid.local().run(query, orders=orders, payments=payments, event_time="ts")
    assert found(shown.drop_columns(["window_end"])) == Counter([(10, 1, 30)])


def test_a_run_goes_on_from_its_checkpoint(tmp_path: Path) -> None:
    sink = braid.sinks.memory()

    def run(orders: list[pa.Table], payments: list[pa.Table]) -> braid.Run:
        streams = {"orders": orders, "payments": payments}
        query = braid.local().query(PAIRS, streams, event_time="ts", lateness="1 hour")
        started = query.start(checkpoint=tmp_path / "checkpoint", sink=sink)
        started.await_termination()
        return started

    first = run([ORDERS], [PAYMENTS.slice(0, 2)])
    assert found(sink.table()) == Counter([(1, 10)])
    second = run([ORDERS, ORDERS.slice(0, 0)], [PAYMENTS.slice(0, 2), PAYMENTS.slice(2)])
    assert found(sink.table()) == Counter([(1, 10), (3, 30)])
    assert first.progress.input_rows == 5
    assert second.progress.input_rows == 2


def test_strategies_and_optimizers_work_as_they_do_on_spark(tmp_path: Path) -> None:
    rows = [(key, second, key) for second in range(40) for key in range(25)]
    batches = [table(*rows[first : first + 100]) for first in range(0, len(rows), 100)]
    query = braid.local(workers=2).query(
        PAIRS, {"orders": batches, "payments": batches}, event_time="ts"
    )
    run = query.start(
        checkpoint=tmp_path / "checkpoint",
        sink=(sink := braid.sinks.memory()),
        memory="4KB",
        overflow="defer",
        strategy="lazy-disk tau_ms=0",
        assign="0.9,0.1",
    )
    run.await_termination()
    assert len(sink.rows()) == 25 * 40 * 40
    assert {"spill", "relocate"} <= {event["event"] for event in run.events()}


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("CAST(o.amount AS STRING)", "CAST"),
        ("regexp_replace(o.name, 'a', 'b')", "the function regexp_replace"),
        ("o.amount / p.id", None),
        ("o.amount / o.id", "by zero is an error in Spark"),
        ("o.small + 1", "of integers below BIGINT has another type"),
    ],
)
def test_what_only_spark_knows_is_refused_by_its_name(expression: str, why: str | None) -> None:
    orders = ORDERS.append_column("name", pa.array(["a", "b", "c"]))
    orders = orders.append_column("small", pa.array([1, 2, 3], pa.int32()))
    text = PAIRS.replace("o.id, p.amount", f"{expression} AS value")
    streams = {"orders": orders, "payments": PAYMENTS}
    if why is None:
        assert braid.local().query(text, streams, event_time="ts")
        return
    with pytest.raises(BraidError, match=why) as refused:
        braid.local().query(text, streams, event_time="ts")
    assert "Spark" in str(refused.value)


def test_streams_that_are_no_tables_are_refused() -> None:
    for given in ([], [1], "orders", {"id": [1]}):
        with pytest.raises(BraidError, match="is no table of pyarrow"):
            braid.local().query(PAIRS, orders=given, payments=PAYMENTS, event_time="ts")
    with pytest.raises(BraidError, match="have different columns"):
        braid.local().query(
            PAIRS, orders=[ORDERS, PAYMENTS.select(["id"])], payments=PAYMENTS, event_time="ts"
        )
    wall = table((1, 5, 10), ts=pa.timestamp("us"))
    with pytest.raises(BraidError, match="some event times have a time zone"):
        braid.local().query(PAIRS, orders=ORDERS, payments=wall, event_time="ts")


def test_the_clock_is_the_tests_own(tmp_path: Path) -> None:
    now_us = int((EPOCH + dt.timedelta(seconds=10)).timestamp() * 1e6)
    query = braid.local(now_us=lambda: now_us).query(
        PAIRS, orders=ORDERS, payments=PAYMENTS, event_time="ts"
    )
    run = query.start(
        checkpoint=tmp_path / "checkpoint", sink=braid.sinks.memory(), max_ahead="1 minute"
    )
    run.await_termination()
    assert run.progress.ahead_rows == 1
