import pytest
from sqlglot.tokens import Tokenizer

from braid.cql.bind import bind
from braid.cql.dialect import Cql
from tests.unit.cql.pointing import AB, SCHEMAS, bound

NORMAL = (
    "SELECT x.k, o.Amount AS paid, x.v * (o.v + 1) AS due "
    "FROM a [RANGE 1 MINUTE] AS x, Orders [RANGE 1.500 MILLISECONDS] AS o "
    "WHERE x.k = o.k AND x.j = o.j AND x.v > 1 AND o.name LIKE 'y%' "
    "AND x.ts - o.ts <= INTERVAL 1 MILLISECOND AND o.ts <= x.ts AND x.v <> o.v"
)


@pytest.mark.parametrize(
    "text",
    [
        NORMAL,
        NORMAL.lower(),
        NORMAL.replace("1 MINUTE", "60 seconds").replace("1.500 MILLISECONDS", "0.0015 Second"),
        NORMAL.replace("x.k = o.k", "(o.k = X.K)").replace("o.Amount AS", "Amount"),
        NORMAL.replace("x.k", '"x".`K`').replace("[RANGE 1 MINUTE] AS x", "x [RANGE 1 MINUTE]"),
        NORMAL.replace(" AND ", "\n  AND x.k = o.k AND ").replace(",", " ,\n") + " ;",
        NORMAL.replace(" AND x.v <> o.v", "").replace("x.j = o.j", "x.v != o.v AND x.j == o.j"),
        NORMAL.replace("(o.v + 1)", "((o.v)+1)").replace("x.v > 1", "(x.v > (1))"),
        NORMAL.replace(
            ", Orders [RANGE 1.500 MILLISECONDS] AS o WHERE",
            " JOIN Orders [RANGE 1.500 MILLISECONDS] AS o ON TRUE = TRUE AND",
        ).replace("TRUE = TRUE AND", ""),
        NORMAL.replace(
            "x.ts - o.ts <= INTERVAL 1 MILLISECOND AND o.ts <= x.ts",
            "x.ts BETWEEN o.ts AND o.ts + INTERVAL '1000' MICROSECONDS",
        ),
    ],
)
def test_all_spellings_of_a_query_have_one_text(text: str) -> None:
    assert bound(text).text == NORMAL


@pytest.mark.parametrize(
    "other",
    [
        NORMAL.replace("1 MINUTE", "2 MINUTES"),
        NORMAL.replace("paid", "due2"),
        NORMAL.replace("x.k = o.k AND x.j = o.j", "x.j = o.j AND x.k = o.k"),
        NORMAL.replace("x.k = o.k AND ", ""),
        NORMAL.replace("FROM a", "FROM b"),
        NORMAL.replace("'y%'", "'Y%'"),
        NORMAL.replace("x.v > 1", "x.v > 1.0"),
        NORMAL.replace("<= x.ts", "< x.ts"),
    ],
)
def test_queries_that_differ_have_different_texts(other: str) -> None:
    assert bound(other).text != NORMAL


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a.k, count(*) AS n, avg(a.v) + 1, window_end {AB} GROUP BY a.k HAVING n > 3",
        f"SELECT -a.v * -(b.v - 1), a.v - (b.v - 1), (a.v + b.v) IS NULL {AB}",
        f"SELECT a.v + b.v + 1, a.v + (1 + b.v), -(-(a.v + b.v)), NOT (NOT a.v > b.v) {AB}",
        f"SELECT CASE WHEN a.v > b.v OR a.k = 1 THEN 'x' ELSE b.name END, a.k IN (b.k, 1) {AB}",
        f"SELECT (a.v > b.v) = (a.k > b.k), NOT (a.v > b.v) IS NULL AS x {AB}",
        f"SELECT coalesce(a.v + b.v, -5, 1.50, 2BD, 1e300, 2D, '\\\\n''', DATE '2026-01-31', "
        f"INTERVAL '-90' SECONDS, TIMESTAMP '2026-01-31 10:00:00Z') {AB}",
        f"SELECT a.k {AB} AND (a.k = 1 OR b.k = 2) AND NOT (a.v < b.v AND a.k < b.j)",
        f"SELECT a.k {AB} AND (a.k = 1 OR (b.k = 2 OR (a.k = 3 AND a.j = 4))) IS NOT TRUE",
        f"SELECT a.k + b.k AS s, count(*) {AB} GROUP BY s HAVING (a.k + b.k) * 2 > 3 AND TRUE",
        "SELECT (a.v > b.v AND a.k > b.j) AND count(*) > 1 "
        f"{AB} GROUP BY (a.v > b.v AND a.k > b.j)",
        f"SELECT a.s.x AS x, a.tags[0] AS v, cast(a.v AS INT) || b.name {AB}",
        "SELECT a.k FROM a [PARTITION BY k, `limit` ROWS 3], b [UNBOUNDED] AS `b c` "
        "WHERE a.k = `b c`.k AND a.k = `b c`.limit + 1",
        f"SELECT if(a.v > b.v, a.v, NULL), a.k BETWEEN b.k AND b.j, a.k <=> b.k {AB} AND 1 = 1",
        "SELECT transform(a.tags, x -> upper(x) || a.name), "
        f"exists(b.tags, `y z` -> `y z` = '') {AB}",
        f"SELECT count(a.k + 1), sum(CASE WHEN a.v > b.v THEN 1 END), max(b.name || 'x') {AB}",
    ],
)
def test_a_normal_form_binds_to_its_query_again(text: str) -> None:
    query = bound(text)
    assert bound(query.text) == query


def test_every_word_of_sql_survives_as_a_name() -> None:
    tables = (Tokenizer.KEYWORDS, Cql.Tokenizer.KEYWORDS)
    words = {word for keys in tables for key in keys for word in key.split()}
    words = {word for word in words if word.isidentifier()} | {"WINDOW_END", "SLIDE", "IF"}
    assert len(words) > 200
    for word in sorted(words):
        schema = SCHEMAS["a"].append(SCHEMAS["a"].field("k").with_name(word))
        text = f"SELECT `{word}`.`{word}`, z.k AS z, -`{word}`.`{word}` * z.v AS v "
        text += f"FROM `{word}` [RANGE 1 DAY], `{word}` [PARTITION BY `{word}`, k ROWS 1] AS z "
        text += f"WHERE z.k = `{word}`.`{word}` AND abs(z.`{word}`) IN (1, 2)"
        query = bind(text, {word: schema}, event_time="ts")
        assert bind(query.text, {word: schema}, event_time="ts") == query
