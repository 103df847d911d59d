"""The examples of the chapter on the query language bind, or fail, as it says."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow as pa
import pytest

from braid.cql import bind
from braid.model.errors import QueryError

CHAPTER = (Path(__file__).parents[2] / "docs" / "query-language.md").read_text()

TYPES = {
    "BIGINT": pa.int64(),
    "STRING": pa.string(),
    "DOUBLE": pa.float64(),
    "TIMESTAMP": pa.timestamp("us", tz="UTC"),
    "ARRAY<STRING>": pa.list_(pa.string()),
}


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", CHAPTER, re.DOTALL)


def streams() -> dict[str, pa.Schema]:
    """The streams as the chapter's first table has them."""
    found = re.findall(r"^\| `(\w+)` \| `(.* TIMESTAMP)` \|$", CHAPTER, re.MULTILINE)
    pairs = {
        name: [column.split() for column in columns.split(", ")] for name, columns in found
    }
    return {
        name: pa.schema([(column, TYPES[kind]) for column, kind in columns])
        for name, columns in pairs.items()
    }


@pytest.mark.parametrize("text", blocks("sql"))
def test_an_example_binds_and_so_does_its_normal_form(text: str) -> None:
    query = bind(text, streams(), event_time="at")
    assert bind(query.text, streams(), event_time="at") == query


@pytest.mark.parametrize("text", blocks("sql fails"))
def test_an_example_of_what_is_refused_is_refused_with_a_cure(text: str) -> None:
    with pytest.raises(QueryError) as caught:
        bind(text, streams(), event_time="at")
    assert caught.value.hint


def test_the_example_from_python_binds(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = blocks("python")
    exec(code)
    text = capsys.readouterr().out
    assert bind(text, streams(), event_time="at").grouping is not None


def test_there_are_three_streams_and_many_examples() -> None:
    assert list(streams()) == ["orders", "payments", "clicks"]
    assert len(blocks("sql")) > 12
