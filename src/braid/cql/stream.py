"""The streams of a query with their windows: how long, how often, how many rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.cql.scope import matching, nearest
from braid.cql.types import check_flat
from braid.model.query import History

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.cql.scope import Scope
    from braid.cql.snippet import Snippet
    from braid.cql.syntax import FromItem
    from braid.cql.term import Name
    from braid.cql.window import WrittenWindow


def slide_us(windows: Sequence[WrittenWindow]) -> int:
    """How often groups are due: as written, or else the smallest unit of all windows."""
    for window in windows:
        if window.rows is not None:
            raise window.place.out_of_scope(
                "GROUP BY over a window of ROWS",
                "a row leaves it when others come, not at a slide",
                hint="use [RANGE n unit], or select the rows without GROUP BY",
            )
    written = [window for window in windows if window.slide_us is not None]
    for window in written[1:]:
        if window.slide_us != written[0].slide_us and window.slide_place is not None:
            raise window.slide_place.error(
                "two streams have different slides", hint="one SLIDE is enough for all"
            )
    defaults = [window.default_us for window in windows if window.default_us is not None]
    found = written[0].slide_us if written else min(defaults, default=None)
    if found is None:
        raise windows[0].place.error(
            "nothing says how often the groups are due",
            hint="say it with a slide, such as [UNBOUNDED SLIDE 1 MINUTE]",
        )
    return found


def refuse_slide(windows: Sequence[WrittenWindow]) -> None:
    """Raise if a query without groups has a slide."""
    for window in windows:
        if window.slide_place is not None:
            raise window.slide_place.error(
                "SLIDE is for groups: other results leave as soon as their rows are there",
                hint="leave it out, or use GROUP BY or an aggregate",
            )


def history(
    scope: Scope, stream: int, item: FromItem, key: Sequence[Snippet]
) -> History | None:
    """`PARTITION BY … ROWS n` of a stream that is joined on the given expressions."""
    window = item.window
    if window.rows is None:
        return None
    found = tuple(dict.fromkeys(_column(scope, stream, name) for name in window.partition))
    missing = sorted({column for part in key for column in part.needs} - set(found))
    if missing:
        both = ", ".join([*found, *missing])
        raise window.place.error(
            f"PARTITION BY leaves out {', '.join(missing)}, which the stream is joined on: "
            "the rows of a partition must meet on one worker",
            hint=f"write [PARTITION BY {both} ROWS {window.rows}]",
        )
    return History(found, window.rows)


def _column(scope: Scope, stream: int, name: Name) -> str:
    names = scope.schemas[stream].names
    found = matching(name.text, names)
    alias = scope.aliases[stream]
    if not found:
        hint = nearest(name.text, names)
        raise name.place.error(f"unknown column {name.text!r} of stream {alias!r}", hint=hint)
    if len(found) > 1:
        raise name.place.error(f"ambiguous column {name.text!r}", hint="rename one of the two")
    column: str = names[found[0]]
    check_flat(scope.type_of(stream, column), f"{alias}.{column} in PARTITION BY", name.place)
    return column
