"""One worker's part of one round of a batch: receive, insert, probe, send on.

`evaluate` is a function of its step and its rows. It changes nothing that a commit record
names, so it may run twice, or on two machines at once: whichever report the coordinator takes
is the one that counts, and the files of the others are swept.
"""

from __future__ import annotations

import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.model.expression import GROUPED
from braid.model.failpoints import reach
from braid.plan.wire import UNTIL
from braid.record.commit import newer
from braid.record.report import Edge, Loads, Report
from braid.state.groups import group_counts, marked
from braid.state.horizon import alive
from braid.state.order import sort_rows
from braid.state.runs import hashes_of, of_groups
from braid.worker.arrivals import Arrivals, receive
from braid.worker.changing import Changing
from braid.worker.grouping import closing_results, combine, partial_aggregates
from braid.worker.held import WorkerStates
from braid.worker.history import remembered, touched_rows, with_deadlines
from braid.worker.outgoing import carried, sent_aggregates, sent_partial, sent_report
from braid.worker.overflow import GroupSpiller
from braid.worker.owed import owed_results
from braid.worker.probe import Cascade, Guard, Side
from braid.worker.results import PartWriter, late_table, result_table, stream_folder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from braid.model.query import History
    from braid.plan.rounds import Port, Round, Segment, State
    from braid.plan.rounds import ProbeStep as Probe
    from braid.plan.wire import Wire
    from braid.record.commit import ResultFile
    from braid.state.groups import Hashes
    from braid.state.runs import SortedRun
    from braid.state.store import RunStore
    from braid.worker.owed import StateRows
    from braid.worker.probe import Partial
    from braid.worker.round_orders import RoundOrders


