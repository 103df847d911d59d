"""What is known of a join before it is planned: rates, selectivities and windows of streams.

A graph says nothing of keys' columns, workers or batches. Costs of plans over it are in
`braid.optimize`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import combinations

from braid.model.errors import BraidError

Pair = tuple[str, str]


@dataclass(frozen=True)
class JoinGraph:
    """Streams and the predicates between them, in any one unit of time.

    `rates` are rows per unit of time, and a selectivity is the part of all pairs of two streams
    that fulfils their predicate. Pairs that are not named have none, so all of theirs join.
    `window` is a number of units, or one for each stream.

    Selectivities multiply, as if predicates were independent. Those between streams of one
    equi-join key are not: whoever equals two equals the third. Each of `keys` names such
    streams. The engine keeps rows by keys and sends them from one to the next, so models of its
    costs want all keys there are.

    With `row_bytes`, the memory of a plan is in bytes, and a joined row has those of all its
    members. Without, it is in rows, however many members they have.

    >>> JoinGraph({"a": 20, "b": 5}, {("a", "b"): 0.02}, window=15).selectivity_of("b", "a")
    0.02
    """

    rates: Mapping[str, float]
    selectivity: Mapping[Pair, float]
    window: float | Mapping[str, float]
    keys: Sequence[Sequence[str]] = ()
    row_bytes: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        """Refuse what no plan could be made for."""
        _check_rates(self.rates)
        _check_pairs(self.streams, self.selectivity)
        _check_each("window", self.streams, self.windows, at_least=math.ulp(0.0))
        _check_keys(self)
        if self.row_bytes is not None:
            _check_each("row_bytes", self.streams, self.row_bytes, at_least=0)
        _check_connected(self)

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams' names, in the order of the rates."""
        return tuple(self.rates)

    @property
    def windows(self) -> Mapping[str, float]:
        """Every stream's window."""
        if isinstance(self.window, Mapping):
            return self.window
        return dict.fromkeys(self.rates, self.window)

    def selectivity_of(self, one: str, other: str) -> float:
        """The selectivity of a pair in either order; 1 where there is no predicate."""
        found = self.selectivity.get((one, other))
        return self.selectivity.get((other, one), 1.0) if found is None else found

    def are_joined(self, one: str, other: str) -> bool:
        """Whether there is a predicate between two streams."""
        return (one, other) in self.selectivity or (other, one) in self.selectivity


def _check_rates(rates: Mapping[str, float]) -> None:
    if len(rates) < 2:
        raise BraidError(
            f"a join graph of {len(rates)} streams joins nothing",
            hint="give the rates of two streams or more",
        )
    for name, rate in rates.items():
        if not isinstance(name, str) or not name:
            raise BraidError(f"{name!r} is no name of a stream", hint="name streams by text")
        if not _is_number(rate) or not 0 <= rate < math.inf:
            raise BraidError(
                f"the rate of stream {name!r} is {rate!r}",
                hint="rates are rows per unit of time, 0 or more",
            )


def _check_pairs(streams: Sequence[str], selectivity: Mapping[Pair, float]) -> None:
    seen: set[frozenset[str]] = set()
    for pair, value in selectivity.items():
        if not isinstance(pair, tuple) or len(pair) != 2:
            raise BraidError(
                f"{pair!r} is no pair of streams", hint='write pairs as ("a", "b")'
            )
        for name in pair:
            _check_known(f"the selectivity of {pair}", name, streams)
        if pair[0] == pair[1]:
            raise BraidError(
                f"the selectivity of {pair} joins stream {pair[0]!r} with itself",
                hint="a self-join has two streams: give the second a name and a rate too",
            )
        if frozenset(pair) in seen:
            raise BraidError(f"the pair {pair} has two selectivities", hint="give it one")
        seen.add(frozenset(pair))
        if not _is_number(value) or not 0 <= value <= 1:
            raise BraidError(
                f"the selectivity of {pair} is {value!r}",
                hint="a selectivity is the part of all pairs that join: from 0 to 1",
            )


def _check_each(
    what: str, streams: Sequence[str], values: Mapping[str, float], at_least: float
) -> None:
    for name in values:
        _check_known(what, name, streams)
    for name in streams:
        if name not in values:
            raise BraidError(f"{what} lacks the stream {name!r}", hint="name every stream")
        value = values[name]
        if not _is_number(value) or not at_least <= value < math.inf:
            wanted = "above 0" if at_least else "0 or more"
            raise BraidError(
                f"the {what} of stream {name!r} is {value!r}",
                hint=f"give a finite number {wanted}",
            )


def _check_keys(graph: JoinGraph) -> None:
    taken: set[frozenset[str]] = set()
    for key in graph.keys:
        for name in key:
            _check_known(f"the key of {tuple(key)}", name, graph.streams)
        for pair in combinations(key, 2):
            if not graph.are_joined(*pair):
                raise BraidError(
                    f"the pair {pair} is of one key and has no selectivity",
                    hint="give one for each pair of streams that share a key",
                )
            if pair[0] == pair[1] or frozenset(pair) in taken:
                raise BraidError(
                    f"the pair {pair} is named by keys more than once",
                    hint="join what a pair has in common into one key",
                )
            taken.add(frozenset(pair))


def _check_connected(graph: JoinGraph) -> None:
    reached, others = [graph.streams[0]], list(graph.streams[1:])
    for one in reached:
        found = [other for other in others if graph.are_joined(one, other)]
        others = [other for other in others if other not in found]
        reached += found
    if others:
        together = ", ".join(name for name in graph.streams if name in reached)
        raise BraidError(
            f"the join graph is not connected: nothing joins {together} with "
            f"{', '.join(others)}",
            hint="give the selectivity of a pair between them; 1 joins all with all",
        )


def _check_known(what: str, name: object, streams: Sequence[str]) -> None:
    if name in streams:
        return
    near = get_close_matches(str(name)[:100], streams, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"the streams are {', '.join(streams)}"
    raise BraidError(f"{what} names {name!r}, which has no rate", hint=hint)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
