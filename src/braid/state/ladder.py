"""The ladder: how a stream's runs stay few, and do not outlive their window by much.

Three rules, all of bounded work:

* a run of which all rows are out of reach is dropped whole;
* the newest runs merge while their sizes do not fall off geometrically, as in a binary counter,
  so a row is rewritten log-many times and there are log-many small runs. A merge stops at
  `LARGEST_MERGE_ROWS`, which bounds the work of a batch, at `LARGEST_MERGE_BYTES`, for Arrow
  cannot put together more than 2 GB of a column of texts, and at a part of the window's length,
  for a run that covers much time keeps its dead rows long;
* should dead rows exceed a quarter of the state all the same, runs are rewritten without them.

Here are only the decisions, on numbers; `braid.state.upkeep` carries them out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from braid.state.horizon import Horizon
    from braid.state.runs import Ladder

LARGEST_MERGE_ROWS = 4_000_000
LARGEST_MERGE_BYTES = 1 << 30
SPAN_SHARE = 8  # a merged run covers at most this part of the time that state is kept for
DEAD_SHARE = 4  # rewriting pays once this part of the rows is dead
SEAL_SECTIONS = 16  # a run made from more log sections than this is logged anew, as one


def without_expired(ladder: Ladder, horizon: Horizon) -> Ladder:
    """The runs that still hold a row which a future row may reach."""
    return tuple(run for run in ladder if not horizon.is_behind(run))


def merge_from(ladder: Ladder, horizon: Horizon) -> int | None:
    """The place of the first of the newest runs that should become one run, if any should."""
    first = len(ladder) - 1
    if first < 1:
        return None
    rows, length = ladder[first].rows, ladder[first].length
    while first > 0 and _may_join(ladder, first - 1, rows, length, horizon.time_us):
        first -= 1
        rows, length = rows + ladder[first].rows, length + ladder[first].length
    return first if first < len(ladder) - 1 else None


def _may_join(
    ladder: Ladder, place: int, rows: int, length: int, horizon_us: int | None
) -> bool:
    """Whether the run at `place` should merge with all the younger ones.

    These have so many `rows`, and are of that `length` in bytes.
    """
    run = ladder[place]
    if run.rows > 2 * rows or run.rows + rows > LARGEST_MERGE_ROWS:
        return False
    if run.length + length > LARGEST_MERGE_BYTES:
        return False
    if horizon_us is None:
        return True
    runs = ladder[place:]
    newest = max(r.newest_us for r in runs)
    span = newest - min(r.oldest_us for r in runs)
    # Runs that overlap in time anyway, as disorder makes them, lose nothing by merging.
    widest = max(r.span_us for r in runs)
    return span <= max((newest - horizon_us) // SPAN_SHARE, widest * 5 // 4)


def most_dead(ladder: Ladder, horizon: Horizon, written: int) -> int | None:
    """The place of the run that most deserves to be rewritten without its dead rows, if any.

    A batch that has `written` rows already writes so many more at most as one merge may.
    """
    dead = [horizon.dead_rows(run) for run in ladder]
    if sum(dead) * DEAD_SHARE <= sum(run.rows for run in ladder):
        return None
    place = dead.index(max(dead))
    if written and written + ladder[place].rows > LARGEST_MERGE_ROWS:
        return None
    return place


def living_rows(ladder: Ladder, horizon: Horizon) -> int:
    """About how many rows a future row may still reach."""
    kept = without_expired(ladder, horizon)
    return sum(run.rows - horizon.dead_rows(run) for run in kept)
