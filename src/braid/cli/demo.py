"""`braid demo`: three banks' offers, integrated while they stream in, and checked.

There is something to adapt to, on purpose. The first worker begins with most of the groups, and
must give some away to stay within its memory. The order of probes that a query begins with does
not suit banks of which one is busy and another is quiet. And half way through, the trade goes
over to the last bank and grows beyond all memory.
"""

import math
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

from braid.cli.news import sentence_of
from braid.cli.spark_start import start_spark, waiting
from braid.cli.stopping import see_through
from braid.engine.folder import files
from braid.events import Event, Migrated, Relocated, Spilled, require_folder
from braid.front import sinks
from braid.front.query import query
from braid.model.errors import BraidError
from braid.model.paths import local_path
from braid.workload import BANKS, offers, offers_spec

QUERY = """\
SELECT bank1.offerCurrency, bank1.offer,
       bank1.brokerName AS broker1, bank1.price AS price1,
       bank2.brokerName AS broker2, bank2.price AS price2,
       bank3.brokerName AS broker3, bank3.price AS price3
FROM bank1 [RANGE 30 SECONDS], bank2 [RANGE 30 SECONDS], bank3 [RANGE 30 SECONDS]
WHERE bank1.offerCurrency = bank2.offerCurrency AND bank2.offerCurrency = bank3.offerCurrency
  AND bank1.offer = bank2.offer AND bank2.offer = bank3.offer"""


_FILE_SECONDS = 5
_WINDOW_SECONDS = 30
_ROW_BYTES = 80  # of an offer in the state
_KINDS = {
    ("spill", "spills"): Spilled,
    ("relocation", "relocations"): Relocated,
    ("change of plan", "changes of plan"): Migrated,
}


def demo(
    batches: Annotated[
        int, typer.Option(help="How long to go on; 60 take about a minute.")
    ] = 60,
    rate: Annotated[float, typer.Option(help="Offers per second of a bank.")] = 2000.0,
    master: Annotated[str, typer.Option(help="Where Spark runs.")] = "local[*]",
    events: Annotated[
        Path | None,
        typer.Option(parser=local_path, metavar="FILE.jsonl", help="File to append events to."),
    ] = None,
) -> None:
    """Integrate three banks' offers with a live view, then compare with DuckDB."""
    if batches < 1:
        raise BraidError(
            f"a demo of {batches} batches has nothing to show", hint="give --batches 1 or more"
        )
    if not 0 < rate < math.inf:
        raise BraidError(
            f"at {rate:g} offers per second, the demo has nothing to show",
            hint="give a --rate above 0, such as 2000",
        )
    if events is not None:
        require_folder(events)
    with tempfile.TemporaryDirectory(prefix="braid-demo-") as name:
        folder = Path(name)
        typer.echo(f"{QUERY}\n")
        with waiting("the banks write their offers …"):
            _write_offers(folder, batches, rate)
        start_spark(master)
        bank1, bank2, bank3 = (files(folder / bank) for bank in BANKS)
        bound = query(
            QUERY, event_time="ts", lateness="1 second", bank1=bank1, bank2=bank2, bank3=bank3
        )
        out = folder / "out"
        needed = 3.1 * rate * _WINDOW_SECONDS * _ROW_BYTES  # until the trade grows
        running = bound.start(
            checkpoint=folder / "checkpoint",
            sink=sinks.parquet(out),
            events=events,
            workers=2,
            assign="0.7,0.3",
            memory=max(1, round(1.4 * needed / 2)),
            optimizer="exhaustive",
        )
        done = _Done(running.listen)
        see_through(running)
        if done.told():
            typer.echo(done.told())
        _compare(folder, out)


