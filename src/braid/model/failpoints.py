"""Places where a test may have the engine killed.

A production run passes them at the cost of one look into the environment at import. With
`BRAID_FAILPOINT="log written@3"` the process that reaches that step of batch 3 is killed on the
spot, as SIGKILL does it: no clean-up runs. `BRAID_FAILPOINT_PID` names another process to kill
first, such as the driver of the worker that reaches the step.
"""

from __future__ import annotations

import os
import signal

STEPS = (
    "rows received",  # by a worker, after the shuffle
    "results staged",  # by a worker
    "log written",  # by a worker: rows are durable, but no commit names them
    "batch evaluated",  # by the driver: all workers have reported
    "commit written",  # by the driver: results are promised, but not yet to be seen
    "results published",  # by the driver: they are to be seen, but not yet noted as such
    "publishing noted",  # by the driver
    "log swept",  # by the driver
)
"""All steps, in the order in which a batch passes them."""

_wanted, _, _batch = os.environ.get("BRAID_FAILPOINT", "").partition("@")


def reach(step: str, batch: int) -> None:
    """Die here, if a test asked for it."""
    if _wanted and step == _wanted and batch == int(_batch or 0):
        other = os.environ.get("BRAID_FAILPOINT_PID")
        if other:
            os.kill(int(other), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
