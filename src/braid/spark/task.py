"""What runs inside a Spark task: one worker's step, from Arrow batches to one report.

A task holds nothing between batches. It finds its worker's runs in the folders of its executor,
or makes them again from the log.
"""

from __future__ import annotations

import json
import os
import signal
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark import TaskContext

from braid.evaluator import ValueOverflow
from braid.evaluator.kinds import is_number
from braid.model.errors import BraidError
from braid.model.expression import GROUPED, columns_of
from braid.plan.explain import show_expression
from braid.record.orders import TaskOrders
from braid.spark.heap import settle_in
from braid.state.groups import marked
from braid.state.store import DISK, MEMORY
from braid.worker.memory_tier import claim_memory
from braid.worker.outgoing import sent_report
from braid.worker.round_orders import round_orders
from braid.worker.round_task import evaluate
from braid.worker.stores import worker_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from braid.plan.join_plan import JoinPlan
    from braid.state.store import RunStore

REPORT = "report string"
"""The schema of what a task returns: one JSON object."""


@dataclass(frozen=True, slots=True)
class Task:
    """What the tasks of one batch have in common; all else they find in `orders`."""

    plan: JoinPlan
    checkpoint: Path
    incarnation: str
    orders: Path

    def of_round(
        self, number: int
    ) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """The function for `mapInArrow` in one round; partition i is worker i."""

        def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            context = TaskContext.get()
            assert context is not None, "a task runs inside Spark"
            worker = context.partitionId()
            settle_in()
            # Ctrl-C reaches every process of a terminal; the driver decides what comes of it.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            orders = TaskOrders.read(orders_of(self.orders, worker))
            try:
                host = f"{socket.gethostname()}/{executor_name()}"
                step = round_orders(self.plan, orders, number, worker, host)
                stores = executor_stores(
                    self.checkpoint,
                    self.incarnation,
                    [marked(ranges, self.plan.groups) for ranges in orders.owned],
                    worker,
                    orders.own.memory_bytes,
                    is_firm=orders.own.firm,
                )
                yield from evaluate(step, stores, batches)
            except BraidError as error:
                # An error that a person can put right: retrying would only repeat it.
                yield self._refusal(number, error)

        return run

    def _refusal(self, number: int, error: BraidError) -> pa.RecordBatch:
        """An error in place of a report."""
        hint = self._cast_in(error) if isinstance(error, ValueOverflow) else error.hint
        text = json.dumps({"error": error.message, "hint": hint})
        later = self.plan.rounds.rounds[number + 1 :]
        if not later:
            return pa.RecordBatch.from_pydict({"report": [text]})
        return sent_report(self.plan.wire, later[0], text)

    def _cast_in(self, overflow: ValueOverflow) -> str | None:
        """The CAST that cures an overflow, of a column that it names if there is one."""
        types = self.plan.wire.types
        numbers = [
            column
            for column in (columns_of(overflow.call) if overflow.call else ())
            if column.stream != GROUPED and is_number(types[column])
        ]
        if not numbers:
            return overflow.hint
        shown = show_expression(self.plan.query, numbers[0])
        return (
            f"write CAST({shown} AS DOUBLE) there, or CAST it to a wider DECIMAL; "
            "a query that has changed needs a checkpoint of its own"
        )


def orders_of(batch: Path, worker: int) -> Path:
    """The file with a worker's orders for a batch."""
    return batch.with_name(f"{batch.name}-{worker}.json")


def executor_stores(
    checkpoint: Path,
    incarnation: str,
    owned: Sequence[NDArray[np.bool_]],
    worker: int,
    memory_bytes: int | None,
    *,
    is_firm: bool,
) -> dict[int, RunStore]:
    """A worker's stores on this executor, by space; their folders are made if need be."""
    tiers, refusal = worker_home(checkpoint, incarnation, worker)
    return worker_stores(
        owned,
        tiers,
        checkpoint / "log",
        memory_bytes=memory_bytes,
        is_firm=is_firm,
        refusal=refusal,
    )


def executor_name() -> str:
    """A name that no other executor has, on this machine or another."""
    return local_folder().name


def local_folder() -> Path:
    """The folder that Spark gave to this executor, and removes when it ends."""
    return Path(os.environ["SPARK_LOCAL_DIRS"].split(",")[0])


def worker_home(checkpoint: Path, incarnation: str, worker: int) -> tuple[dict[str, Path], str]:
    """A worker's folders on this executor by tier, best first, and why none is in memory."""
    disk = local_folder() / "braid" / str(worker)
    disk.mkdir(0o700, parents=True, exist_ok=True)
    try:
        memory = claim_memory(checkpoint, incarnation, executor_name()) / str(worker)
        memory.mkdir(0o700, exist_ok=True)
    except BraidError as error:
        return {DISK: disk}, error.message
    except OSError as error:
        return {DISK: disk}, f"{error.strerror}: {error.filename}"
    return {MEMORY: memory, DISK: disk}, ""
