"""Probe orders as text: `a: b c; b: a c; (c d): a b`.

Before the colon stands a child of a join, behind it the other children of that join, in the
order in which rows of the first probe them. Children without an order get one from the planner.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from braid.model.errors import BraidError
from braid.plan.tree import Join, Tree, joins, leaves, parse_nodes, show_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.plan.rounds import Orders, Rounds

_QUOTED = re.compile(r"(`[^`]*`)")
_FORM = 'write orders as "a: b c; b: a c": a stream, and the others as it probes them'


def parse_orders(text: str, tree: Tree, aliases: Sequence[str]) -> Orders:
    """Read the probe orders of a plan's joins.

    >>> parse_orders("c: b a", Join((0, 1, 2)), ["a", "b", "c"])
    {2: (1, 0)}
    """
    orders: dict[Tree, tuple[Tree, ...]] = {}
    siblings = {child: join for join in joins(tree) for child in join.children}
    for entry in filter(str.strip, _parted(text, ";")):
        who, *whom = _parted(entry, ":")
        first = parse_nodes(who, aliases, f"the order {entry.strip()!r}")
        if len(whom) != 1 or len(first) != 1:
            raise BraidError(f"{entry.strip()!r} is no probe order", hint=_FORM)
        (origin,) = first
        join = siblings.get(origin)
        if join is None:
            name = show_tree(origin, aliases)
            raise BraidError(
                f"{name} is no input of a join in the plan {show_tree(tree, aliases)}",
                hint="name a stream, or a join below another, as the plan writes it",
            )
        if origin in orders:
            raise BraidError(f"{who.strip()} has two probe orders", hint="give it one")
        orders[origin] = _checked(entry.strip(), origin, join, whom[0], aliases)
    return orders


def laid_orders(rounds: Rounds, number: int = 0) -> Orders:
    """The orders in which the joins of a tree of a plan probe, chosen by someone or not.

    Where there are two inputs, there is nothing to choose.
    """
    inputs = {
        frozenset(leaves(child)): child
        for join in joins(rounds.trees[number])
        for child in join.children
    }
    found: dict[Tree, tuple[Tree, ...]] = {}
    for segment in (segment for each in rounds.rounds for segment in each.segments):
        if rounds.tree_of(segment.join) != number:
            continue
        origin = rounds.joins[segment.join].children[segment.origin]
        probed = (rounds.states[step.state].relation.streams for step in segment.steps)
        asked = tuple(inputs[frozenset(streams)] for streams in probed)
        found[origin] = (*found.get(origin, ()), *asked)
    return {origin: others for origin, others in found.items() if len(others) > 1}


def _parted(text: str, mark: str) -> list[str]:
    """Text split at a mark, but not within quoted names.

    >>> _parted("`a;b`; c", ";")
    ['`a;b`', ' c']
    """
    parts = [""]
    for place, piece in enumerate(_QUOTED.split(text)):
        first, *others = [piece] if place % 2 else piece.split(mark)
        parts[-1] += first
        parts += others
    return parts


def _checked(
    entry: str, origin: Tree, join: Join, whom: str, aliases: Sequence[str]
) -> tuple[Tree, ...]:
    others = [child for child in join.children if child != origin]
    given = parse_nodes(whom, aliases, f"the order {entry!r}")
    if len(given) != len(others) or set(given) != set(others):
        names = " ".join(show_tree(child, aliases) for child in others)
        raise BraidError(
            f"the order {entry!r} does not name each other input of its join once",
            hint=f"name these, in any order: {names}",
        )
    return given


def show_orders(orders: Orders, aliases: Sequence[str]) -> str:
    """Probe orders as text, which `parse_orders` reads."""
    entries = sorted(
        f"{show_tree(origin, aliases)}: {' '.join(show_tree(o, aliases) for o in others)}"
        for origin, others in orders.items()
    )
    return "; ".join(entries)
