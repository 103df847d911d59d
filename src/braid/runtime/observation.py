"""What a running query measures of its streams: rates, and selectivities of pairs.

All of it comes from counts that probes leave behind. A row of one stream that asks the state of
another finds so many of the pairs there are: that is exact. Where a row that is joined already
asks, or where what it asks is joined, its matches tell of the one key between the two, as if it
were independent of all before: an estimate. Later batches count for more than earlier ones, so
that numbers follow what changes; what no probe has told of for long, under a plan that has
changed, does not count. Of a pair that no probe tells of, a sample may (`runtime/sampling.py`).

Where all is joined under one key, the rows of a worker meet nobody else's. What it has measured
by itself, of its own rows in its own state, is then all that its costs depend on.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import combinations, product
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from braid.join.report import edge_totals
from braid.optimize.timing.statistics import UNKNOWN, DataStatistics, Measure
from braid.state.ladder import living_rows
from braid.state.runs import marked

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from braid.join.plan import JoinPlan
    from braid.join.report import Report
    from braid.model.join_graph import JoinGraph
    from braid.model.query import Query
    from braid.state.commit import Commit

_KEPT = 0.8  # of the weight of what was measured before, with every batch
_LASTING = 10  # batches without a count, after which what was counted is out of date

Streams = frozenset[int]


@dataclass(slots=True)
class _Sum:
    """A ratio of two counts, of which older ones fade."""

    count: float = 0.0
    of: float = 0.0
    silent: int = 0  # batches since the last count

    def add(self, count: float, of: float) -> None:
        """Some more, of the same batch."""
        self.count += count
        self.of += of
        self.silent = 0

    def fade(self) -> None:
        """A batch is over."""
        self.count *= _KEPT
        self.of *= _KEPT
        self.silent += 1

    @property
    def ratio(self) -> float | None:
        """What is known now, if anything is."""
        return self.count / self.of if self.of and self.silent <= _LASTING else None


@dataclass(slots=True)
class Observation:
    """Learns from every batch of a run; rates are rows in a second of event time.

    It looks at all workers, or at some.
    """

    query: Query
    workers: frozenset[int] | None = None
    _rates: dict[int, _Sum] = field(default_factory=dict, init=False)
    _counted: dict[Streams, _Sum] = field(default_factory=dict, init=False)
    _inferred: dict[Streams, _Sum] = field(default_factory=dict, init=False)
    _sampled: dict[Streams, float] = field(default_factory=dict, init=False)
    _pairs: dict[Streams, None] = field(init=False)

    def __post_init__(self) -> None:
        """Find the pairs to be measured."""
        self._pairs = dict.fromkeys(_pairs_of(self.query))

    def after(
        self, plan: JoinPlan, before: Commit, now: Commit, reports: Sequence[Report]
    ) -> None:
        """Learn from a batch by some plan, and from the records before and after it."""
        for sums in (self._rates, self._counted, self._inferred):
            for each in sums.values():
                each.fade()
        if self.workers is not None:
            reports = [report for report in reports if report.worker in self.workers]
        probes = list(_probes(plan, reports))
        workers = range(now.workers) if self.workers is None else self.workers
        shares = _shares(plan, before, workers)
        # While the plan changes, the last tree gets rows that others have too.
        last = plan.rounds.roots[-2] + 1 if before.change is not None else 0
        passing = range(last, len(plan.rounds.joins)) if last else ()
        arrived = Counter[int]()
        for probe in probes:
            if len(probe.known) == 1 and probe.join not in passing:
                (stream,) = probe.known
                arrived[stream] += probe.asked
        seconds = _seconds(before, now)
        if seconds is not None:
            for stream, rows in arrived.items():
                self._rates.setdefault(stream, _Sum()).add(rows, seconds)
        for probe in probes:
            if plan.rounds.fed and probe.join in passing:
                continue  # by rows of all ages, which reach less of a state than new ones do
            met = now if probe.meets_news else before
            there = _reachable_rows(plan, met, probe.state, workers)
            there /= shares[plan.rounds.tree_of(probe.join)]
            looked_at = probe.asked * there
            for pair in self._between(probe.known, probe.others) if looked_at else ():
                is_pair = probe.known | probe.others == pair
                sums = self._counted if is_pair else self._inferred
                sums.setdefault(pair, _Sum()).add(probe.found, looked_at)

    def _between(self, some: Streams, others: Streams) -> Iterator[Streams]:
        """The pairs that are decided where two sets of streams meet.

        Those of one key decide the same. Of several keys nobody knows which did what.
        """
        crossing = {frozenset(pair) for pair in product(some, others)} & self._pairs.keys()
        if len(crossing) == 1 or any(
            all(pair <= key.streams for pair in crossing) for key in self.query.keys
        ):
            yield from crossing

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
        return [pair for pair in self._pairs if self._measured(pair) is UNKNOWN]

    @property
    def unknown(self) -> list[Streams]:
        """The pairs that neither a probe nor a sample tells of."""
        return [pair for pair in self.unmeasured if pair not in self._sampled]

    def note_sample(self, pair: Streams, selectivity: float) -> None:
        """Learn what a sample of a pair has shown."""
        self._sampled[pair] = selectivity

    @property
    def statistics(self) -> DataStatistics:
        """What is known now, by the streams' names in the query."""
        names = [stream.alias for stream in self.query.streams]
        rates = {}
        for number, name in enumerate(names):
            rate = self._rates.get(number, _Sum())
            rates[name] = UNKNOWN if rate.ratio is None else Measure.exact(rate.ratio)
        selectivity = {
            (names[min(pair)], names[max(pair)]): self._selectivity(pair)
            for pair in self._pairs
        }
        return DataStatistics(rates, selectivity)

    def _selectivity(self, pair: Streams) -> Measure:
        measured = self._measured(pair)
        if measured is UNKNOWN and pair in self._sampled:
            return Measure.estimated(self._sampled[pair])
        return measured

    def _measured(self, pair: Streams) -> Measure:
        """What probes tell of a pair."""
        counted = self._counted.get(pair, _Sum()).ratio
        if counted is not None:
            return Measure.exact(min(1.0, counted))
        inferred = self._inferred.get(pair, _Sum()).ratio
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


