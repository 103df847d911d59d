"""`braid explain`: what a query would do, without starting Spark."""

from pathlib import Path
from typing import Annotated

import typer

from braid import cql
from braid.cli.plan_picture import draw_plan
from braid.cli.run import EventTimeOption, check_streams, event_times_of, query_text, streams_of
from braid.cql.event_time import time_names
from braid.engine.folder import arrow_schema
from braid.front.query import used_streams
from braid.model.paths import local_path
from braid.plan.explain import explain as explain_rounds
from braid.plan.lay_rounds import lay_rounds
from braid.plan.shape import read_shape, shape_text
from braid.spark.event_time import INSTANT, source_times


def explain(
    file: Annotated[
        Path | None, typer.Argument(metavar="[QUERY.SQL]", help="A file with the query.")
    ] = None,
    *,
    stream: Annotated[
        list[str],
        typer.Option(metavar="NAME=DIR", help="A folder of files, once per stream."),
    ],
    q: Annotated[
        str | None, typer.Option("-q", "--query", help="The query itself, in place of a file.")
    ] = None,
    event_time: EventTimeOption = None,
    plan: Annotated[
        str | None, typer.Option(metavar="TREE", help='Join tree, such as "((a b) c)".')
    ] = None,
    order: Annotated[
        str | None, typer.Option(metavar="ORDERS", help="Who probes whom first.")
    ] = None,
    draw: Annotated[
        Path | None,
        typer.Option(
            parser=local_path, metavar="FILE.svg", help="Draw the plan into this file."
        ),
    ] = None,
) -> None:
    """Show a query's plan: its tree, states, probes and shuffles, and what Spark computes.

    Nothing is run, and Spark is not started: the folders are only asked for their columns.
    """
    text = query_text(file, q)
    streams = streams_of(stream, files_per_batch=1)
    check_streams(text, streams)
    for each in streams.values():
        each.format()  # as a run does, also with one that the query does not name
    used = used_streams(text, streams)
    schemas = {name: arrow_schema(each) for name, each in streams.items() if name in used}
    given = event_times_of(event_time, streams)
    times = source_times(given, schemas, lambda source, sql: INSTANT)
    by_source = {name: each.time for name, each in times.items()}
    schemas = {name: times[name].with_arrow(schema) for name, schema in schemas.items()}
    query = cql.bind(text, schemas, event_time=by_source)
    shape = read_shape(query, shape_text(plan, order))
    names = time_names(tuple(by_source[each.source] for each in query.streams))
    rounds = lay_rounds(query, [shape], names)
    if draw is not None:
        draw_plan(query, rounds, draw)
    typer.echo(explain_rounds(query, rounds))
    computed = [time.sql for time in times.values() if time.sql and not time.time.wall]
    functions = cql.functions_of(query, computed)
    if functions:
        typer.echo(f"\nnot checked without Spark: {', '.join(functions)}")
    if draw is not None:
        typer.echo(f"\ndrawn in {draw}")
