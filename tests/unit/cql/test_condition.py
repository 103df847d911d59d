import datetime as dt

import pytest

from braid.model.expression import Call, Column, Expression, Literal
from braid.model.query import TimeBound
from tests.unit.cql.pointing import AB, A, B, C, bound, failing

AV, BV = Column(0, "v"), Column(1, "v")
SECOND = 1_000_000


@pytest.mark.parametrize(
    ("condition", "sql"),
    [
        ("a.v > 3", "`v` > 3"),
        ("3 < a.v", "3 < `v`"),
        ("(((a.v) > (3)))", "`v` > 3"),
        ("a.v != 3 and not A.K==1", "`v` <> 3 AND NOT `k` = 1"),
        ("a.v > 3 OR a.v IS NULL", "(`v` > 3 OR `v` IS NULL)"),
        ("(a.v > 3 AND a.k = 1) OR a.j IN (1,2)", "((`v` > 3 AND `k` = 1) OR `j` IN (1, 2))"),
        ("a.v BETWEEN 1 AND 2", "`v` BETWEEN 1 AND 2"),
        (
            "a.name LIKE 'x%' AND a.name NOT RLIKE '^y'",
            "`name` LIKE 'x%' AND `name` NOT RLIKE '^y'",
        ),
        ("length(a.name)>-3", "length(`name`) > -3"),
        ("a.v*-1 - -2 > 0", "`v` * -1 - -2 > 0"),
        ("a.tags[0] = 'it''s'", "`tags`[0] = 'it''s'"),
        ("a.s.x = 1L", "`s`.`x` = 1L"),
        ("Exists(a.tags, x -> x = 'y')", "exists(`tags`, x -> x = 'y')"),
        (
            "aggregate(a.tags, 0, (acc, x) -> acc + 1) > 3",
            "aggregate(`tags`, 0, (acc, x) -> acc + 1) > 3",
        ),
        ("cast(a.v as Decimal(10,2)) > 1.5BD", "cast(`v` AS decimal(10, 2)) > 1.5BD"),
        ("a.v :: int = 3", "`v`::INT = 3"),
        ("extract(hour from a.ts) = 3", "extract(HOUR FROM `ts`) = 3"),
        ("timestampdiff(minute, a.ts, a.ts) = 3", "timestampdiff(MINUTE, `ts`, `ts`) = 3"),
        ("trim(both 'x' from a.name) <> ''", "trim(BOTH 'x' FROM `name`) <> ''"),
        (
            "case a.k when 1 then true else false end",
            "CASE `k` WHEN 1 THEN TRUE ELSE FALSE END",
        ),
        ("a.ts > date '2026-01-01'", "`ts` > DATE '2026-01-01'"),
        ("a.ts > a.ts - interval 5 minutes", "`ts` > `ts` - INTERVAL 5 MINUTES"),
        ("TRUE", "TRUE"),
        ("1 = 2", "1 = 2"),
        (r"a.name = r'\d' || x'1F' || '\n'", r"`name` = r'\d' || x'1F' || '\n'"),
        ('a."name" = `a`.`name`', "`name` = `name`"),
        ("my_function(a.k, b => 3)", "my_function(`k`, b => 3)"),
    ],
)
def test_what_needs_one_stream_filters_it_in_sparks_own_words(condition: str, sql: str) -> None:
    query = bound(f"SELECT a.k {AB} AND ({condition})")
    assert query.streams[0].filter == sql
    assert query.conditions == ()
    assert query.streams[0].derived == ()


def test_conjuncts_part_and_go_to_their_streams() -> None:
    query = bound(
        f"SELECT a.k FROM {A} JOIN {B} ON a.k = b.k AND b.j = 1 WHERE (a.j = 2 AND b.v > 3)"
    )
    assert [stream.filter for stream in query.streams] == ["`j` = 2", "`j` = 1 AND `v` > 3"]


def test_a_filter_twice_is_one() -> None:
    assert bound(f"SELECT a.k {AB} AND a.v>1 AND (a.v > 1)").streams[0].filter == "`v` > 1"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("a.v < b.v", Call("<", (AV, BV))),
        ("a.v <> b.v", Call("<>", (AV, BV))),
        ("a.v = b.v + a.k", Call("=", (AV, Call("+", (BV, Column(0, "k")))))),
        ("NOT a.v = b.v", Call("not", (Call("=", (AV, BV)),))),
        ("a.v = b.v OR a.k = 1", Call("or", (Call("=", (AV, BV)), Column(0, "`k` = 1")))),
        (
            "a.k = 1 OR b.k = 2 OR a.k = 3",
            Call("or", (Column(0, "`k` = 1 OR `k` = 3"), Column(1, "`k` = 2"))),
        ),
        (
            "a.ts < b.ts + INTERVAL 1 MONTH",
            Call("<", (Column(0, "ts"), Column(1, "`ts` + INTERVAL 1 MONTH"))),
        ),
    ],
)
def test_what_needs_several_streams_is_left_for_matches(
    condition: str, expected: Expression
) -> None:
    query = bound(f"SELECT a.k {AB} AND ({condition})")
    assert len(query.conditions) == 1
    assert query.conditions == (expected,)
    assert query.streams[0].filter is None


def test_a_range_over_two_streams_is_two_conditions() -> None:
    query = bound(f"SELECT a.k {AB} AND a.v BETWEEN b.v AND 10")
    assert query.conditions == (Call(">=", (AV, BV)),)
    assert query.streams[0].filter == "`v` <= 10"


