"""What the engine did about a run, in one sentence each: for people who wonder why."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.events import (
    BatchRetried,
    CleanedUp,
    ClockPutBack,
    Displaced,
    FileAwaited,
    Migrated,
    Refused,
    Relocated,
    Replanned,
    RowsHeld,
    Spilled,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from braid.events import Event

_TOLD_STEPS = {"send": "go", "receive": "have come"}


def sentence_of(event: Event) -> str | None:
    """A sentence for an event that changes how the run goes on, or None for another.

    >>> sentence_of(Spilled(7, 0, 0, 12, 1_500_000, "above its budget", {}))
    'worker 0 pushed 12 groups (1.5 MB) to disk: above its budget'
    """
    match event:
        case BatchRetried(batch, reason):
            return f"batch {batch} is tried again: {reason}"
        case Spilled(worker=worker, groups=0, reason=reason):
            return f"worker {worker} keeps in memory what should go to disk: {reason}"
        case Spilled(worker=worker, groups=groups, bytes=size, reason=reason):
            what = f"{groups:,} groups ({bytes_text(size)})"
            return f"worker {worker} pushed {what} to disk{why(reason)}"
        case Displaced(host=host, reason=reason):
            return f"{host} keeps state on disk, as its memory refuses it: {reason}"
        case Relocated(step=step) if step in _TOLD_STEPS:
            what = f"{event.groups:,} groups ({bytes_text(event.bytes)}) {_TOLD_STEPS[step]}"
            who = f"from worker {event.sender} to worker {event.receiver}"
            return f"{what} {who}{why(event.reason)}"
        case RowsHeld(worker=worker, waiting_rows=waiting, reason=reason):
            return f"{waiting:,} rows wait for worker {worker}{why(reason)}"
        case Replanned(old=old, new=None, reason=reason, workers=workers):
            return f"the plan{_whose(workers)} stays {old}{why(reason)}"
        case Replanned(new=new, reason=reason, workers=workers):
            return f"a better plan{_whose(workers, 'for')} is {new}{why(reason)}"
        case Migrated(step="fill"):
            return None
        case Migrated(step=step, way=way, old=old, new=new, reason=reason, workers=workers):
            verb = {
                "start": "changes",
                "end": "has changed",
                "refused": "does not change",
                "given up": "does not change after all",
            }[step]
            return f"the plan{_whose(workers)} {verb} from {old} to {new} by {way}{why(reason)}"
        case CleanedUp(worker=worker, groups=groups, results=results):
            return f"worker {worker} cleaned up {groups:,} groups: {results:,} results"
        case FileAwaited(stream=stream, file=file):
            return f"stream {stream} waits for {file}, which is not complete"
        case ClockPutBack(before=before, now=now):
            return (
                f"the clock said {before} at the last batch and says {now} now: rows too far "
                "ahead of the present clock are refused"
            )
        case Refused(proposal=proposal, reason=reason):
            return f"refused: {proposal}{why(reason)}"
        case _:
            return None


def _whose(workers: Sequence[int], word: str = "of") -> str:
    """Which workers a plan is of, unless it is all.

    >>> _whose((0, 3))
    ' of workers 0, 3'
    """
    if not workers:
        return ""
    return f" {word} worker{'s' if len(workers) > 1 else ''} {', '.join(map(str, workers))}"


def why(reason: str) -> str:
    """A reason as the end of a sentence, if there is one."""
    return f": {reason}" if reason else ""


def bytes_text(count: int) -> str:
    """A size for people.

    >>> bytes_text(1_500_000)
    '1.5 MB'
    """
    size = float(count)
    for unit in ("B", "KB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"
