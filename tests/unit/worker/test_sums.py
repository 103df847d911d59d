"""Sums are what Python's integers say, or an error; they never wrap round."""

from __future__ import annotations

from decimal import Context
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid import cql
from braid.model.errors import BraidError
from braid.model.expression import Column
from braid.plan.join_plan import JoinPlan, make_plan
from braid.worker.grouping import closing_results, combine
from braid.worker.sums import fit, widened
from tests.driven import Driven

if TYPE_CHECKING:
    from pathlib import Path

S = 1_000_000
TIME = pa.timestamp("us", "UTC")
WHOLE, DECIMAL = pa.int64(), pa.decimal128(38, 2)
LIMITS = {WHOLE: 2**63, DECIMAL: 10**38}
SWEPT, SPREAD = "sum(a.v) AS q", "sum(a.v) AS q, min(b.k) AS k"

LAW = settings(deadline=None)  # the first call may compile

Rows = list[tuple[int, int, int, int | None]]


def grouped(select: str, kind: pa.DataType) -> JoinPlan:
    """A plan that shows the groups of a.g each second, over windows of 10."""
    schemas = {
        name: pa.schema([("k", pa.int64()), ("g", pa.int64()), ("v", kind), ("ts", TIME)])
        for name in "ab"
    }
    query = cql.bind(
        f"SELECT a.g, {select} FROM a [RANGE 10 SECONDS SLIDE 1 SECOND], "
        "b [RANGE 10 SECONDS SLIDE 1 SECOND] WHERE a.k = b.k GROUP BY a.g",
        schemas,
        event_time="ts",
    )
    types = {Column(n, f.name): f.type for n, name in enumerate("ab") for f in schemas[name]}
    return make_plan(query, types, "ts", groups=4, lateness_us=0, plans=[None])


PLANS = {(select, kind): grouped(select, kind) for select in (SWEPT, SPREAD) for kind in LIMITS}


def numbers(values: list[int | None], kind: pa.DataType) -> pa.Array:
    """Integers as they are, or as hundredths."""
    if kind == DECIMAL:
        exact = Context(prec=40)
        return pa.array(
            [v if v is None else exact.create_decimal(v).scaleb(-2, exact) for v in values],
            kind,
        )
    return pa.array(values, kind)


def run(plan: JoinPlan, kind: pa.DataType, rows: Rows) -> pa.RecordBatch:
    """Partial aggregates: (group, first second, further seconds, sum)."""
    number = plan.rounds.grouped
    assert number is not None
    schema = plan.wire.layout(plan.rounds.states[number]).schema()
    group, first, more, total = ([row[place] for row in rows] for place in range(4))
    last = [f + m for f, m in zip(first, more, strict=True)]
    columns = [
        pa.array([0] * len(rows)),
        pa.array([s * S for s in last]),
        pa.array([s * S for s in first]),
        pa.array(group, pa.int64()),
        numbers(total, kind),
        *[pa.array([1] * len(rows))] * (len(schema) - 5),
    ]
    typed = [c.cast(f.type) for c, f in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(typed, schema=schema)


def sums(places: dict[tuple[int, ...], list[int | None]]) -> dict[tuple[int, ...], int | None]:
    known = {place: [v for v in found if v is not None] for place, found in places.items()}
    return {place: sum(found) if found else None for place, found in known.items()}


def unscaled(values: list[object], kind: pa.DataType) -> list[int | None]:
    exact = Context(prec=40)
    scale = 2 if kind == DECIMAL else 0
    return [
        None if v is None else int(exact.create_decimal(v).scaleb(scale, exact)) for v in values
    ]


def fits(value: int | None, kind: pa.DataType) -> bool:
    limit = LIMITS[kind]
    return value is None or (-limit if kind == WHOLE else 1 - limit) <= value < limit


def rows_near(limit: int) -> st.SearchStrategy[Rows]:
    edge = st.builds(
        lambda share, off: limit // share - off, st.integers(1, 5), st.integers(1, 3)
    )
    value = edge | edge.map(lambda v: -v) | st.integers(-3, 3) | st.none()
    row = st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(0, 4), value)
    return st.lists(row, min_size=1, max_size=10)


kinds_and_rows = st.sampled_from(list(LIMITS)).flatmap(
    lambda kind: st.tuples(st.just(kind), rows_near(LIMITS[kind]))
)


