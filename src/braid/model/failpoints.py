"""Places where a test may have the engine killed.

A production run passes them at the cost of one look into the environment at import. With
`BRAID_FAILPOINT="log written@3"` the process that reaches that step of batch 3 is killed on the
spot, as SIGKILL does it: no clean-up runs. Workers pass their steps in every round of a batch:
`log written@3/1` means the second, and `log written@*` whichever comes first. Another process
is killed before, if `BRAID_FAILPOINT_PID` names it: the driver of the worker that reaches the
step, say, or, with the word `executor`, the worker's own. With `BRAID_FAILPOINT_ONCE`, a file
that is not there yet, only the first to come dies.
"""

from __future__ import annotations

import os
import signal

WORKER_STEPS = (
    "rows received",  # after the shuffle
    "results staged",
    "log written",  # rows are durable, but no commit names them
)
"""What every worker passes in every round."""

OVERFLOW_STEPS = (
    "groups pushed out",  # of memory, but the record does not say so yet
    "owed results made",  # but not committed
)
"""What workers pass that spill and clean up."""

MOVE_STEPS = (
    "groups taken out",  # of the sender's states, in a batch; the log has all of it
    "state read",  # by the sender, to be sent
    "state installed",  # by the receiver, but nobody knows
    "groups reactivated",  # by the driver, but the record does not say so yet
)
"""What is passed when groups move from one worker to another."""

CHANGE_STEPS = (
    "change begun",  # by the driver, but the record does not say so yet
    "states filled",  # by a worker, for some groups, but not committed
    "change ended",  # by the driver, but the record does not say so yet
)
"""What is passed when the plan changes."""

DRIVER_STEPS = (
    "batch evaluated",  # all workers have reported
    "commit written",  # results are promised, but not yet to be seen
    "results published",  # they are to be seen, but not yet noted as such
    "publishing noted",
    "log swept",
)

STEPS = WORKER_STEPS + DRIVER_STEPS
"""All steps, in the order in which a batch passes them."""

_wanted, _, _where = os.environ.get("BRAID_FAILPOINT", "").partition("@")


def reach(step: str, batch: int, *, round_number: int | None = None) -> None:
    """Die here, if a test asked for it."""
    if _wanted and step == _wanted and _where in ("*", f"{batch}", f"{batch}/{round_number}"):
        if (mark := os.environ.get("BRAID_FAILPOINT_ONCE")) and not _is_first(mark):
            return
        other = os.environ.get("BRAID_FAILPOINT_PID")
        if other:
            os.kill(_executor() if other == "executor" else int(other), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)


def _executor() -> int:
    """The process that a Python worker works for: the parent of the one that forked it."""
    with open(f"/proc/{os.getppid()}/stat") as file:
        return int(file.read().rpartition(")")[2].split()[1])


def _is_first(mark: str) -> bool:
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True