class _Done:
    """What a run has done about itself: of each kind how often, and the first sentence."""

    def __init__(self, listen: Callable[[Callable[[Event], None]], None]) -> None:
        self._sentences: dict[tuple[str, str], list[str]] = {kind: [] for kind in _KINDS}
        listen(self._on_event)

    def _on_event(self, event: Event) -> None:
        sentence = sentence_of(event) if _is_done(event) else None
        for name, kind in _KINDS.items():
            if isinstance(event, kind) and sentence is not None:
                self._sentences[name].append(sentence)

    def told(self) -> str:
        """A line for each kind of which there was something."""
        return "\n".join(
            f"1 {one}: {sentences[0]}"
            if len(sentences) == 1
            else f"{len(sentences)} {many}; the first: {sentences[0]}"
            for (one, many), sentences in self._sentences.items()
            if sentences
        )


def _is_done(event: Event) -> bool:
    """Whether something has been done, and not only begun, refused or given up."""
    match event:
        case Spilled(groups=groups):
            return groups > 0
        case Relocated(step=step):
            return step == "receive"
        case Migrated(step=step):
            return step == "end"
        case _:
            return False


def _write_offers(folder: Path, batches: int, rate: float) -> None:
    """Offers in event-time order give or take a second, a file every few seconds."""
    spec = offers_spec(
        rate,
        join_rate=1.0,
        tuple_range=max(100, round(60 * rate)),
        disorder_seconds=1.0,
        seed=1,
        handover_seconds=batches * _FILE_SECONDS / 2,
    )
    for bank in BANKS:
        (folder / bank).mkdir()
        for number in range(batches):
            lower = number * _FILE_SECONDS * 1_000_000
            table = offers(spec, bank, lower, lower + _FILE_SECONDS * 1_000_000)
            pq.write_table(table, folder / bank / f"{number:05d}.parquet")


def _compare(folder: Path, out: Path) -> None:
    """Say whether DuckDB, given all rows at once, finds the same results."""
    try:
        import duckdb
    except ImportError:
        raise BraidError(
            "DuckDB is not installed, so the results cannot be compared",
            hint="pip install duckdb",
        ) from None
    with duckdb.connect() as db:
        db.execute("SET enable_progress_bar = false")
        count, digest = db.execute(_digest(_our_rows(out))).fetchall()[0]
        expected = db.execute(_digest(_their_rows(folder))).fetchall()[0]
    if (count, digest) != expected:
        raise BraidError(f"{count:,} results, but DuckDB finds {expected[0]:,} or others")
    typer.echo(f"{count:,} results, equal to DuckDB's over the same offers: exact")


def _digest(rows: str) -> str:
    """A multiset of rows as a count and a sum of hashes, which does not mind their order."""
    return f"SELECT count(*), sum(hash(r)::HUGEINT) FROM ({rows}) r"


def _our_rows(out: Path) -> str:
    columns = "offerCurrency, offer, broker1, price1, broker2, price2, broker3, price3"
    return f"SELECT {columns} FROM '{out}/__batch=*/*.parquet'"


def _their_rows(folder: Path) -> str:
    banks = ", ".join(
        f"(SELECT *, {slot} AS slot FROM '{folder}/{bank}/*.parquet') AS {bank}"
        for bank, slot in zip(BANKS, _slots(), strict=True)
    )
    select, _, conditions = QUERY.partition("FROM")[0], *QUERY.partition("WHERE")[1:]
    return f"{select} FROM {banks} WHERE {conditions} AND {' AND '.join(_windows())}"


def _slots() -> Iterator[str]:
    """Slots of two windows: partners of a row lie in one of two, so DuckDB compares few rows.

    A row of the first bank is in one slot, and one of the others in both of its own: so those
    that lie within a window meet once.
    """
    at, window = "epoch_us(ts)", _WINDOW_SECONDS * 1_000_000
    yield f"{at} // {2 * window}"
    for _ in BANKS[1:]:
        yield f"unnest([({at} - {window}) // {2 * window}, ({at} + {window}) // {2 * window}])"


def _windows() -> Iterator[str]:
    """No two members of a result are more than 30 seconds apart."""
    for bank in BANKS[1:]:
        yield f"{BANKS[0]}.slot = {bank}.slot"
    newest = f"greatest({', '.join(f'epoch_us({bank}.ts)' for bank in BANKS)})"
    for bank in BANKS:
        yield f"{newest} - epoch_us({bank}.ts) <= 30000000"