@pytest.mark.parametrize(
    ("condition", "bounds"),
    [
        ("a.ts <= b.ts", [(0, 1, 0)]),
        ("a.ts < b.ts", [(0, 1, -1)]),
        ("a.ts >= b.ts", [(1, 0, 0)]),
        ("b.ts > a.ts", [(0, 1, -1)]),
        ("NOT a.ts > b.ts", [(0, 1, 0)]),
        ("a.ts <= b.ts + INTERVAL 1 MINUTE", [(0, 1, 60 * SECOND)]),
        ("a.ts - INTERVAL 1 MINUTE <= b.ts", [(0, 1, 60 * SECOND)]),
        ("INTERVAL '1' MINUTE + b.ts >= a.ts", [(0, 1, 60 * SECOND)]),
        ("a.ts < b.ts - INTERVAL 5 SECONDS", [(0, 1, -5 * SECOND - 1)]),
        ("a.ts - b.ts <= INTERVAL '1 minute 30 seconds'", [(0, 1, 90 * SECOND)]),
        ("INTERVAL 1 MINUTE 30 SECONDS >= a.ts - b.ts", [(0, 1, 90 * SECOND)]),
        ("-(a.ts - b.ts) <= INTERVAL 2 SECONDS", [(1, 0, 2 * SECOND)]),
        (
            "a.ts - b.ts BETWEEN INTERVAL '-5' SECONDS AND INTERVAL 5 SECONDS",
            [(0, 1, 5 * SECOND), (1, 0, 5 * SECOND)],
        ),
        (
            "a.ts BETWEEN b.ts AND b.ts + INTERVAL '10 seconds'",
            [(0, 1, 10 * SECOND), (1, 0, 0)],
        ),
        (
            "abs(a.ts - b.ts) < INTERVAL 2 SECONDS",
            [(0, 1, 2 * SECOND - 1), (1, 0, 2 * SECOND - 1)],
        ),
        ("INTERVAL 2 SECONDS >= abs(b.ts - a.ts)", [(0, 1, 2 * SECOND), (1, 0, 2 * SECOND)]),
        ("a.ts - b.ts = INTERVAL 3 SECONDS", [(0, 1, 3 * SECOND), (1, 0, -3 * SECOND)]),
        ("a.ts <= b.ts + INTERVAL 9 DAYS AND a.ts < b.ts", [(0, 1, -1)]),
        ("a.ts - c.ts <= b.ts - c.ts", [(0, 1, 0)]),
        ("a.ts + INTERVAL '1 02:03:04.5' DAY TO SECOND >= b.ts", [(1, 0, 93_784_500_000)]),
    ],
)
def test_conditions_on_event_times_are_bounds(
    condition: str, bounds: list[tuple[int, int, int]]
) -> None:
    query = bound(
        f"SELECT a.k FROM {A}, {B}, {C} WHERE a.k = b.k AND b.k = c.k AND {condition}"
    )
    assert query.bounds == tuple(TimeBound(*each) for each in bounds)
    assert query.conditions == ()
    assert not any(stream.derived or stream.filter for stream in query.streams)


@pytest.mark.parametrize(
    "condition",
    [
        "a.ts + b.ts <= b.ts + INTERVAL 1 DAY",
        "abs(a.ts - b.ts) > INTERVAL 2 SECONDS",
        "a.ts - b.ts <> INTERVAL 2 SECONDS",
        "a.ts <= greatest(b.ts, c.ts)",
        "NOT (a.ts <> b.ts)",
        "a.ts NOT BETWEEN b.ts AND c.ts",
    ],
)
def test_other_conditions_on_event_times_are_left_for_matches(condition: str) -> None:
    query = bound(
        f"SELECT a.k FROM {A}, {B}, {C} WHERE a.k = b.k AND b.k = c.k AND {condition}"
    )
    assert query.bounds == ()
    assert len(query.conditions) == 1


def test_an_interval_over_several_streams_is_a_timedelta() -> None:
    query = bound(f"SELECT a.k {AB} AND abs(a.ts - b.ts) > INTERVAL '-2' HOURS")
    apart = Call("abs", (Call("-", (Column(0, "ts"), Column(1, "ts"))),))
    assert query.conditions == (Call(">", (apart, Literal(dt.timedelta(hours=-2)))),)


@pytest.mark.parametrize(
    "marked",
    [
        f"SELECT a.k {AB} AND «a.ts - b.ts > INTERVAL 2 DAYS»",
        f"SELECT a.k {AB} AND a.ts < b.ts AND «a.ts > b.ts»",
        f"SELECT a.k {AB} AND a.ts <= b.ts AND "
        "«a.ts - b.ts BETWEEN INTERVAL 1 SECOND AND INTERVAL 2 SECONDS»",
        f"SELECT a.k FROM {A}, {B}, {C} WHERE a.k = b.k AND b.k = c.k "
        "AND a.ts < b.ts AND b.ts < c.ts AND «c.ts < a.ts»",
    ],
)
def test_bounds_that_can_never_hold_are_refused(marked: str) -> None:
    assert "no rows can fulfil this" in failing(marked).message


def test_bounds_at_the_very_end_of_a_window_can_hold() -> None:
    assert bound(f"SELECT a.k {AB} AND a.ts - b.ts >= INTERVAL 1 DAY").bounds


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (f"SELECT a.k {AB} AND «a.k»", "a condition is true or false, but this is int64"),
        (f"SELECT a.k {AB} AND «sum(a.v)» > 3", "an aggregate cannot stand in WHERE or ON"),
        (f"SELECT a.k FROM {A} JOIN {B} ON a.k = b.k AND «max(a.v)» = 1", "in WHERE or ON"),
        (
            f"SELECT a.k {AB} AND exists(a.tags, v -> v = «a.v»)",
            "a variable of this lambda hides the column 'v'",
        ),
    ],
)
def test_what_is_no_condition_is_refused(marked: str, message: str) -> None:
    assert message in failing(marked).message
