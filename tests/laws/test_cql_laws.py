"""What always holds of the query language: no text breaks it, and normal forms bind again."""

from __future__ import annotations

import re
from functools import partial

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from braid.cql import bind
from braid.model.errors import QueryError
from braid.model.query import Query
from tests.laws.cql_corpus import SCHEMAS, VALID, WORDS


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


@settings(deadline=None)
@given(mangled() | st.text())
@example("SELECT/*+a.*, v -- x\n SET FROM a [RANGE 1 DAY],\n  b [RANGE 2 DAYS] /* z */")
@example("SELECT a.k FROM a [RANGE 1 DAY] *, b [RANGE 1 DAY] WHERE a.k = b.k")
def test_any_text_is_a_query_or_an_error_that_points_into_it(text: str) -> None:
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


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


@st.composite
def named_queries(draw: st.DrawFn) -> tuple[str, dict[str, pa.Schema]]:
    """A query with whatever names, and streams to bind it to; the first column is the time."""
    columns, sources = draw(distinct(2, 5)), draw(distinct(1, 3))
    aliases = draw(distinct(2, 4))

    def column(alias: str) -> str:
        return f"{quoted(alias)}.{quoted(draw(st.sampled_from(columns[1:])))}"

    streams = ", ".join(
        f"{quoted(draw(st.sampled_from(sources)))} "
        f"[RANGE {draw(st.integers(0, 10**9))} SECONDS] AS {quoted(alias)}"
        for alias in aliases
    )
    first = column(aliases[0])
    equalities = " AND ".join(f"{first} = {column(alias)}" for alias in aliases[1:])
    select = ", ".join(
        f"{column(draw(st.sampled_from(aliases)))} AS {quoted(name)}"
        for name in draw(distinct(1, 4))
    )
    other = f"{column(aliases[0])} + {column(aliases[1])} < 3 AND -{column(aliases[-1])} > 1"
    types = [pa.timestamp("us"), *[pa.int64()] * (len(columns) - 1)]
    schema = pa.schema(list(zip(columns, types, strict=True)))
    text = f"SELECT {select} FROM {streams} WHERE {equalities} AND {other}"
    return text, dict.fromkeys(sources, schema)


@settings(deadline=None)
@given(named_queries())
def test_a_normal_form_keeps_any_name(made: tuple[str, dict[str, pa.Schema]]) -> None:
    text, schemas = made
    event_time = next(iter(schemas.values())).names[0]
    query = bind(text, schemas, event_time=event_time)
    assert bind(query.text, schemas, event_time=event_time) == query


leaves = st.sampled_from(
    ["a.k", "a.v", "b.k", "b.v", "a.ts", "b.ts", "a.s.x", "b.j", "1", "2.5", "1e3", "NULL"]
) | st.builds(lambda text: "'" + text.replace("\\", "\\\\").replace("'", "''") + "'", st.text())
grouped_leaves = st.sampled_from(
    ["a.k", "(a.v + b.v)", "(a.v+b.v)", "count(*)", "sum(b.v)", "3"]
)
grouped_leaves |= st.sampled_from(["avg(a.v * b.v)", "window_end", "upper(a.name)", "b.j"])

FORMS = [
    "{} + {}",
    "{} - {}",
    "{} * {}",
    "{} / {}",
    "({} % {})",
    "- {}",
    "({})",
    "({} = {})",
    "({} <> {})",
    "({} <= {})",
    "({} <=> {})",
    "({} AND {})",
    "({} OR {})",
    "({} OR {} OR {} AND {})",
    "(NOT {})",
    "({} || {})",
    "({} IS NULL)",
    "({} IS NOT NULL)",
    "({} IN ({}, {}))",
    "({} NOT IN ({}))",
    "({} BETWEEN {} AND {})",
    "({} NOT BETWEEN {} AND {})",
    "CASE WHEN {} THEN {} END",
    "CASE {} WHEN {} THEN {} WHEN {} THEN {} ELSE {} END",
    "if({}, {}, {})",
    "nullif({}, {})",
    "nvl2({}, {}, {})",
    "coalesce({}, {})",
    "greatest({}, {}, {})",
    "round({})",
    "concat({}, {})",
]


def _filled(form: str, parts: tuple[str, ...]) -> str:
    return form.format(*parts)


def expressions(of: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        filled = [
            st.tuples(*[inner] * form.count("{}")).map(partial(_filled, form)) for form in FORMS
        ]
        return st.one_of(filled)

    return st.recursive(of, larger, max_leaves=12)


@settings(deadline=None)
@given(st.lists(expressions(leaves), min_size=1, max_size=3), expressions(leaves))
def test_expressions_read_back_as_what_they_were_written_for(
    items: list[str], condition: str
) -> None:
    select = ", ".join(f"{item} AS c{number}" for number, item in enumerate(items))
    query = bind(
        f"SELECT {select} FROM a [RANGE 1 DAY], b [RANGE 1 DAY] "
        f"WHERE a.k = b.k AND a.j = b.j AND ({condition} OR a.v > b.v)",
        SCHEMAS,
        event_time="ts",
    )
    assert bind(query.text, SCHEMAS, event_time="ts") == query


@settings(deadline=None)
@given(expressions(grouped_leaves), expressions(grouped_leaves))
def test_expressions_over_groups_read_back_as_well(item: str, having: str) -> None:
    query = bind(
        f"SELECT {item} AS c, ({item}) + 1 FROM a [RANGE 1 DAY], b [RANGE 1 DAY] "
        "WHERE a.k = b.k GROUP BY a.k, a.v + b.v, upper(a.name), b.j "
        f"HAVING ({having}) IS NULL",
        SCHEMAS,
        event_time="ts",
    )
    assert bind(query.text, SCHEMAS, event_time="ts") == query
