from __future__ import annotations

import pyarrow as pa
import pytest

from braid.join.wire import MOST_STREAMS, Wire, lay_out
from braid.model.errors import BraidError
from braid.model.query import OutputColumn, Query, StreamRef

TIME = pa.timestamp("us", "UTC")


def laid_out(key: pa.DataType, *payloads: dict[str, pa.DataType]) -> Wire:
    """The wire of a join of streams with these payloads, all of which are asked for."""
    refs = tuple(StreamRef(f"s{n}", f"s{n}", 0, ("k",)) for n in range(len(payloads)))
    output = tuple(
        OutputColumn(f"{name}{n}", n, name)
        for n, payload in enumerate(payloads)
        for name in payload
    )
    schemas = {
        f"s{n}": pa.schema({"k": key, "ts": TIME, **payload})
        for n, payload in enumerate(payloads)
    }
    return lay_out(Query("", refs, output), schemas, "ts")


def test_columns_of_one_type_share_a_slot_across_streams() -> None:
    wire = laid_out(pa.int64(), {"v": pa.int64()}, {"w": pa.int64()})
    assert wire.slots == (pa.int64(),)
    assert [layout.slots for layout in wire.streams] == [(0,), (0,)]


def test_columns_of_one_stream_never_share_a_slot() -> None:
    wire = laid_out(pa.int64(), {"v": pa.int64(), "w": pa.int64()}, {"x": pa.int64()})
    assert wire.slots == (pa.int64(), pa.int64())
    assert [layout.slots for layout in wire.streams] == [(0, 1), (0,)]


def test_columns_of_other_types_get_slots_of_their_own() -> None:
    wire = laid_out(
        pa.int64(),
        {"v": pa.int64(), "name": pa.string()},
        {"name": pa.string(), "price": pa.float64(), "v": pa.int64()},
    )
    assert wire.slots == (pa.int64(), pa.string(), pa.float64())
    assert [layout.slots for layout in wire.streams] == [(0, 1), (1, 2, 0)]


def test_the_union_is_as_wide_as_its_widest_stream() -> None:
    wide = {f"v{i}": pa.int64() for i in range(5)}
    wire = laid_out(pa.int64(), {"v": pa.int64()}, wide, {"w": pa.int64(), "x": pa.int64()})
    assert len(wire.slots) == 5


def test_a_key_that_is_its_hash_takes_no_slot() -> None:
    wire = laid_out(pa.int32(), {"v": pa.string()}, {"v": pa.string()})
    assert wire.exact
    assert [layout.names for layout in wire.streams] == [("v",), ("v",)]


def test_a_key_that_must_be_compared_is_sent_and_stored_first() -> None:
    wire = laid_out(pa.string(), {"v": pa.string()}, {})
    assert not wire.exact
    assert [layout.names for layout in wire.streams] == [("k", "v"), ("k",)]


def test_the_event_time_and_a_key_that_is_asked_for_take_no_further_slot() -> None:
    wire = laid_out(pa.string(), {"k": pa.string(), "ts": TIME}, {"ts": TIME})
    assert [layout.names for layout in wire.streams] == [("k",), ("k",)]
    assert wire.time_types == (TIME, TIME)


def test_stored_columns_follow_hash_and_time_in_a_run() -> None:
    schema = laid_out(pa.string(), {"v": pa.int64()}, {}).streams[0].schema()
    assert schema.names == ["hash", "time", "column k", "column v"]
    assert not schema.field("hash").nullable


def test_more_streams_than_there_are_tags_are_refused_with_the_limit() -> None:
    laid_out(pa.int64(), *[{}] * MOST_STREAMS)
    with pytest.raises(BraidError, match=f"at most {MOST_STREAMS} streams"):
        laid_out(pa.int64(), *[{}] * (MOST_STREAMS + 1))