def _pairs_of(query: Query) -> Iterator[Streams]:
    """The pairs of streams that have a key in common.

    Other conditions count as a part of the keys' selectivities: keys connect all streams, and
    no plan joins two that have none in common.
    """
    for key in query.keys:
        yield from map(frozenset, combinations(sorted(key.streams), 2))


class _Probe(NamedTuple):
    """Rows of `known` streams, joined already, asked for those of others."""

    join: int
    state: int
    known: Streams
    others: Streams
    meets_news: bool
    asked: int
    found: int


def _probes(plan: JoinPlan, reports: Sequence[Report]) -> Iterator[_Probe]:
    """All probes of a batch, with their counts."""
    counts = edge_totals(reports)
    for a_round in plan.rounds.rounds:
        for segment in a_round.segments:
            known = frozenset(a_round.ports[segment.port].relation.streams)
            for step in segment.steps:
                others = frozenset(plan.rounds.states[step.state].relation.streams)
                asked, found = counts.get((segment.join, segment.origin, step.state), (0, 0))
                what = segment.join, step.state, known, others, step.meets_news
                yield _Probe(*what, asked, found)
                known |= others


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
    own = np.isin(commit.assignments[plan.rounds.homes[0]], list(workers))
    through = [(marked(route, plan.groups) & own).sum() for route in plan.routes]
    return [max(1, int(groups)) / max(1, int(own.sum())) for groups in through]


def _seconds(before: Commit, now: Commit) -> float | None:
    """How far event time went on in a batch; the first batch does not tell."""
    old, new = before.latest_us, now.latest_us
    return None if old is None or new is None else (new - old) / 1_000_000
