"""DuckDB and nested loops give the same answers, and random queries are worth asking."""

from __future__ import annotations

from collections import Counter
from itertools import chain

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from braid.model.expression import columns_of
from tests.oracle.answers import counted_rows, prepared
from tests.oracle.nested_loops import nested_loops
from tests.oracle.queries import EVENT_TIME, SHAPES, STYLES, Case, cases

QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(QUICK, max_examples=300)
@given(case=cases(partition_by_key=False))
def test_duckdb_agrees_with_nested_loops(case: Case) -> None:
    closed_us = case.closed_us if case.query.grouping else None
    rows = nested_loops(case.query, case.rows, EVENT_TIME, closed_us=closed_us)
    assert case.expected() == counted_rows(rows, case.query)


def test_most_random_queries_have_results() -> None:
    asked: Counter[str] = Counter()
    answered: Counter[str] = Counter()

    @settings(QUICK, max_examples=250, derandomize=True, phases=[Phase.generate])
    @given(case=cases())
    def ask(case: Case) -> None:
        style = "plain"
        if case.query.grouping:
            style = "grouped"
        elif any(ref.history for ref in case.query.streams):
            style = "history"
        some = bool(case.expected())
        for about in ("all", style, f"{len(case.query.streams)} streams"):
            asked[about] += 1
            answered[about] += some

    ask()
    shares = {about: answered[about] / asked[about] for about in sorted(asked)}
    print({about: f"{share:.0%}" for about, share in shares.items()})  # noqa: T201 (with -s)
    assert shares["all"] > 0.8
    assert min(shares.values()) > 0.6
    assert set(shares) == {"all", *STYLES, *(f"{n} streams" for n in range(2, 6))}


@pytest.mark.parametrize("shape", SHAPES)
@settings(QUICK, max_examples=30)
@given(data=st.data())
def test_keys_connect_all_streams(shape: str, data: st.DataObject) -> None:
    case = data.draw(cases(shapes=[shape]))
    connected = {0}
    for _ in case.query.keys:
        for key in case.query.keys:
            if key.streams & connected:
                connected |= key.streams
    assert connected == set(range(len(case.query.streams)))
    for key in case.query.keys:
        assert len(key.streams) == len(key.columns) >= 2


@settings(QUICK, max_examples=100)
@given(case=cases())
def test_every_case_keeps_its_promises(case: Case) -> None:
    whole = [table.num_rows for table in case.rows]
    parts = [
        sum(batch[n].num_rows for batch in case.batches())
        for n in range(len(case.query.streams))
    ]
    assert parts == whole
    for number, ref in enumerate(case.query.streams):
        names = set(prepared(ref, case.rows[number]).column_names)
        keys = chain.from_iterable(key.columns for key in case.query.keys)
        needed = chain(keys, *map(columns_of, [*case.query.conditions, *case.query.results()]))
        assert {c.column for c in needed if c.stream == number} <= names
        newest = None
        for moment in case.rows[number].column(EVENT_TIME).cast("int64").to_pylist():
            if moment is not None:
                assert newest is None or moment >= newest - case.lateness_us
                newest = max(moment, newest or moment)
