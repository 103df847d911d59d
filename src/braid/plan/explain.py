"""A plan in words: the tree, what is computed where, the states, the probes, the shuffles."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.model.duration import format_duration
from braid.model.expression import Call, Column, Expression, Literal
from braid.model.query import UNBOUNDED_US
from braid.plan.names import key_name, origin_name, state_names
from braid.plan.tree import Join, Tree, joins, leaves, show_tree
from braid.plan.windows import kept_us

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.model.query import Query
    from braid.plan.rounds import Round, Rounds


def explain(query: Query, rounds: Rounds) -> str:
    """How a query is executed, as text of several lines."""
    aliases = [stream.alias for stream in query.streams]
    (tree,) = rounds.trees
    parts = [
        [query.text],
        [
            f"plan {show_tree(tree, aliases)}",
            node_label(query, rounds, tree),
            *_tree(query, rounds, tree),
        ],
        ["states", *(f"  {line}" for line in _states(query, rounds))],
        ["probes", *(f"  {line}" for line in probe_lines(query, rounds))],
        ["shuffles", *(f"  {line}" for line in shuffle_lines(query, rounds))],
        _groups(query, rounds, aliases),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _tree(query: Query, rounds: Rounds, node: Tree, before: str = "") -> Iterator[str]:
    """The lines below the first of a node."""
    assert isinstance(node, Join), "a query joins at least two streams"
    for place, child in enumerate(node.children):
        last = place == len(node.children) - 1
        lines = [node_label(query, rounds, child), *node_details(query, child)]
        yield f"{before}{'└─ ' if last else '├─ '}{lines[0]}"
        below = f"{before}{'   ' if last else '│  '}"
        yield from (f"{below}  {line}" for line in lines[1:])
        if isinstance(child, Join):
            yield from _tree(query, rounds, child, below)


def node_label(query: Query, rounds: Rounds, node: Tree) -> str:
    """A node in a few words."""
    if isinstance(node, int):
        stream = query.streams[node]
        name = (
            stream.alias
            if stream.alias == stream.source
            else f"{stream.alias} = {stream.source}"
        )
        return f"{name} {_window(query, node)}"
    number = rounds.joins.index(node)
    steps = (
        step
        for a_round in rounds.rounds
        for segment in a_round.segments
        if segment.join == number
        for step in segment.steps
    )
    keys = {rounds.spaces[rounds.states[step.state].space].keys for step in steps}
    return f"join on {' and '.join(sorted(key_name(query, key) for key in keys))}"


def _window(query: Query, number: int) -> str:
    stream = query.streams[number]
    if stream.history is not None:
        columns = ", ".join(stream.history.partition)
        return f"[PARTITION BY {columns} ROWS {stream.history.rows}]"
    if stream.window_us >= UNBOUNDED_US:
        return "[UNBOUNDED]"
    return f"[RANGE {format_duration(stream.window_us).upper()}]"


def node_details(query: Query, node: Tree) -> list[str]:
    """What Spark does to a stream before the split, and how long its rows are kept."""
    if not isinstance(node, int):
        return []
    stream, lines = query.streams[node], []
    if stream.filter is not None:
        lines.append(f"only where {stream.filter}")
    lines += [f"computes {derived.sql}" for derived in stream.derived]
    kept = kept_us(query)[node]
    if kept < min(stream.window_us, UNBOUNDED_US):
        lines.append(f"kept for {format_duration(kept)}, by bounds between event times")
    return lines


def _states(query: Query, rounds: Rounds) -> Iterator[str]:
    names = state_names(query, rounds)
    width = max(map(len, names))
    for number, (name, state) in enumerate(zip(names, rounds.states, strict=True)):
        if number == rounds.grouped:
            held = f"by group: {', '.join(_grouped(query))}"
        else:
            held = ", ".join(_column(query, column) for column in state.relation.columns)
        yield f"{name:{width}}  holds {held or 'nothing but its key'}"


def _grouped(query: Query) -> Iterator[str]:
    """What is kept of a group: its keys and its aggregates."""
    assert query.grouping is not None, "the query groups"
    yield from (show_expression(query, key) for key in query.grouping.keys)
    for each in query.grouping.aggregates:
        value = "*" if each.value is None else show_expression(query, each.value)
        yield f"{each.function}({value})"


def _column(query: Query, column: Column) -> str:
    if column.stream < 0:
        return column.column
    return f"{query.streams[column.stream].alias}.{column.column}"


def probe_lines(query: Query, rounds: Rounds) -> Iterator[str]:
    """Who probes which states in which order, and what else is checked on the way."""
    for number in range(len(rounds.joins)):
        yield from _cascades(query, rounds, number)
    steps = (s for r in rounds.rounds for segment in r.segments for s in segment.steps)
    checks = dict.fromkeys(show_expression(query, c) for s in steps for c in s.conditions)
    if checks:
        yield f"as early as their columns are there: {'; '.join(checks)}"


def node_probes(query: Query, rounds: Rounds, node: Tree) -> list[str]:
    """Who probes which states in which order within a join; none for a stream."""
    if not isinstance(node, Join):
        return []
    return list(_cascades(query, rounds, rounds.joins.index(node)))


def _cascades(query: Query, rounds: Rounds, join: int) -> Iterator[str]:
    names = state_names(query, rounds)
    cascades: dict[int, list[str]] = {}
    for a_round in rounds.rounds:
        for segment in (each for each in a_round.segments if each.join == join):
            steps = cascades.setdefault(segment.origin, [])
            if steps:
                steps.append("shuffle")
            steps += [names[step.state] for step in segment.steps]
    for origin, steps in sorted(cascades.items()):
        yield " → ".join([origin_name(query, rounds, join, origin), *steps])


def node_shuffles(rounds: Rounds, node: Tree) -> str:
    """In which rounds a node's rows are shuffled on their way to the joins above."""
    streams = set(leaves(node))
    numbers = [
        str(number)
        for number, a_round in enumerate(rounds.rounds, start=1)
        if any(set(p.relation.streams) == streams and not p.made for p in a_round.ports)
    ]
    if not numbers:
        return "no shuffle"
    return f"shuffled in round{'s' if len(numbers) > 1 else ''} {' and '.join(numbers)}"