@pytest.mark.parametrize("select", [SWEPT, SPREAD])
@LAW
@given(given_rows=kinds_and_rows)
def test_groups_show_exact_sums_or_an_error(
    select: str, given_rows: tuple[pa.DataType, Rows]
) -> None:
    kind, rows = given_rows
    plan = PLANS[select, kind]
    places: dict[tuple[int, ...], list[int | None]] = {}
    for group, first, more, value in rows:
        for second in range(first, first + more + 1):
            places.setdefault((second, group), []).append(value)
    expected = sums(places)

    def shown() -> list[tuple[int, int | None]]:
        tables = closing_results(plan, [run(plan, kind, rows)], None, 20 * S)
        return [
            pair
            for table in tables
            for pair in zip(
                table["g"].to_pylist(), unscaled(table["q"].to_pylist(), kind), strict=True
            )
        ]

    if all(fits(value, kind) for value in expected.values()):
        assert sorted(shown(), key=repr) == sorted(
            ((group, value) for (_, group), value in expected.items()), key=repr
        )
    else:
        with pytest.raises(BraidError, match=r"a sum of a\.v does not fit"):
            shown()


@LAW
@given(given_rows=kinds_and_rows)
def test_equal_partial_sums_combine_exactly_or_to_an_error(
    given_rows: tuple[pa.DataType, Rows],
) -> None:
    kind, rows = given_rows
    plan = PLANS[SWEPT, kind]
    places: dict[tuple[int, ...], list[int | None]] = {}
    for group, first, more, value in rows:
        places.setdefault((group, first, first + more), []).append(value)
    expected = sums(places)

    def combined() -> dict[tuple[int, ...], int | None]:
        made = combine(plan, run(plan, kind, rows), None)
        _, last, first, group, total = (column.to_pylist() for column in made.columns)
        found = unscaled(total, kind)
        return {
            (g, f // S, t // S): v for g, f, t, v in zip(group, first, last, found, strict=True)
        }

    if all(fits(value, kind) for value in expected.values()):
        assert combined() == expected
    else:
        with pytest.raises(BraidError, match=r"a sum of a\.v does not fit"):
            combined()


def test_the_running_sum_of_many_groups_may_wrap_round() -> None:
    plan, big = PLANS[SWEPT, WHOLE], 2**63 - 1
    rows: Rows = [(group, group % 7, group % 3, big - group) for group in range(1000)]
    rows += [(group, group % 7, group % 3, -group) for group in range(1000)]
    shown = pa.concat_tables(
        closing_results(plan, [run(plan, WHOLE, rows)], None, 20 * S)
    ).to_pylist()
    assert {row["g"]: row["q"] for row in shown} == {g: big - 2 * g for g in range(1000)}


@pytest.mark.parametrize("select", [SWEPT, SPREAD, "avg(a.v) AS q"])
@pytest.mark.parametrize(
    ("kind", "value", "cure"),
    [(WHOLE, 2**62, "DECIMAL"), (DECIMAL, 10**38 - 1, "DOUBLE")],
)
@pytest.mark.parametrize("apart", [False, True])
def test_a_sum_that_does_not_fit_is_an_error_that_names_the_cure(
    tmp_path: Path, select: str, kind: pa.DataType, value: int, cure: str, apart: bool
) -> None:
    engine = Driven(grouped(select, kind), tmp_path, 1)
    moments = [0, S if apart else 0]
    table = pa.table(
        {
            "k": [1, 1],
            "g": [1, 1],
            "v": numbers([value] * 2, kind),
            "ts": pa.array(moments, pa.int64()).cast(TIME),
        }
    )

    def evaluate() -> None:
        engine.batch({0: table, 1: table.slice(1)})
        engine.batch({}, at_end=True)

    with pytest.raises(BraidError, match=r"overflow: a sum of a\.v does not fit") as error:
        evaluate()
    assert cure in str(error.value.hint)
    engine.checkpoint.close()


@pytest.mark.parametrize("kind", LIMITS)
def test_small_values_are_summed_as_they_are(kind: pa.DataType) -> None:
    values = pa.chunked_array([numbers(each, kind) for each in ([], [1, None, -5], [None])])
    assert fit(values)
    assert widened(values) is values
    assert fit(values.slice(4))


@pytest.mark.parametrize("kind", LIMITS)
def test_values_need_a_wider_type_where_all_together_might_not_fit(kind: pa.DataType) -> None:
    half = LIMITS[kind] // 2
    for sign in (1, -1):
        assert not fit(pa.chunked_array([numbers([sign * half] * 3, kind)]))
        assert fit(pa.chunked_array([numbers([sign * (half // 4)] * 3, kind)]))
