"""What states and probes are called, in events and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.plan.tree import show_tree

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.model.query import Query
    from braid.plan.rounds import Rounds


AGGREGATES = "aggregates"
"""The state of a GROUP BY; *groups* are those that workers share the keys by."""


def state_names(query: Query, rounds: Rounds) -> tuple[str, ...]:
    """A name for every state: what it holds, and the key that it is arranged by."""
    return tuple(
        _state_name(query, rounds, number, _aliases(query))
        for number in range(len(rounds.states))
    )


def _state_name(query: Query, rounds: Rounds, number: int, aliases: Sequence[str]) -> str:
    if number == rounds.grouped:
        return AGGREGATES
    state = rounds.states[number]
    streams = " ".join(aliases[stream] for stream in state.relation.streams)
    who = f"({streams})" if state.relation.is_joined else streams
    key = key_name(query, rounds.spaces[state.space].keys)
    return f"{who} waiting, by {key}" if state.waits else f"{who} by {key}"


def key_name(query: Query, keys: Sequence[int]) -> str:
    """A key, by the names that its columns have in the first streams that have them."""
    if not keys:
        return "nothing"
    return ", ".join(query.keys[key].columns[0].column for key in keys)


def origin_name(query: Query, rounds: Rounds, join: int, origin: int) -> str:
    """The input of a join whose rows probe the others."""
    return show_tree(rounds.joins[join].children[origin], _aliases(query))


def _aliases(query: Query) -> list[str]:
    return [stream.alias for stream in query.streams]
