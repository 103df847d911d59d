"""Valid queries of every form, and streams for them: what laws and mutations start from."""

from __future__ import annotations

import re

import pyarrow as pa

SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "j": pa.int32(),
        "v": pa.float64(),
        "name": pa.string(),
        "ts": pa.timestamp("us"),
        "s": pa.struct({"x": pa.int64(), "y": pa.struct({"z": pa.string()})}),
        "tags": pa.list_(pa.string()),
    }
)
SCHEMAS = {"a": SCHEMA, "b": SCHEMA, "Orders": SCHEMA.append(pa.field("Amount", pa.int64()))}

_AB = "FROM a [RANGE 1 DAY], b [RANGE 2 HOURS] WHERE a.k = b.k"

VALID = [
    "SELECT a.k, b.v AS vb FROM a [RANGE 10 SECONDS], b [RANGE 1.5 HOURS] WHERE a.k = b.k",
    "SELECT x.k, y.`v` v2, o.amount FROM a [RANGE 10 SECONDS] AS x, a AS y [RANGE 5 MINUTES], "
    "Orders [RANGE 0 DAYS] o WHERE (x.k = y.k) AND y.k = o.k AND (x.j = o.j AND o.j = y.j);",
    "SELECT a.*, Amount -- all\nFROM a [RANGE 1 DAY],\n  Orders [RANGE 2 DAYS] /* two */\n"
    'WHERE a."name" = Orders.name',
    "SELECT a.k FROM a [RANGE 1 DAY] JOIN b [RANGE 1 DAY] USING (k) "
    "INNER JOIN Orders [UNBOUNDED] AS o ON o.k = a.k AND a.v < o.v WHERE a.name LIKE 'x%'",
    "SELECT a.k FROM a [RANGE 1 DAY] JOIN b [RANGE 1 DAY] ON a.tags[0] = b.s.y.z",
    "SELECT a.k FROM a [PARTITION BY k, j ROWS 3], b [RANGE UNBOUNDED] WHERE a.k = b.k",
    f"SELECT upper(a.name) || '-' || b.name, (a.v + 1) * -b.v AS x {_AB}",
    f"SELECT a.k {_AB} AND a.ts - b.ts BETWEEN INTERVAL '-5' SECONDS AND INTERVAL 5 SECONDS",
    f"SELECT a.k {_AB} AND a.ts <= b.ts + INTERVAL 1 MINUTE AND NOT b.ts > a.ts",
    f"SELECT a.k {_AB} AND abs(a.ts - b.ts) < INTERVAL '1 minute 30 seconds'",
    f"SELECT a.k {_AB} AND (a.v > 3 OR b.v > 3 OR a.j = 1) AND a.v <> b.v AND 1 = 1",
    f"SELECT a.k {_AB} AND a.v NOT BETWEEN b.v AND 10 AND a.k NOT IN (1, b.j, NULL)",
    f"SELECT CASE WHEN a.v > b.v THEN 'more' ELSE 'less' END, if(a.v = b.v, 1, 0) {_AB}",
    f"SELECT CASE a.k WHEN b.j THEN 1 WHEN 2 THEN 3 END AS x, nvl2(a.v, b.v, 0) AS y {_AB}",
    f"SELECT a.v <=> b.v, a.v IS DISTINCT FROM b.v, (a.v > b.v) IS NOT TRUE {_AB}",
    f"SELECT coalesce(a.v, b.v, 1.5, 2e3, 7L, -8, DATE '2026-01-31') AS c {_AB}",
    f"SELECT transform(a.tags, x -> x || 'y'), cast(b.v AS DECIMAL(10, 2)) {_AB}",
    f"SELECT extract(HOUR FROM a.ts), trim(BOTH 'x' FROM b.name), a.v::INT {_AB}",
    f"SELECT a.k, count(*) AS n {_AB} GROUP BY a.k HAVING count(*) > 3",
    f"SELECT a.k, sum(a.v * b.v) / count(*) + 1, avg(b.v) {_AB} GROUP BY 1",
    f"SELECT date_trunc('hour', a.ts) AS h, min(a.v), window_end {_AB} GROUP BY h, a.name "
    "HAVING a.name <> '' AND max(b.v) IS NOT NULL AND h IS NOT NULL",
    "SELECT count(*) FROM a [RANGE 30 MINUTES SLIDE 1 MINUTE], b [RANGE 1 HOUR] "
    "WHERE a.k = b.k AND a.name = 'it''s'",
    "SELECT count(a.v), a.k + b.k AS s FROM a [UNBOUNDED SLIDE 1 DAY] CROSS JOIN b [UNBOUNDED] "
    "WHERE a.k = b.k AND a.j = b.j GROUP BY s",
    f"SELECT greatest(a.v, b.v), round(a.v - b.v, 2), concat(a.name, b.name, 'é😀') {_AB}",
    f"SELECT a.k {_AB} AND upper(a.name) = lower(b.name) AND a.k = a.j + 1",
]

WORDS = re.findall(
    r"\S+",
    """
    SELECT FROM WHERE AND OR NOT AS RANGE ROWS SLIDE NOW UNBOUNDED SECONDS JOIN LEFT ON USING
    GROUP BY ORDER HAVING LIMIT UNION ALL DISTINCT WITH CASE WHEN END CAST EXISTS IN BETWEEN
    LIKE IS NULL TRUE INTERVAL OVER LATERAL VALUES UNNEST INSERT SET SHOW PIVOT TABLESAMPLE FOR
    PARTITION FILTER ROLLUP CUBE WINDOW QUALIFY DATE TIMESTAMP DIV RLIKE ESCAPE ANY SOME EXTRACT
    TRIM SUBSTRING POSITION OVERLAY IF COLLATE AT ZONE IGNORE NULLS ANTI SEMI NATURAL CROSS
    count sum avg max upper abs rand explode window_end coalesce
    a b k j v name x y o ts s tags Orders 0 1 1.5 1e9 .5 0x1F 99999999999999999999 1L 2BD 1e999
    'text' x'1' r'a' é 😀 \0
    ( ) [ ] { } , . ; * = < > <=> != + - / % ' " ` -- /* */ /*+ @ $ # ? : :: -> => || | & ^ ~ \\
    {{ }} {% %}
    """,
)