def evaluate(
    step: RoundOrders, stores: Mapping[int, RunStore], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Insert a round's rows and join them with the state and with each other.

    `stores` are by space. What comes out is for the next round; the last round's workers give
    reports alone, their own and those of the rounds before.
    """
    arrived = list(batches)
    began = time.monotonic()
    reach("rows received", step.batch, round_number=step.round)
    closed_before = None if step.closed_us is None else step.closed_us + 1
    late_before = newer(step.watermark_us, closed_before)
    changes = step.change is not None
    arrivals = receive(
        step.plan,
        step.round,
        arrived,
        late_before,
        ahead_after_us=step.ahead_after_us,
        changes=changes,
    )
    del arrived
    if step.round == 0:
        next(iter(stores.values())).remove_others(step.files)
    work = RoundTask(step, stores, arrivals)
    yield from work.run()
    report = json.dumps(work.report(began).to_json())
    for text in (*arrivals.reports, report):
        if work.following is None:
            yield pa.RecordBatch.from_pydict({"report": [text]})
        else:
            yield sent_report(step.plan.wire, work.following, text)


class RoundTask:
    """A round in the doing: what was opened, what was inserted, and what came out of it."""

    def __init__(
        self, step: RoundOrders, stores: Mapping[int, RunStore], arrivals: Arrivals
    ) -> None:
        """Open what is there already, and take in the rows that have come."""
        self.step, self.plan, self.stores, self.arrivals = step, step.plan, stores, arrivals
        rounds = self.plan.rounds
        self.round: Round = rounds.rounds[step.round]
        is_last = step.round == len(rounds.rounds) - 1
        self.following = None if is_last else rounds.rounds[step.round + 1]
        self.token = f"{step.batch}-{step.round}-{step.worker}-{os.urandom(4).hex()}"
        self.changing = None if step.change is None else Changing(self.plan, step.change)
        self.held = WorkerStates(step, stores, arrivals, self.token)
        self.edges: list[Edge] = []
        self.at_home: list[pa.Table] = []
        self.parcels: dict[int, dict[int, SortedRun]] = {}
        self.made = np.zeros((len(rounds.spaces), self.plan.groups), np.int64)
        name = f"part-{self.token}.parquet"
        self.writer = PartWriter(step.results, name, self.plan.result_schema)
        self.parts: tuple[ResultFile, ...] = ()
        self.late_parts: tuple[ResultFile, ...] = ()
        ports = enumerate(self.round.ports)
        self.rows = [self.held.admitted(number, port) for number, port in ports]
        self.joined_rows = sum(rows.num_rows for rows in self.rows)
        self.news: dict[int, list[pa.RecordBatch]] = {
            number: [] for number, port in enumerate(self.round.ports) if port.made
        }
        self.overflows = [
            GroupSpiller(self.held, space)
            for space in range(len(rounds.spaces))
            if any(
                rounds.round_of_state(state) == step.round
                for state in self.plan.states_of(space)
            )
        ]

    def run(self) -> Iterator[pa.RecordBatch]:
        """Insert, probe, and send on what the next round needs."""
        for overflow in self.overflows:
            yield from self._clean_up(overflow)
            overflow.spill()
            self._fill(overflow)
        self._send_away(state for each in self.overflows for state in each.states)
        for number, port in enumerate(self.round.ports):
            if not port.made:
                self._insert(number)
        with ThreadPoolExecutor(1) as disk:
            # Inserting before probing is safe, for the probe looks at what was opened before;
            # it lets the log reach the disk while the last join's probes compute. Only what is
            # grouped here, of this round's own results, has to be logged after them.
            logged = None
            for number, target in self.round.carried:
                yield carried(self._wire, self._next, target, self.rows[number])
            yield from self._feed()
            for join, segments in groupby(self.round.segments, lambda each: each.join):
                self._take_made(join)
                if not self.news and not self._groups_here and logged is None:
                    logged = disk.submit(self.held.log.write)
                for segment in segments:
                    yield from self._probe(segment)
            self._take_for_idle()
            if self._groups_here:
                self._group()
            if logged is None:
                logged = disk.submit(self.held.log.write)
            # One worker always leaves a file, so that an output without rows has a schema.
            lasting = self.following is None and self.step.worker == 0
            part = self.writer.finish(even_if_empty=lasting)
            self.parts = (part,) if part else ()
            self.late_parts = self._write_late()
            reach("results staged", self.step.batch, round_number=self.step.round)
            logged.result()
            reach("log written", self.step.batch, round_number=self.step.round)

    def _insert(self, number: int) -> None:
        """Add a port's rows to its state."""
        state = self.round.ports[number].state
        if state is not None and state != self.plan.rounds.grouped:
            self.held.insert(state, self.rows[number])

    def _take_made(self, join: int) -> None:
        """What the joins below have made of this batch is news for a join."""
        for segment in self.round.segments:
            if segment.join == join and segment.port in self.news:
                self._take(segment.port)

    def _take_for_idle(self) -> None:
        """What has been made for joins that are idle, which have no segments, is kept too."""
        for number in [*self.news]:
            self._take(number)

    def _take(self, number: int) -> None:
        """All has been made that comes by a port."""
        if made := self.news.pop(number):
            self.rows[number] = sort_rows(pa.concat_batches(made))
        self._insert(number)

    def report(self, began: float) -> Report:
        """The account of it all."""
        arrivals = self.arrivals
        overflowed = {
            each.space: each.finish(self._arrived(each.space)[0]) for each in self.overflows
        }
        return Report(
            worker=self.step.worker,
            round=self.step.round,
            host=self.step.host,
            input_rows=arrivals.input_rows,
            null_key_rows=arrivals.null_key_rows,
            null_time_rows=arrivals.null_time_rows,
            out_of_range_time_rows=arrivals.out_of_range_time_rows,
            bad_rows=arrivals.bad_rows,
            late_rows=arrivals.late_rows,
            ahead_rows=arrivals.ahead_rows,
            joined_rows=self.joined_rows,
            held_rows=self.held.backlog.held_rows,
            output_rows=self.writer.rows,
            newest_us=arrivals.newest_us,
            ladders=self.held.ladders,
            generations={each.space: tuple(each.generations) for each in self.overflows},
            overflowed=overflowed,
            waiting=tuple(self.held.backlog.waiting),
            parcels=self.parcels,
            loads=self._loads(),
            parts=self.parts,
            late_parts=self.late_parts,
            edges=tuple(self.edges),
            busy_ms=round((time.monotonic() - began) * 1000),
            rebuilt_runs=sum(store.rebuilt_runs for store in self.stores.values()),
            displaced_runs=sum(store.displaced_runs for store in self.stores.values()),
            memory_refusal=next(filter(None, (s.refusal for s in self.stores.values())), ""),
        )

    # Overflow.

    def _clean_up(self, overflow: GroupSpiller) -> Iterator[pa.RecordBatch]:
        """Make the results that groups owe, and one generation of all that they have."""
        groups = overflow.due()
        if not groups.any():
            return
        parts, results = overflow.parts(groups), 0
        made: dict[int, list[pa.RecordBatch]] = {state: [] for state in overflow.states}
        for segment in self._first_segments(overflow.space):
            if segment.into is not None:
                self._make(segment, parts, made)
                continue
            for cascade, partial in self._owed(segment, parts, made):
                results += len(partial)
                yield from self._finish(segment, cascade, partial, counts=False)
        overflow.settle(groups, made, results)
        reach("owed results made", self.step.batch, round_number=self.step.round)

    def _fill(self, overflow: GroupSpiller) -> None:
        """Make what fresh states of the second tree lack, for some groups."""
        changing = self.changing
        if changing is None or not changing.change.fresh:
            return
        groups = changing.filling(self.stores[overflow.space].ownership.owned)
        if not groups.any():
            return
        states, last = self.plan.rounds.states, len(self.plan.rounds.trees) - 1
        complete = [
            state
            for state in overflow.states
            if states[state].tree == last and not changing.is_fresh(state)
        ]
        # If every state is a generation of its own, they owe all that can be made of them.
        parts = [overflow.rows_of(state, groups) for state in complete]
        made: dict[int, list[pa.RecordBatch]] = {state: [] for state in overflow.states}
        for segment in self._first_segments(overflow.space):
            if changing.is_fresh(self.plan.rounds.output_state(segment.join)):
                self._make(segment, parts, made)
        overflow.take_in(made)
        reach("states filled", self.step.batch, round_number=self.step.round)

    def _feed(self) -> Iterator[pa.RecordBatch]:
        """What the second tree gets from the first.

        That is all there is of groups whose turn has come, and of those which had theirs, what
        has come since.
        """
        changing = self.changing
        for number, target in self.round.fed:
            assert changing is not None, "only a plan that changes has a second tree"
            port, state = self.round.ports[number], self._kept_in(number)
            groups = changing.filling(self.stores[port.space].ownership.owned)
            kept = (of_groups(pair.rows, groups) for pair in self.held.open(state))
            living = [alive(rows, self.held.horizon(state)) for rows in kept]
            exact = self._wire.exact[port.space]
            for rows in (*living, changing.complete(self.rows[number])):
                cascade = Cascade(self.plan, exact, (self._origin(port, rows),), ())
                for partial in cascade.run():
                    fetch = cascade.values(partial)
                    yield sent_partial(self._wire, self._next, target, partial, fetch)
            if groups.any():
                reach("states filled", self.step.batch, round_number=self.step.round)

    def _make(
        self,
        segment: Segment,
        parts: Sequence[StateRows],
        made: dict[int, list[pa.RecordBatch]],
    ) -> None:
        """What generations owe a join above, in the same cluster."""
        assert segment.into is not None, "what is made goes into a state of this round"
        goal = self._kept_in(segment.into)
        for cascade, partial in self._owed(segment, parts, made):
            made[goal].append(sort_rows(self._as_news(segment.into, cascade, partial)))

    def _owed(
        self,
        segment: Segment,
        parts: Sequence[StateRows],
        made: Mapping[int, list[pa.RecordBatch]],
    ) -> Iterator[tuple[Cascade, Partial]]:
        """What generations owe a join, and what joins below it have just made.

        Each state of that is one generation more: nothing of one has met another's yet.
        """
        nothing: StateRows = dict.fromkeys(made, ())
        fresh = ({**nothing, state: rows} for state, rows in made.items() if rows)
        origin = self._kept_in(segment.port)
        return owed_results(self.plan, segment, origin, [*parts, *fresh])

    def _kept_in(self, number: int) -> int:
        """The state of a port."""
        state = self.round.ports[number].state
        assert state is not None, "what a join on one key is made of is kept in states"
        return state

    def _first_segments(self, space: int) -> Iterator[Segment]:
        """One segment of each join that meets in a space."""
        for _, segments in groupby(self.round.segments, lambda each: each.join):
            segment = next(segments)
            if self.round.ports[segment.port].space == space:
                yield segment

    def _send_away(self, states: Iterable[int]) -> None:
        """Take the groups that move out of states, each state's as a run of its own."""
        for state in states:
            space = self.plan.rounds.states[state].space
            if space in self.step.leaving:
                groups = marked(self.step.leaving[space], self.plan.groups)
                opened, horizon = self.held.open(state), self.held.horizon(state)
                left, run = self.held.upkeeps[space].parcel(opened, groups, horizon)
                self.held.opened[state] = left
                self.parcels.setdefault(space, {}).update({} if run is None else {state: run})
                reach("groups taken out", self.step.batch, round_number=self.step.round)

    def _arrived(self, space: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """How many rows came for each group of a space, and about how many bytes they have."""
        counts = np.zeros(self.plan.groups, np.int64)
        weights = np.zeros(self.plan.groups)
        for port, rows in zip(self.round.ports, self.rows, strict=True):
            if port.space == space and rows.num_rows:
                here = group_counts(hashes_of(rows), self.plan.groups)
                counts += here
                weights += here * (rows.nbytes / rows.num_rows)
        return counts, weights

    def _loads(self) -> dict[int, Loads]:
        """Each group's part in the batch, if it is asked for."""
        if not self.step.worker_orders.counts:
            return {}
        return {
            each.space: each.loads(*self._arrived(each.space), self.made[each.space])
            for each in self.overflows
        }

    # Probing.

    @property
    def _wire(self) -> Wire:
        return self.plan.wire

    @property
    def _next(self) -> Round:
        assert self.following is not None, "only the last round sends nothing on"
        return self.following

    def _probe(self, segment: Segment) -> Iterator[pa.RecordBatch]:
        port, rows = self.round.ports[segment.port], self.rows[segment.port]
        if self.changing is not None:
            rows = self.changing.running(segment, rows)
        if not rows.num_rows:
            return
        hashes = hashes_of(rows)
        sides = (self._origin(port, rows), *(self._side(s, hashes) for s in segment.steps))
        cascade = Cascade(self.plan, self._wire.exact[port.space], sides, segment.steps)
        counts = self.step.worker_orders.counts
        for partial in cascade.run():
            yield from self._finish(segment, cascade, partial, counts=counts)
        for probe, asked, found in zip(
            segment.steps, cascade.asked, cascade.found, strict=True
        ):
            self.edges.append(Edge(segment.join, segment.origin, probe.state, asked, found))

    def _finish(
        self, segment: Segment, cascade: Cascade, partial: Partial, *, counts: bool
    ) -> Iterator[pa.RecordBatch]:
        """What becomes of the combinations that came through a segment.

        They count as their groups' results, if new rows have made them: what was owed earns a
        group no place in memory.
        """
        targets = [self._next.ports[target] for target in segment.to]
        are_grouped = all(target.relation.streams == (GROUPED,) for target in targets)
        is_final = segment.into is None and are_grouped
        if self.changing is not None:
            partial = self.changing.shown(segment, partial, is_final=is_final)
        if segment.into is not None:
            self.news[segment.into].append(self._as_news(segment.into, cascade, partial))
            return
        if counts:
            space = self.round.ports[segment.port].space
            self.made[space] += group_counts(partial.hashes, self.plan.groups)
        if self.plan.query.grouping is not None and are_grouped:
            table = partial_aggregates(self.plan, cascade, partial, hashed=not targets)
            if not targets:
                self.at_home.append(table)
            for target in segment.to:
                yield sent_aggregates(self._wire, self._next, target, table)
            return
        fetch = cascade.values(partial)
        if not targets:
            self.writer.write(result_table(self.plan, fetch, len(partial)))
        for target in segment.to:
            yield sent_partial(self._wire, self._next, target, partial, fetch)

    def _as_news(self, number: int, cascade: Cascade, partial: Partial) -> pa.RecordBatch:
        """What a join has made, as rows of a port, not sorted by time."""
        layout, fetch = self._wire.layout(self.round.ports[number]), cascade.values(partial)
        values = (
            pa.array(partial.deadline) if column == UNTIL else fetch(column)
            for column in layout.columns
        )
        typed = (value.cast(kind) for value, kind in zip(values, layout.types, strict=True))
        columns = [pa.array(partial.hashes), pa.array(partial.newest), *typed]
        return pa.RecordBatch.from_arrays(columns, schema=layout.schema())

    def _origin(self, port: Port, rows: pa.RecordBatch) -> Side:
        """The rows that a cascade starts from."""
        layout, window = self._wire.layout(port), self.plan.window_us(port.relation)
        history = self._history(port)
        if history is not None:
            (stream,) = port.relation.streams
            rows, _ = remembered(history, layout, stream, None, rows)
            layout = with_deadlines(layout)
        return Side(port.relation, layout, (rows,), window)

    def _side(self, probe: Probe, hashes: Hashes) -> Side:
        """What a step probes: a state, with or without this batch's rows of it."""
        state = self.plan.rounds.states[probe.state]
        layout, window = self._wire.layout(state), self.plan.window_us(state.relation)
        opened = self.held.open(probe.state)
        runs = tuple(pair.rows for pair in opened)
        guards = tuple(
            Guard(pair.run.oldest_us, pair.run.newest_us, pair.filter) for pair in opened
        )
        news = () if probe.news is None else (self.rows[probe.news],)
        history = self._history(state)
        if history is None:
            runs += news if probe.sees_new_rows else ()
        else:
            assert news, "the planner brings a history's news wherever it is probed"
            (stream,) = state.relation.streams
            touched = np.union1d(hashes, hashes_of(news[0]))
            old = touched_rows(runs, touched)
            rows, is_new = remembered(history, layout, stream, old, news[0])
            runs = (rows if probe.sees_new_rows else rows.filter(pa.array(~is_new)),)
            layout, guards = with_deadlines(layout), ()
        return Side(state.relation, layout, runs, window, guards)

    def _history(self, at: Port | State) -> History | None:
        if len(at.relation.streams) != 1:
            return None
        (stream,) = at.relation.streams
        return self.plan.query.streams[stream].history

    # Groups.

    @property
    def _groups_here(self) -> bool:
        return self.plan.rounds.grouped is not None and self.following is None

    def _group(self) -> None:
        """Take partial aggregates in, and show the groups of moments that are complete."""
        number, port = self.plan.rounds.grouped, self.plan.rounds.grouped_port
        assert number is not None, "only grouped queries have groups"
        schema = self._wire.layout(self.plan.rounds.states[number]).schema()
        fresh = _as_rows(self.at_home, schema) if port is None else self.rows[port]
        if fresh.num_rows:
            fresh = combine(self.plan, fresh, self.step.finalize_up_to_us)
        runs = [pair.rows for pair in self.held.open(number)]
        closed, closing = self.step.closed_us, self.step.finalize_up_to_us
        if closing is not None and (closed is None or closing > closed):
            for table in closing_results(self.plan, runs, closed, closing):
                self.writer.write(table)
        self._send_away([number])  # only now: what the groups had to show, they have shown
        self.held.insert(number, fresh)

    # Rows that came too late, or from too far ahead.

    def _write_late(self) -> tuple[ResultFile, ...]:
        """Keep refused rows, in a folder per stream, if the user wants them kept."""
        parts = []
        layouts = {port.stream: self._wire.layout(port) for port in reversed(self.round.ports)}
        refused: dict[int, list[pa.RecordBatch]] = {}
        for apart in (self.arrivals.late, self.arrivals.ahead):
            for stream, rows in apart.items():
                refused.setdefault(stream, []).append(rows)
        for stream, kinds in refused.items():
            rows = pa.concat_batches(kinds)
            if self.step.late is None or not rows.num_rows:
                continue
            table = late_table(self.plan, stream, layouts[stream], rows)
            folder = stream_folder(self.plan.query.streams[stream].alias)
            name = f"{folder}/part-{self.token}.parquet"
            writer = PartWriter(self.step.late, name, table.schema)
            writer.write(table)
            parts.append(writer.finish())
        return tuple(part for part in parts if part)


def _as_rows(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.RecordBatch:
    """Tables in the form of a run, but not sorted."""
    columns = [
        pa.chunked_array(
            [chunk for table in tables for chunk in table.column(place).chunks], kind
        ).combine_chunks()
        for place, kind in enumerate(schema.types)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
