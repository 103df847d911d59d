"""What people see of our objects at a prompt and in a notebook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa
import pytest

import braid
from braid import cql
from braid.events import Journal
from braid.front.query import ContinuousQuery
from braid.front.run import Progress, Run
from braid.model.expression import Column

if TYPE_CHECKING:
    from braid.engine.sources import Sources

SCHEMA = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us", "UTC"))])
LONG = Path("/", *["a folder with <b> in its name"] * 20)


def query() -> ContinuousQuery:
    columns = ", ".join(f"a.k + {number} AS column{number}" for number in range(100))
    froms = "a [RANGE 2 SECONDS], b [RANGE 2 SECONDS]"
    text = f"SELECT {columns} FROM {froms} WHERE a.k = b.k"
    bound = cql.bind(text, dict.fromkeys("ab", SCHEMA), event_time="ts")
    types = {Column(stream, field.name): field.type for stream in (0, 1) for field in SCHEMA}
    for stream, ref in enumerate(bound.streams):
        types |= {Column(stream, derived.name): pa.int64() for derived in ref.derived}
    return ContinuousQuery(bound, types, "ts", 0, None, cast("Sources", None))


def run() -> Run:
    def nothing(*_: Any) -> None: ...

    return Run(Journal(), nothing, nothing, nothing)


SHOWN = [
    query(),
    query().plan(),
    run(),
    Progress(*[10**15] * 8, watermark="2024-01-01T00:00:00.000Z"),
    braid.files(LONG),
    braid.sinks.parquet(LONG),
    braid.sinks.callback(print),
    braid.sinks.memory(),
]


@pytest.mark.parametrize("each", SHOWN, ids=lambda each: type(each).__name__)
def test_a_line_is_short_and_a_notebook_gets_a_table(each: Any) -> None:
    assert len(repr(each)) <= 200
    assert repr(each).startswith(f"<{type(each).__name__} ")
    page = each._repr_html_()
    assert page.startswith("<table>")
    assert "<b>" not in page


def test_a_memory_sink_without_results_has_an_empty_table() -> None:
    sink = braid.sinks.memory()
    assert (sink.table().num_rows, sink.rows()) == (0, [])
    sink.schema = SCHEMA
    assert sink.table().schema == SCHEMA
