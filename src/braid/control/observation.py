"""What a running query measures of its streams: rates, and selectivities of pairs.

All of it comes from counts that probes leave behind. A row of one stream that asks the state of
another finds so many of the pairs there are: that is exact. Where a row that is joined already
asks, or where what it asks is joined, its matches tell of the one key between the two, as if it
were independent of all before: an estimate. Later batches count for more than earlier ones, so
that numbers follow what changes; what no probe has told of for long, under a plan that has
changed, does not count. Of a pair that no probe tells of, a sample may (`control/sampling.py`).

Where all is joined under one key, the rows of a worker meet nobody else's. What it has measured
by itself, of its own rows in its own state, is then all that its costs depend on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import combinations, product
from math import comb
from typing import TYPE_CHECKING, Any, NamedTuple

from braid.events import PairSelectivity, StreamRate
from braid.optimize.timing.statistics import UNKNOWN, DataStatistics, Measure
from braid.record.report import edge_totals
from braid.state.groups import marked
from braid.state.ladder import living_rows

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from braid.control.decider import BatchSeen
    from braid.model.join_graph import JoinGraph
    from braid.model.query import Query
    from braid.plan.join_plan import JoinPlan
    from braid.record.commit import Commit
    from braid.record.report import Report

_KEPT = 0.8  # of the weight of what was measured before, with every batch
_LASTING = 10  # batches without a count, after which what was counted is out of date

Streams = frozenset[int]


@dataclass(frozen=True, slots=True)
class FadingRatio:
    """A ratio of two counts, of which older ones fade."""

    count: float = 0.0
    of: float = 0.0
    silent: int = 0  # batches since the last count

    def added(self, count: float, of: float) -> FadingRatio:
        """With some more, of the same batch."""
        return FadingRatio(self.count + count, self.of + of)

    def faded(self) -> FadingRatio:
        """A batch later."""
        return FadingRatio(_KEPT * self.count, _KEPT * self.of, self.silent + 1)

    @property
    def ratio(self) -> float | None:
        """What is known now, if anything is."""
        return self.count / self.of if self.of and self.silent <= _LASTING else None


Ratios = dict[Any, FadingRatio]
_NOTHING = FadingRatio()


@dataclass(frozen=True, slots=True)
class Observation:
    """What is known after every batch of a run; rates are rows in a second of event time.

    It looks at all workers, or at some.
    """

    query: Query
    workers: frozenset[int] | None = None
    rates: Ratios = field(default_factory=dict)  # by stream
    counted: Ratios = field(default_factory=dict)  # by pair, as all that follow
    inferred: Ratios = field(default_factory=dict)
    sampled: Mapping[Streams, float] = field(default_factory=dict)

    def observe(self, seen: BatchSeen) -> Observation:
        """Learn from a batch; a sample of pairs may have come with it."""
        rates, counted, inferred = (
            {name: each.faded() for name, each in known.items()}
            for known in (self.rates, self.counted, self.inferred)
        )
        reports = [r for r in seen.reports if self.workers is None or r.worker in self.workers]
        plan, before = seen.plan, seen.before
        probes = list(_probes(plan, reports))
        workers = range(seen.after.workers) if self.workers is None else self.workers
        shares = _shares(plan, before, workers)
        # While the plan changes, the last tree gets rows that others have too.
        last = plan.rounds.roots[-2] + 1 if before.change is not None else 0
        passing = range(last, len(plan.rounds.joins)) if last else ()
        for stream, ratio in _arrivals(seen, probes, passing):
            rates[stream] = rates.get(stream, _NOTHING).added(*ratio)
        for probe in probes:
            if plan.rounds.fed and probe.join in passing:
                continue  # by rows of all ages, which reach less of a state than new ones do
            met = seen.after if probe.sees_new_rows else before
            there = _reachable_rows(plan, met, probe.state, workers)
            there /= shares[plan.rounds.tree_of(probe.join)]
            looked_at = probe.asked * there
            for pair in _between(self.query, probe.known, probe.others) if looked_at else ():
                is_pair = probe.known | probe.others == pair
                known = counted if is_pair else inferred
                known[pair] = known.get(pair, _NOTHING).added(probe.found, looked_at)
        sampled = {**self.sampled, **(seen.sample or {})}
        return replace(self, rates=rates, counted=counted, inferred=inferred, sampled=sampled)

    @property
    def graph(self) -> JoinGraph | None:
        """The query and its streams, if all of them is known."""
        known = self.statistics
        measures = (*known.rates.values(), *known.selectivity.values())
        if any(measure.value is None for measure in measures):
            return None
        return known.graph(windows_of(self.query), keys=keys_of(self.query))

    @property
    def unmeasured(self) -> list[Streams]:
        """The pairs that no probe tells of."""
        return [pair for pair in pairs_of(self.query) if self._measured(pair) is UNKNOWN]

    @property
    def unknown(self) -> list[Streams]:
        """The pairs that neither a probe nor a sample tells of."""
        return [pair for pair in self.unmeasured if pair not in self.sampled]

    @property
    def statistics(self) -> DataStatistics:
        """What is known now, by the streams' names in the query."""
        names = [stream.alias for stream in self.query.streams]
        rates = {}
        for number, name in enumerate(names):
            rate = self.rates.get(number, _NOTHING)
            rates[name] = UNKNOWN if rate.ratio is None else Measure.exact(rate.ratio)
        selectivity = {
            (names[min(pair)], names[max(pair)]): self._selectivity(pair)
            for pair in pairs_of(self.query)
        }
        return DataStatistics(rates, selectivity)

    def _selectivity(self, pair: Streams) -> Measure:
        measured = self._measured(pair)
        if measured is UNKNOWN and pair in self.sampled:
            return Measure.estimated(self.sampled[pair])
        return measured

    def _measured(self, pair: Streams) -> Measure:
        """What probes tell of a pair."""
        counted = self.counted.get(pair, _NOTHING).ratio
        if counted is not None:
            return Measure.exact(min(1.0, counted))
        inferred = self.inferred.get(pair, _NOTHING).ratio
        return UNKNOWN if inferred is None else Measure.estimated(min(1.0, inferred))


