from __future__ import annotations

import pyarrow as pa

from braid.cql import bind, columns_of_stream, functions_of

COLUMNS = pa.schema(
    {
        "k": pa.int64(),
        "v": pa.int64(),
        "odd `name": pa.int64(),
        "s": pa.struct({"x": pa.int64()}),
        "unused": pa.int64(),
        "ts": pa.timestamp("us", "UTC"),
    }
)


def test_a_stream_needs_the_columns_of_its_expressions_filters_and_keys() -> None:
    query = bind(
        "SELECT a.v + 1 AS w, b.s.x FROM a [RANGE 1 DAY], b [PARTITION BY k, v ROWS 2] "
        "WHERE a.k = b.k AND a.`odd ``name` > 3",
        {"a": COLUMNS, "b": COLUMNS},
        event_time="ts",
    )
    own = set(COLUMNS.names)
    assert columns_of_stream(query, 0) & own == {"k", "v", "odd `name"}
    assert columns_of_stream(query, 1) & own == {"k", "v", "s"}


def test_functions_that_only_spark_knows_are_named() -> None:
    query = bind(
        "SELECT uper(a.v) AS w, abs(a.v - b.v) AS d, CAST(b.v AS DECIMAL(9, 1)) AS c "
        "FROM a [RANGE 1 DAY], b [RANGE 1 DAY] WHERE a.k = b.k AND lower(b.v) <> 'none(k)'",
        {"a": COLUMNS, "b": COLUMNS},
        event_time="ts",
    )
    assert functions_of(query, ["timestamp_millis(`f(x)`)"]) == [
        "lower",
        "timestamp_millis",
        "uper",
    ]


def test_types_and_forms_of_expressions_are_no_functions_and_names_are_whole() -> None:
    query = bind(
        "SELECT a.k FROM a [RANGE 1 DAY], b [RANGE 1 DAY] WHERE a.k = b.k "
        "AND extract(HOUR FROM a.ts) = 3 AND CAST(a.v AS VARCHAR(3)) LIKE ANY ('x', 'y') "
        "AND `My f`(a.v) = 1 AND my_db.Bar(a.v) = 1 "
        "AND a.v::char(4) = `cat`.`my db`.f(a.`odd ``name`)",
        {"a": COLUMNS, "b": COLUMNS},
        event_time="ts",
    )
    assert functions_of(query) == ["`My f`", "cat.`my db`.f", "my_db.bar"]
