"""What always holds of the query language: no text breaks it, and normal forms bind again."""

from __future__ import annotations

import re
from dataclasses import replace

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from braid.cql import bind
from braid.cql.normal import normal_text
from braid.model.errors import QueryError
from braid.model.query import OutputColumn, Query, StreamRef

SCHEMA = pa.schema(
    {
        "k": pa.int64(),
        "j": pa.int32(),
        "v": pa.float64(),
        "name": pa.string(),
        "ts": pa.timestamp("us"),
    }
)
SCHEMAS = {"a": SCHEMA, "b": SCHEMA, "Orders": SCHEMA.append(pa.field("Amount", pa.int64()))}

VALID = [
    "SELECT a.k, b.v AS vb FROM a [RANGE 10 SECONDS], b [RANGE 1.5 HOURS] WHERE a.k = b.k",
    "SELECT x.k, y.`v` v2, o.amount FROM a [RANGE 10 SECONDS] AS x, a AS y [RANGE 5 MINUTES], "
    "Orders [RANGE 0 DAYS] o WHERE (x.k = y.k) AND y.k = o.k AND (x.j = o.j AND o.j = y.j);",
    "SELECT a.*, Amount -- all\nFROM a [RANGE 1 DAY],\n  Orders [RANGE 2 DAYS] /* two */\n"
    'WHERE a."name" = Orders.name',
]
WORDS = re.findall(
    r"\S+",
    """
    SELECT FROM WHERE AND OR NOT AS RANGE ROWS SLIDE NOW UNBOUNDED SECONDS JOIN LEFT ON USING
    GROUP BY ORDER HAVING LIMIT UNION ALL DISTINCT WITH CASE WHEN END CAST EXISTS IN BETWEEN
    LIKE IS NULL TRUE INTERVAL OVER LATERAL VALUES UNNEST INSERT SET SHOW PIVOT TABLESAMPLE FOR
    a b k j v name x y o ts Orders 0 1 1.5 1e9 .5 0x1F 99999999999999999999 'text' x'1' é 😀 \0
    ( ) [ ] { } , . ; * = < > <=> != + - / % ' " ` -- /* */ /*+ @ $ # ? : :: -> || | & ^ ~ \\
    {{ }} {% %}
    """,
)


@st.composite
def mangled(draw: st.DrawFn) -> str:
    """A valid query after some deletions, doublings, swaps and insertions of tokens."""
    tokens = re.findall(r"\s+|\w+|.", draw(st.sampled_from(VALID)), re.DOTALL)
    for _ in range(draw(st.integers(1, 8))):
        here, there = draw(st.integers(0, len(tokens))), draw(st.integers(0, len(tokens)))
        lower, upper = min(here, there), max(here, there)
        match draw(
            st.sampled_from(["delete", "double", "swap", "insert", "insert", "replace"])
        ):
            case "delete":
                del tokens[here : here + draw(st.integers(1, 3))]
            case "double":
                tokens[there:there] = tokens[here : here + draw(st.integers(1, 8))]
            case "swap" if lower < upper < len(tokens):
                tokens[lower], tokens[upper] = tokens[upper], tokens[lower]
            case "insert":
                tokens.insert(
                    here,
                    draw(st.sampled_from(WORDS) | st.sampled_from(" \n\t\r") | st.characters()),
                )
            case _:
                tokens[here : here + 1] = [" ", draw(st.sampled_from(WORDS)), " "]
    return "".join(tokens)


def outcome(text: str) -> Query | QueryError:
    try:
        return bind(text, SCHEMAS, event_time="ts")
    except QueryError as error:
        return error


@given(mangled() | st.text())
@example("SELECT/*+a.*, v -- x\n SET FROM a [RANGE 1 DAY],\n  b [RANGE 2 DAYS] /* z */")
@example("SELECT a.k FROM a [RANGE 1 DAY] *, b [RANGE 1 DAY] WHERE a.k = b.k")
def test_any_text_is_a_query_or_an_error_that_points_into_it(text):
    found = outcome(text)
    if isinstance(found, Query):
        assert outcome(found.text) == found
    else:
        assert 0 <= found.lower <= found.upper <= len(text)
        assert str(found).startswith(found.message)


names = st.sampled_from(WORDS) | st.text(min_size=1)


def distinct(least: int, most: int) -> st.SearchStrategy[list[str]]:
    """Names that differ in more than case."""
    return st.lists(names, min_size=least, max_size=most, unique_by=str.lower)


@st.composite
def bound_queries(draw: st.DrawFn) -> tuple[Query, dict[str, pa.Schema]]:
    """Any query that there can be, with whatever names, and streams to bind it to."""
    columns, sources = draw(distinct(2, 5)), draw(distinct(1, 3))
    aliases = draw(distinct(2, 4))
    parts = draw(st.integers(1, len(columns) - 1))
    streams = tuple(
        StreamRef(
            draw(st.sampled_from(sources)),
            alias,
            draw(st.integers(0, 2**56)),
            tuple(draw(st.permutations(columns[1:]))[:parts]),
        )
        for alias in aliases
    )
    output = tuple(
        OutputColumn(
            name, draw(st.integers(0, len(streams) - 1)), draw(st.sampled_from(columns))
        )
        for name in draw(distinct(1, 4))
    )
    types = [pa.timestamp("us"), *[pa.int64()] * (len(columns) - 1)]
    schema = pa.schema(list(zip(columns, types, strict=True)))
    query = Query("", streams, output)
    return replace(query, text=normal_text(query)), dict.fromkeys(sources, schema)


@given(bound_queries())
def test_a_normal_form_binds_to_the_query_that_it_was_made_from(made):
    query, schemas = made
    event_time = next(iter(schemas.values())).names[0]
    assert bind(query.text, schemas, event_time=event_time) == query
