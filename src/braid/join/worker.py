"""One worker's part of one batch: receive, probe, insert, and keep the state in shape.

`evaluate` is a function of its step and its rows. It changes nothing that a commit record
names, so it may run twice, or on two machines at once: whichever report the coordinator takes
is the one that counts, and the files of the others are swept.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from braid.join.arrivals import Arrivals, receive
from braid.join.probe import extend, start
from braid.join.results import PartWriter, late_table, result_table
from braid.model.failpoints import reach
from braid.state.commit import Part
from braid.state.log import LogFile
from braid.state.runs import Ladder, Run
from braid.state.store import DISK, MEMORY, RunStore
from braid.state.upkeep import OpenRun, Upkeep, open_ladder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    import pyarrow as pa

    from braid.join.plan import JoinPlan


@dataclass(frozen=True, slots=True)
class Step:
    """What one worker is asked to do with its rows of one batch."""

    plan: JoinPlan
    batch: int
    worker: int
    watermark_us: int | None
    newest_us: tuple[int | None, ...]
    ladders: tuple[Ladder, ...]
    results: Path
    late: Path | None
    host: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What a worker did, and the state that it leaves behind if the batch is committed."""

    worker: int
    host: str
    input_rows: int
    null_key_rows: int
    null_time_rows: int
    late_rows: int
    output_rows: int
    newest_us: tuple[int | None, ...]
    ladders: tuple[Ladder, ...]
    parts: tuple[Part, ...]
    late_parts: tuple[Part, ...]
    busy_ms: int
    rebuilt_runs: int

    @property
    def state_rows(self) -> int:
        """Rows in this worker's state."""
        return sum(run.rows for ladder in self.ladders for run in ladder)

    @property
    def memory_bytes(self) -> int:
        """Bytes of this worker's state in the memory tier."""
        return self._bytes_in(MEMORY)

    @property
    def disk_bytes(self) -> int:
        """Bytes of this worker's state in the disk tier."""
        return self._bytes_in(DISK)

    def to_json(self) -> dict[str, Any]:
        """The report as a JSON object."""
        return {
            **{name: getattr(self, name) for name in _PLAIN_FIELDS},
            "newest_us": list(self.newest_us),
            "ladders": [[run.to_json() for run in ladder] for ladder in self.ladders],
            "parts": [part.to_json() for part in self.parts],
            "late_parts": [part.to_json() for part in self.late_parts],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Report:
        """The inverse of `to_json`."""
        return cls(
            **{name: data[name] for name in _PLAIN_FIELDS},
            newest_us=tuple(data["newest_us"]),
            ladders=tuple(tuple(map(Run.from_json, ladder)) for ladder in data["ladders"]),
            parts=tuple(Part(*part) for part in data["parts"]),
            late_parts=tuple(Part(*part) for part in data["late_parts"]),
        )

    def _bytes_in(self, tier: str) -> int:
        return sum(run.length for ladder in self.ladders for run in ladder if run.tier == tier)


_PLAIN_FIELDS = (
    "worker",
    "host",
    "input_rows",
    "null_key_rows",
    "null_time_rows",
    "late_rows",
    "output_rows",
    "busy_ms",
    "rebuilt_runs",
)


def evaluate(step: Step, store: RunStore, batches: Iterable[pa.RecordBatch]) -> Report:
    """Join a batch's rows with the state and with each other, and insert them."""
    arrived = list(batches)
    began = time.monotonic()
    reach("rows received", step.batch)
    arrivals = receive(step.plan, arrived, step.watermark_us)
    del arrived
    _check_routing(step, store, arrivals)
    store.remove_others(step.ladders)
    state = _open_state(step, store)
    token = f"{step.batch}-{step.worker}-{os.urandom(4).hex()}"
    with ThreadPoolExecutor(1) as disk:
        # Inserting before probing is safe, for the probe looks at what was opened above;
        # it lets the log reach the disk while the probe computes.
        upkeep = Upkeep(store, LogFile(store.log / f"{token}.log"), token)
        ladders = _insert(step, upkeep, state, arrivals)
        logged = disk.submit(upkeep.log.write)
        part = _write_results(step, token, _results(step.plan, state, arrivals))
        late_parts = _write_late(step, token, arrivals)
        reach("results staged", step.batch)
        logged.result()
        reach("log written", step.batch)
    return Report(
        worker=step.worker,
        host=step.host,
        input_rows=arrivals.input_rows,
        null_key_rows=arrivals.null_key_rows,
        null_time_rows=arrivals.null_time_rows,
        late_rows=arrivals.late_rows,
        output_rows=part.rows if part else 0,
        newest_us=arrivals.newest_us([None] * len(ladders)),
        ladders=ladders,
        parts=(part,) if part else (),
        late_parts=late_parts,
        busy_ms=round((time.monotonic() - began) * 1000),
        rebuilt_runs=store.rebuilt_runs,
    )


def _check_routing(step: Step, store: RunStore, arrivals: Arrivals) -> None:
    """A row of a group that is not ours would miss its partners: better to stop."""
    for rows in arrivals.rows:
        if store.ownership.keep(rows, None).num_rows != rows.num_rows:
            raise AssertionError(f"worker {step.worker} was sent rows of a group it has not")


def _open_state(step: Step, store: RunStore) -> list[list[OpenRun]]:
    return [
        open_ladder(store, ladder, step.plan.horizon_us(stream, step.watermark_us))
        for stream, ladder in enumerate(step.ladders)
    ]


def _insert(
    step: Step, upkeep: Upkeep, state: Sequence[list[OpenRun]], arrivals: Arrivals
) -> tuple[Ladder, ...]:
    """The ladders after the batch.

    What is dead is judged by what this worker alone knows of the new watermark. That is never
    above the true one, which takes all workers' rows into account, so nothing alive is lost.
    """
    plan = step.plan
    watermark = plan.watermark_us(arrivals.newest_us(step.newest_us), step.watermark_us)
    return tuple(
        upkeep.insert(state[stream], arrivals.rows[stream], plan.horizon_us(stream, watermark))
        for stream in plan.streams
    )


def _results(
    plan: JoinPlan, state: Sequence[list[OpenRun]], arrivals: Arrivals
) -> Iterator[pa.Table]:
    """Every result whose latest arrival is in this batch.

    Arrival order is (batch, stream): the rows of stream i meet this batch's rows of the streams
    before it, and only older rows of the streams behind it.
    """
    for stream, arrived in enumerate(arrivals.rows):
        stored = {stream: plan.stored(stream, (arrived,))}
        for other in plan.probe_order(stream):
            runs = [pair.rows for pair in state[other]]
            if other < stream:
                runs.append(arrivals.rows[other])
            stored[other] = plan.stored(other, runs)
        partial = start(stream, arrived, plan.window_us(stream))
        for piece in extend(partial, plan.probe_order(stream), stored):
            yield result_table(plan, piece, stored)


def _write_results(step: Step, token: str, results: Iterable[pa.Table]) -> Part | None:
    writer = PartWriter(step.results, f"part-{token}.parquet", step.plan.result_schema)
    for table in results:
        writer.write(table)
    # One worker always leaves a file, so that an output without rows still has a schema.
    return writer.finish(even_if_empty=step.worker == 0)


def _write_late(step: Step, token: str, arrivals: Arrivals) -> tuple[Part, ...]:
    """Keep late rows, in a folder per stream, if the user wants them kept."""
    parts = []
    for stream, rows in enumerate(arrivals.late):
        if step.late is None or not rows.num_rows:
            continue
        table = late_table(step.plan, stream, rows)
        name = f"stream={step.plan.query.streams[stream].alias}/part-{token}.parquet"
        writer = PartWriter(step.late, name, table.schema)
        writer.write(table)
        parts.append(writer.finish())
    return tuple(part for part in parts if part)
