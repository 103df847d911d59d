from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from braid.model.errors import PlanTooWide
from braid.model.expression import Column
from braid.model.query import Key, Output, Query, StreamRef
from braid.plan.join_plan import make_plan
from braid.plan.wire import LATEST_US, MOST_PORTS, TAG_BITS, TAGS, Layout, Wire
from tests.unit.state.making import equal_join

TIME = pa.timestamp("us", "UTC")


def laid_out(key: pa.DataType, *payloads: dict[str, pa.DataType]) -> tuple[Wire, list[Layout]]:
    """The wire of a join of streams with these payloads, all asked for; and their layouts."""
    streams = range(len(payloads))
    refs = tuple(StreamRef(f"s{n}", f"s{n}", 0) for n in streams)
    output = tuple(
        Output(f"{name}{n}", Column(n, name)) for n in streams for name in payloads[n]
    )
    types = {
        Column(n, name): kind
        for n in streams
        for name, kind in {"k": key, "ts": TIME, **payloads[n]}.items()
    }
    keys = (Key(tuple(Column(n, "k") for n in streams)),)
    plan = make_plan(Query("", refs, keys, output), types, "ts", groups=1, lateness_us=0)
    (a_round,) = plan.rounds.rounds
    return plan.wire, [plan.wire.layout(port) for port in a_round.ports]


def names(layouts: list[Layout]) -> list[tuple[str, ...]]:
    return [tuple(column.column for column in layout.columns) for layout in layouts]


def test_columns_of_one_type_share_a_slot_across_streams() -> None:
    wire, layouts = laid_out(pa.int64(), {"v": pa.int64()}, {"w": pa.int64()})
    assert wire.slots == (pa.int64(),)
    assert [layout.slots for layout in layouts] == [(0,), (0,)]


def test_columns_of_one_stream_never_share_a_slot() -> None:
    wire, layouts = laid_out(pa.int64(), {"v": pa.int64(), "w": pa.int64()}, {"x": pa.int64()})
    assert wire.slots == (pa.int64(), pa.int64())
    assert [layout.slots for layout in layouts] == [(0, 1), (0,)]


def test_columns_of_other_types_get_slots_of_their_own() -> None:
    wire, layouts = laid_out(
        pa.int64(),
        {"v": pa.int64(), "name": pa.string()},
        {"name": pa.string(), "price": pa.float64(), "v": pa.int64()},
    )
    assert wire.slots == (pa.int64(), pa.string(), pa.float64())
    assert [layout.slots for layout in layouts] == [(0, 1), (1, 2, 0)]


def test_the_union_is_as_wide_as_its_widest_stream() -> None:
    wide = {f"v{i}": pa.int64() for i in range(5)}
    wire, _ = laid_out(pa.int64(), {"v": pa.int64()}, wide, {"w": pa.int64(), "x": pa.int64()})
    assert len(wire.slots) == 5


def test_a_key_that_is_its_hash_takes_no_slot() -> None:
    wire, layouts = laid_out(pa.int32(), {"v": pa.string()}, {"v": pa.string()})
    assert wire.exact == (True,)
    assert names(layouts) == [("v",), ("v",)]


def test_a_key_that_must_be_compared_is_sent_and_stored_first() -> None:
    wire, layouts = laid_out(pa.string(), {"v": pa.string()}, {})
    assert wire.exact == (False,)
    assert names(layouts) == [("k", "v"), ("k",)]


def test_the_event_time_and_a_key_that_is_asked_for_take_no_further_slot() -> None:
    _, layouts = laid_out(pa.string(), {"k": pa.string(), "ts": TIME}, {"ts": TIME})
    assert names(layouts) == [("k",), ("k",)]


def test_stored_columns_follow_hash_and_time_in_a_run() -> None:
    _, layouts = laid_out(pa.string(), {"v": pa.int64()}, {})
    schema = layouts[0].schema()
    assert schema.names == ["hash", "time", "column 0 k", "column 0 v"]
    assert not schema.field("hash").nullable


def test_more_ports_than_there_are_tags_are_refused_with_the_limit() -> None:
    plan, trees = equal_join(25, 1000), MOST_PORTS // 25
    assert plan.most_trees == trees
    wide = plan.replanned(plan.texts * trees)
    assert len(wide.rounds.rounds[0].sent) == MOST_PORTS
    with pytest.raises(PlanTooWide, match=f"takes 150 kinds of rows, and {MOST_PORTS} is the"):
        plan.replanned(plan.texts * (trees + 1))


def test_tags_leave_event_times_the_range_that_they_had() -> None:
    assert LATEST_US == 1 << 56
    for at in (LATEST_US - 1, 1 - LATEST_US):
        packed = np.array([at], np.int64) << TAG_BITS | TAGS
        assert packed >> TAG_BITS == at
        assert packed & TAGS == TAGS