def shuffle_lines(query: Query, rounds: Rounds) -> Iterator[str]:
    """What is shuffled by what, round by round."""
    for number, a_round in enumerate(rounds.rounds, start=1):
        yield f"round {number}: {', '.join(_ports(query, rounds, a_round))}"


def _ports(query: Query, rounds: Rounds, a_round: Round) -> Iterator[str]:
    aliases = [stream.alias for stream in query.streams]
    ports = [port for port in a_round.ports if not port.made]
    for space in sorted({port.space for port in ports}):
        who = dict.fromkeys(
            _relation(aliases, port.relation.streams) for port in ports if port.space == space
        )
        if rounds.spaces[space].cluster is None:
            yield "partial aggregates by group"
        else:
            yield f"{' and '.join(who)} by {key_name(query, rounds.spaces[space].keys)}"


def _relation(aliases: Sequence[str], streams: Sequence[int]) -> str:
    names = " ".join(aliases[stream] for stream in streams)
    return f"({names})" if len(streams) > 1 else names


def _groups(query: Query, rounds: Rounds, aliases: Sequence[str]) -> list[str]:
    grouping = query.grouping
    if grouping is None:
        return []
    home = "after a shuffle" if rounds.grouped_port is not None else "where they are joined"
    by, every = grouping_lines(query)
    return [f"{by}, {home}, {every}"]


def grouping_lines(query: Query) -> list[str]:
    """What a query with GROUP BY groups its results by, and how often it shows them."""
    grouping = query.grouping
    assert grouping is not None, "the query groups"
    keys = ", ".join(show_expression(query, key) for key in grouping.keys)
    return [f"GROUP BY {keys or 'nothing'}", f"every {format_duration(grouping.slide_us)}"]


def show_expression(query: Query, expression: Expression) -> str:
    """An expression in a readable form."""
    match expression:
        case Column():
            return _column(query, expression)
        case Literal(value=value):
            return repr(value) if isinstance(value, str) else str(value)
        case Call(function=function, arguments=arguments):
            shown = [show_expression(query, argument) for argument in arguments]
            if len(shown) == 2 and not function[0].isalpha():
                return f"{shown[0]} {function} {shown[1]}"
            return f"{function}({', '.join(shown)})"


def tree_levels(tree: Tree) -> dict[Tree, tuple[float, int]]:
    """A place for every node in a picture: streams side by side, joins above their inputs."""
    places: dict[Tree, tuple[float, int]] = {
        stream: (float(place), 0) for place, stream in enumerate(leaves(tree))
    }
    for join in joins(tree):
        below = [places[child] for child in join.children]
        across = sum(x for x, _ in below) / len(below)
        places[join] = across, 1 + max(level for _, level in below)
    return places
