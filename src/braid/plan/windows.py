"""How long rows must be kept, from windows and from bounds between event times.

Both are constraints of one kind, `ts_j - ts_i <= d`: a window says it of one stream and every
other, a bound of one pair. The shortest paths between the streams are the tightest such
constraints, and the longest of those that leave a stream says for how long a row of it may
matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.model.query import UNBOUNDED_US

if TYPE_CHECKING:
    from braid.model.query import Query


def kept_us(query: Query) -> tuple[int, ...]:
    """For each stream, by how much at most another member of a result is younger."""
    streams = range(len(query.streams))
    most = [[query.streams[i].window_us if i != j else 0 for j in streams] for i in streams]
    for bound in query.bounds:
        row = most[bound.other]
        row[bound.stream] = min(row[bound.stream], bound.most_us)
    for middle in streams:
        for i in streams:
            for j in streams:
                most[i][j] = min(most[i][j], most[i][middle] + most[middle][j])
    return tuple(min(max(0, *most[i]), UNBOUNDED_US) for i in streams)
