"""Conditions on two event times as bounds on their difference: `ts_a - ts_b <= most`.

Event times are whole microseconds, so `<` is `<=` with one microsecond less.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from braid.cql.constant import constant
from braid.cql.term import ColumnName, Term, Written, bare, function_call
from braid.model.duration import LONGEST_US
from braid.model.query import TimeBound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.cql.event_time import EventTime
    from braid.cql.scope import Scope

_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
_NEGATED = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_MICROSECOND = dt.timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class _Line:
    """A sum of event times, each so many times, and of an interval.

    That of a wall clock is another moment once something is added to it, or compared with
    another wall clock: Spark takes it for an instant only where it meets one.
    """

    times: Counter[int]
    more_us: int
    is_wall: bool = False

    def plus(self, other: _Line, sign: int = 1) -> _Line:
        times = Counter(self.times)
        for stream, count in other.times.items():
            times[stream] += sign * count
        return _Line(times, self.more_us + sign * other.more_us)

    def kind(self) -> int:
        """1 for a moment, 0 for an interval, and another number for nonsense."""
        return sum(self.times.values())


@dataclass(frozen=True, slots=True)
class TimeReader:
    """Finds bounds in conditions on the event times of a query's streams."""

    scope: Scope
    times: Sequence[EventTime]

    def bounds(self, condition: Written) -> list[TimeBound] | None:
        """The bounds that say the same as a condition, or None if it is of another kind."""
        term = bare(condition)
        if not isinstance(term, Term):
            return None
        if term.shape == "NOT _":
            inner = bare(term.operands[0])
            sign = _sign(inner)
            if not isinstance(inner, Term) or sign not in _NEGATED:
                return None
            return self._compared(_NEGATED[sign], *inner.operands)
        sign = _sign(term)
        return self._compared(sign, *term.operands) if sign in _MIRRORED else None

    def _compared(self, sign: str, left: Written, right: Written) -> list[TimeBound] | None:
        absolute = function_call(right)
        if absolute is not None and absolute[0] == "abs":
            return self._compared(_MIRRORED[sign], right, left)
        absolute = function_call(left)
        if absolute is not None and absolute[0] == "abs" and len(absolute[1]) == 1:
            return self._absolute(sign, absolute[1][0], right)
        one, other = self._line(left), self._line(right)
        if one is None or other is None or one.kind() != other.kind():
            return None
        if one.kind() not in (0, 1) or (one.is_wall and other.is_wall):
            return None
        return _bounds(sign, one.plus(other, -1))

    def _absolute(self, sign: str, inner: Written, most: Written) -> list[TimeBound] | None:
        """`abs(a.ts - b.ts) <= most`: a bound on either side."""
        line, limit = self._line(inner), self._line(most)
        if line is None or limit is None or sign not in ("<", "<="):
            return None
        if line.kind() or limit.kind() or any(limit.times.values()):
            return None
        mirrored = _Line(Counter(), 0).plus(line, -1)
        both = [_bounds(sign, each.plus(limit, -1)) for each in (line, mirrored)]
        return [bound for bounds in both for bound in bounds or ()] if all(both) else None

    def _line(self, written: Written) -> _Line | None:
        inner = bare(written)
        if isinstance(inner, ColumnName):
            found = self.scope.column(inner)
            time = self.times[found.stream]
            if found.column not in (time.column, time.wall) or found.fields:
                return None
            return _Line(Counter([found.stream]), 0, is_wall=found.column == time.wall)
        value = constant(inner)
        if value is not None:
            length = value.value
            return _interval(length) if isinstance(length, dt.timedelta) else None
        if inner.shape not in ("_ + _", "_ - _", "- _"):
            return None
        lines = [self._line(each) for each in inner.operands]
        sign = 1 if inner.shape == "_ + _" else -1
        total = _Line(Counter(), 0) if len(lines) == 1 else lines[0]
        if total is None or lines[-1] is None:
            return None
        if total.is_wall or lines[-1].is_wall:
            moments = (total.kind(), lines[-1].kind()) == (1, 1) and inner.shape == "_ - _"
            if not moments or total.is_wall == lines[-1].is_wall:
                return None
        return total.plus(lines[-1], sign)


def tightest(bounds: Sequence[TimeBound]) -> tuple[TimeBound, ...]:
    """One bound for every two streams, in an order that no spelling changes."""
    least: dict[tuple[int, int], int] = {}
    for bound in bounds:
        pair = (bound.stream, bound.other)
        least[pair] = min(bound.most_us, least.get(pair, bound.most_us))
    return tuple(TimeBound(*pair, most_us) for pair, most_us in sorted(least.items()))


def first_impossible(windows_us: Sequence[int], bounds: Sequence[TimeBound]) -> int | None:
    """The number of the first bound that no rows can meet, given windows and earlier bounds.

    The windows bound the times as well: no member of a result is more than `windows_us[i]`
    younger than its member of stream i.
    """
    streams = range(len(windows_us))
    most = [[0 if i == j else windows_us[j] for j in streams] for i in streams]
    for number, bound in enumerate(bounds):
        i, j, limit = bound.stream, bound.other, bound.most_us
        if most[j][i] + limit < 0:
            return number
        for x in streams:
            for y in streams:
                most[x][y] = min(most[x][y], most[x][i] + limit + most[j][y])
    return None


def _sign(written: Written) -> str:
    """What stands between two operands."""
    if not isinstance(written, Term) or len(written.operands) != 2 or len(written.pieces) != 3:
        return ""
    return str(written.pieces[1])


def _interval(length: dt.timedelta) -> _Line:
    return _Line(Counter(), length // _MICROSECOND)


def _bounds(sign: str, line: _Line) -> list[TimeBound] | None:
    """`line <sign> 0` as bounds, if it is of two streams' times."""
    times = {stream: count for stream, count in line.times.items() if count}
    if sorted(times.values()) != [-1, 1] or abs(line.more_us) > LONGEST_US:
        return None
    later = next(stream for stream, count in times.items() if count == 1)
    earlier = next(stream for stream, count in times.items() if count == -1)
    strict = sign in ("<", ">")
    found = []
    if sign in ("<", "<=", "="):
        found.append(TimeBound(later, earlier, -line.more_us - strict))
    if sign in (">", ">=", "="):
        found.append(TimeBound(earlier, later, line.more_us - strict))
    return found
