"""What the workers are told about a batch, in a file that they read when its job runs.

So the job itself can be planned while the batches ahead of it still run, when none of this is
known. The file is of no use to anyone after the batch, and is not part of what recovery reads.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

from braid.record.commit import Commit
from braid.record.worker_orders import WorkerOrders
from braid.state.files import write_whole


@dataclass(frozen=True, slots=True)
class Orders:
    """The state to start from, what to do about it, and where results and late rows go."""

    commit: Commit  # of the batch before
    worker_orders: tuple[WorkerOrders, ...]  # by worker
    finalize_up_to_us: int | None
    results: Path
    late: Path | None
    bad: Path | None = None  # for rows that no expression can be computed for
    ahead_after_us: int | None = None

    def write(self, path: Path) -> None:
        """Let the workers know."""
        text = json.dumps(
            {
                # What groups have given so far is the driver's business, and long.
                "commit": replace(self.commit, tallies=()).to_json(),
                "chores": [each.to_json() for each in self.worker_orders],
                "closing_us": self.finalize_up_to_us,
                "results": str(self.results),
                "late": None if self.late is None else str(self.late),
                "bad": None if self.bad is None else str(self.bad),
                "ahead_after_us": self.ahead_after_us,
            }
        )
        write_whole(path, text.encode(), durable=False)

    @classmethod
    def read(cls, path: Path) -> Orders:
        """What was written."""
        data = json.loads(path.read_bytes())
        return cls(
            commit=Commit.from_json(data["commit"]),
            worker_orders=tuple(map(WorkerOrders.from_json, data["chores"])),
            finalize_up_to_us=data["closing_us"],
            results=Path(data["results"]),
            late=None if data["late"] is None else Path(data["late"]),
            bad=None if data["bad"] is None else Path(data["bad"]),
            ahead_after_us=data["ahead_after_us"],
        )