def windows_of(query: Query) -> dict[str, float]:
    """The seconds that each stream's rows may join, as join graphs have them."""
    return {stream.alias: stream.window_us / 1_000_000 for stream in query.streams}


def keys_of(query: Query) -> list[list[str]]:
    """The streams that each key connects, as join graphs have them: each pair has one key.

    Keys that streams have in common are one key, so that of the streams that share some keys
    and others that share more, pairs are told one by one.
    """
    shared: dict[Streams, list[tuple[int, int]]] = {}
    for one, other in combinations(range(len(query.streams)), 2):
        keys = frozenset(n for n, key in enumerate(query.keys) if {one, other} <= key.streams)
        if keys:
            shared.setdefault(keys, []).append((one, other))
    found: list[tuple[int, ...]] = []
    for pairs in shared.values():
        streams = tuple(sorted({stream for pair in pairs for stream in pair}))
        found += [streams] if len(pairs) == comb(len(streams), 2) else pairs
    return [[query.streams[stream].alias for stream in each] for each in found]


def pairs_of(query: Query) -> tuple[Streams, ...]:
    """The pairs of streams that have a key in common.

    Other conditions count as a part of the keys' selectivities: keys connect all streams, and
    no plan joins two that have none in common.
    """
    pairs = (map(frozenset, combinations(sorted(key.streams), 2)) for key in query.keys)
    return tuple(dict.fromkeys(pair for of_key in pairs for pair in of_key))


def _between(query: Query, some: Streams, others: Streams) -> set[Streams]:
    """The pairs that are decided where two sets of streams meet.

    Those of one key decide the same. Of several keys, the effect cannot be attributed to one.
    """
    met = map(frozenset, product(some, others))
    crossing = {pair for pair in met if any(pair <= key.streams for key in query.keys)}
    is_one = len(crossing) == 1
    if is_one or any(all(p <= key.streams for p in crossing) for key in query.keys):
        return crossing
    return set()


class _ProbeCounts(NamedTuple):
    """Rows of `known` streams, joined already, asked for those of others."""

    join: int
    state: int
    known: Streams
    others: Streams
    sees_new_rows: bool
    asked: int
    found: int


def _probes(plan: JoinPlan, reports: Sequence[Report]) -> Iterator[_ProbeCounts]:
    """All probes of a batch, with their counts."""
    counts = edge_totals(reports)
    for a_round in plan.rounds.rounds:
        for segment in a_round.segments:
            known = frozenset(a_round.ports[segment.port].relation.streams)
            for step in segment.steps:
                others = frozenset(plan.rounds.states[step.state].relation.streams)
                asked, found = counts.get((segment.join, segment.origin, step.state), (0, 0))
                what = segment.join, step.state, known, others, step.sees_new_rows
                yield _ProbeCounts(*what, asked, found)
                known |= others


def _arrivals(
    seen: BatchSeen, probes: Sequence[_ProbeCounts], passing: Collection[int]
) -> Iterator[tuple[int, tuple[float, float]]]:
    """The rows that each stream brought, and the seconds of event time that they took."""
    seconds = _seconds(seen.before, seen.after)
    if seconds is None:
        return
    arrived = Counter[int]()
    for probe in probes:
        if len(probe.known) == 1 and probe.join not in passing:
            (stream,) = probe.known
            arrived[stream] += probe.asked
    for stream, rows in arrived.items():
        yield stream, (rows, seconds)


def _reachable_rows(
    plan: JoinPlan, commit: Commit, number: int, workers: Collection[int]
) -> float:
    """About how many rows of some workers' state a new row may join."""
    horizon = plan.horizon(plan.rounds.states[number], commit.latest_us)
    return sum(living_rows(commit.ladders[worker][number], horizon) for worker in workers)


def _shares(plan: JoinPlan, commit: Commit, workers: Collection[int]) -> list[float]:
    """By tree, the part of some workers' groups that goes through it.

    A row meets those of its own tree alone, though the others count as well.
    """
    if not plan.routes:
        return [1.0] * len(plan.texts)
    own = commit.placement(plan.rounds.join_spaces[0]).of(*workers)
    through = [(marked(route, plan.groups) & own).sum() for route in plan.routes]
    return [max(1, int(groups)) / max(1, int(own.sum())) for groups in through]


def _seconds(before: Commit, now: Commit) -> float | None:
    """How far event time went on in a batch; the first batch does not tell."""
    old, new = before.latest_us, now.latest_us
    return None if old is None or new is None else (new - old) / 1_000_000


def rate_facts(known: DataStatistics) -> tuple[StreamRate, ...]:
    """What is known of streams."""
    rates = known.rates.items()
    return tuple(StreamRate(name, rate.value, rate.certainty.value) for name, rate in rates)


def selectivity_facts(known: DataStatistics) -> tuple[PairSelectivity, ...]:
    """What is known of pairs of streams."""
    return tuple(
        PairSelectivity(*pair, each.value, each.certainty.value)
        for pair, each in known.selectivity.items()
    )
