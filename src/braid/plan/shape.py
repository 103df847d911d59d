"""A plan as text: a tree, and behind a semicolon the probe orders that someone chose for it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from braid.plan.orders import parse_orders, show_orders
from braid.plan.rounds import Shape
from braid.plan.tree import check_tree, default_tree, parse_tree, show_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.model.query import Query

_FIRST_SEMICOLON = re.compile(r"^((?:[^;`]|`[^`]*`)*);")


def read_shape(query: Query, text: str | None) -> Shape:
    """Read a plan for a query, or choose one."""
    aliases = [stream.alias for stream in query.streams]
    if text is None:
        return Shape(default_tree(query), {})
    found = _FIRST_SEMICOLON.match(text)
    tree_text, orders_text = (text, "") if found is None else (found[1], text[found.end() :])
    no_tree = found is not None and not tree_text.strip()
    tree = default_tree(query) if no_tree else parse_tree(tree_text, aliases)
    check_tree(query, tree)
    return Shape(tree, parse_orders(orders_text, tree, aliases))


def show_shape(shape: Shape, aliases: Sequence[str]) -> str:
    """A plan as text, which `read_shape` reads."""
    text = show_tree(shape.tree, aliases)
    return f"{text}; {show_orders(shape.orders, aliases)}" if shape.orders else text


def show_plans(texts: Sequence[str]) -> str:
    """Several plans, of which each worker has one.

    >>> show_plans(["(a b c)", "((a b) c)"])
    '(a b c) | ((a b) c)'
    """
    return " | ".join(texts)


def shape_text(plan: str | None, order: str | None) -> str | None:
    """A tree and orders that were given apart, either of which may not be."""
    if order is None:
        return plan
    return f"{plan or ''}; {order}"
