"""The shape of a plan: a tree of m-way joins over streams.

`(a b c)` is one m-way join without intermediate results, `((a b) c)` keeps those of a and b,
and anything between is a hybrid. A tree is written in the streams' aliases, and holds their
numbers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations
from typing import TYPE_CHECKING

from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from braid.model.query import Key, Query

_TOKEN = re.compile(r"\s*(?:([()])|`((?:[^`]|``)+)`|([^\s()`]+))")
_FORM = 'write a plan as a tree of aliases, such as "((a b) c)"'


@dataclass(frozen=True, slots=True)
class Join:
    """An m-way join of streams and other joins."""

    children: tuple[Tree, ...]


Tree = int | Join
"""A stream's number, or a join."""


def leaves(tree: Tree) -> tuple[int, ...]:
    """The streams below a node, from left to right."""
    if isinstance(tree, int):
        return (tree,)
    return tuple(stream for child in tree.children for stream in leaves(child))


def joins(tree: Tree) -> Iterator[Join]:
    """All joins of a tree, children before parents."""
    if isinstance(tree, Join):
        for child in tree.children:
            yield from joins(child)
        yield tree


def show_tree(tree: Tree, aliases: Sequence[str]) -> str:
    """A tree as text, which `parse_tree` reads.

    >>> show_tree(Join((Join((0, 1)), 2)), ["a", "b", "my c"])
    '((a b) `my c`)'
    """
    if isinstance(tree, int):
        return _quoted(aliases[tree])
    return f"({' '.join(show_tree(child, aliases) for child in tree.children)})"


def _quoted(alias: str) -> str:
    plain = re.fullmatch(r"[^\s()`:;]+", alias)
    return alias if plain else "`" + alias.replace("`", "``") + "`"


def parse_tree(text: str, aliases: Sequence[str]) -> Tree:
    """Read a plan that names each of the streams once.

    >>> parse_tree("((a b) c)", ["a", "b", "c"])
    Join(children=(Join(children=(0, 1)), 2))
    """
    where = f"the plan {text!r}"
    nodes = parse_nodes(text, aliases, where)
    if len(nodes) != 1:
        raise BraidError(f"{where} is not one tree", hint=_FORM)
    named = leaves(nodes[0])
    for stream, alias in enumerate(aliases):
        if named.count(stream) != 1:
            verb, often = ("names", " more than once") if stream in named else ("lacks", "")
            raise BraidError(
                f"{where} {verb} the stream {alias!r}{often}",
                hint="a plan names every stream of the query exactly once",
            )
    return nodes[0]


def parse_nodes(text: str, aliases: Sequence[str], where: str) -> tuple[Tree, ...]:
    """Read trees that stand side by side; a stack and no recursion, so depth has no limit."""
    open_nodes: list[list[Tree]] = [[]]
    for token in _tokens(text, where):
        if token == "(":
            open_nodes.append([])
        elif token != ")":
            open_nodes[-1].append(_stream_named(token[1:], aliases, where))
        elif len(open_nodes) == 1:
            raise BraidError(f"{where} closes a bracket that it did not open", hint=_FORM)
        elif len(open_nodes[-1]) < 2:
            raise BraidError(f"{where} has a join of fewer than two inputs", hint=_FORM)
        else:
            open_nodes[-2].append(Join(tuple(open_nodes.pop())))
    if len(open_nodes) > 1:
        raise BraidError(f"{where} does not close a bracket", hint=_FORM)
    return tuple(open_nodes[0])


def _tokens(text: str, where: str) -> list[str]:
    tokens, at = [], 0
    while at < len(text.rstrip()):
        found = _TOKEN.match(text, at)
        if found is None:
            raise BraidError(f"{where} has a name without its closing `", hint=_FORM)
        bracket, quoted, plain = found.groups()
        # A quoted name is marked, so that no name can pass for a bracket.
        tokens.append(bracket or "=" + (plain or quoted.replace("``", "`")))
        at = found.end()
    return tokens


def _stream_named(alias: str, aliases: Sequence[str], where: str) -> int:
    """The number of a stream, by its alias in any case."""
    lower = [known.lower() for known in aliases]
    if alias.lower() in lower:
        return lower.index(alias.lower())
    near = get_close_matches(alias.lower(), lower, 1)
    hint = f"did you mean {aliases[lower.index(near[0])]!r}?" if near else None
    raise BraidError(
        f"{where} names {alias!r}, which is no stream of the query",
        hint=hint or f"the streams are {', '.join(aliases)}",
    )


def all_trees(streams: Sequence[int]) -> Iterator[Tree]:
    """Every tree over some streams, children in the order of their first streams.

    >>> len(list(all_trees([0, 1, 2]))), len(list(all_trees([0, 1, 2, 3])))
    (4, 26)
    """
    if len(streams) == 1:
        yield streams[0]
        return
    for parts in _partitions(list(streams)):
        if len(parts) > 1:
            yield from (Join(children) for children in _products(parts))


def _products(parts: Sequence[list[int]]) -> Iterator[tuple[Tree, ...]]:
    if not parts:
        yield ()
        return
    for first in all_trees(parts[0]):
        yield from ((first, *rest) for rest in _products(parts[1:]))


def _partitions(streams: list[int]) -> Iterator[list[list[int]]]:
    """All ways to part a list into non-empty sets."""
    if not streams:
        yield []
        return
    first, *others = streams
    for size in range(len(others) + 1):
        for chosen in combinations(others, size):
            left = [stream for stream in others if stream not in chosen]
            yield from ([[first, *chosen], *parts] for parts in _partitions(left))


def default_tree(query: Query) -> Tree:
    """One m-way join per key, in the order in which the query names the keys.

    Rows of a history leave it when others come, which intermediate results would not notice:
    where there is one, all streams meet in a single join.
    """
    streams = range(len(query.streams))
    if any(stream.history for stream in query.streams):
        return Join(tuple(streams))
    nodes: list[Tree] = list(streams)
    for key in query.keys:
        touched = [node for node in nodes if connects(key, node)]
        if len(touched) > 1:
            nodes = [node for node in nodes if node not in touched]
            nodes.append(Join(tuple(sorted(touched, key=leaves))))
    assert len(nodes) == 1, "the keys of a bound query connect its streams"
    return nodes[0]


def check_tree(query: Query, tree: Tree) -> None:
    """Refuse a tree that keeps intermediate results of a history."""
    root = tree.children if isinstance(tree, Join) else ()
    for number, stream in enumerate(query.streams):
        if stream.history and number not in root:
            raise BraidError(
                f"the plan keeps intermediate results of {stream.alias!r}, whose rows leave "
                "its history when others come",
                hint=f"make {stream.alias!r} an input of the outermost join",
            )


def connects(key: Key, node: Tree) -> bool:
    """Whether some stream below a node takes part in a key."""
    return any(stream in key.streams for stream in leaves(node))
