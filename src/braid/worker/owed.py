"""What generations owe: the results whose members are not all of one generation.

Generations are merged one after the other, as a view is maintained: `old` is all that has been
merged, `new` is the next. A result that is owed has members of both. Let its members, in the
order in which a segment probes, begin with just p of one side; then the next is of the other
side, and those behind it may be of either. So each is made once, by one choice of side and p,
and a plain cascade makes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.worker.probe import Cascade, Side

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from braid.plan.join_plan import JoinPlan
    from braid.plan.rounds import Segment
    from braid.worker.probe import Partial

    StateRows = Mapping[int, Sequence[pa.RecordBatch]]
    """The rows of a generation, by state."""


def owed_results(
    plan: JoinPlan, segment: Segment, origin: int, generations: Sequence[StateRows]
) -> Iterator[tuple[Cascade, Partial]]:
    """All that these generations owe, of a join whose only segment from `origin` this is."""
    merged: dict[int, list[pa.RecordBatch]] = {state: [] for state in generations[0]}
    for new in generations:
        if any(merged.values()):
            yield from _between(plan, segment, origin, merged, new)
        for state, runs in new.items():
            merged[state].extend(runs)


def _between(
    plan: JoinPlan, segment: Segment, origin: int, old: StateRows, new: StateRows
) -> Iterator[tuple[Cascade, Partial]]:
    states = [origin, *(step.state for step in segment.steps)]
    exact = plan.wire.exact[plan.rounds.states[origin].space]
    for side, other in ((old, new), (new, old)):
        for alike in range(1, len(states)):
            runs = [
                *(tuple(side[state]) for state in states[:alike]),
                tuple(other[states[alike]]),
                *((*side[state], *other[state]) for state in states[alike + 1 :]),
            ]
            if not all(runs):
                continue
            later = tuple(map(_side, [plan] * len(states), states[1:], runs[1:]))
            for start in runs[0]:
                first = _side(plan, origin, (start,))
                cascade = Cascade(plan, exact, (first, *later), segment.steps)
                for partial in cascade.run():
                    yield cascade, partial


def _side(plan: JoinPlan, number: int, runs: tuple[pa.RecordBatch, ...]) -> Side:
    state = plan.rounds.states[number]
    window = plan.window_us(state.relation)
    return Side(state.relation, plan.wire.layout(state), runs, window)
