"""A flipped bit or a truncation, in any kind of file, is found before any result is shown.

A run file is the exception: it is made again from the log, and the results stay exact. Every
other damage is an error that names the file and a cure, and leaves all files as they were.
"""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from braid.engine.engine import Engine
from braid.engine.idleness import Idleness
from braid.engine.sink import LastBatch
from braid.events import Journal
from braid.front.sinks import ParquetSink
from braid.model.errors import BraidError, DamagedFile
from braid.record.checkpoint import Checkpoint, Identity, read_sealed
from braid.record.commit import Commit
from braid.record.enact import RecordDraft
from braid.record.names import NameList
from braid.state import store as store_module
from tests.driven import Driven
from tests.oracle.answers import counted, oracle
from tests.unit.state.making import equal_join, flip_bit, quick_folder, rewrite, stream_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from braid.record.commit import ResultFile

LAW = settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
PLAN = equal_join(2, 400_000, lateness_us=100_000)
NOTHING = cast("Any", None)  # in place of Spark, which no start gets as far as to use
BATCHES = 6


def arriving(number: int) -> dict[int, pa.Table]:
    random = np.random.default_rng(number)
    lower = number * 100
    return {stream: stream_rows(random, 40, lower, lower + 100, 12) for stream in PLAN.streams}


def expected(batches: int) -> Any:
    arrived = [arriving(number) for number in range(batches)]
    rows = tuple(pa.concat_tables(batch[s] for batch in arrived) for s in PLAN.streams)
    return counted(oracle(PLAN.query, rows, "ts"))


class Killed(Exception):
    """What ends a run as if it were killed."""


class Dying(ParquetSink):
    """A sink that shows nothing, and whose run is killed when it is to show its last batch."""

    def publish(self, batch: int, staged: Path, parts: Sequence[ResultFile]) -> None:
        if batch == BATCHES - 1:
            raise Killed


@pytest.fixture(scope="module")
def stopped() -> Iterator[Path]:
    """What a run leaves that was killed after its last commit, before it could publish that."""
    with quick_folder() as folder:
        engine = Driven(PLAN, folder, workers=2, sink=Dying(folder / "out"))
        names = NameList.open(engine.checkpoint.names, None)
        position = names.append({"a": ["0.csv"]})
        for number in range(BATCHES - 1):
            engine.batch(arriving(number), position=position)
        with pytest.raises(Killed):
            engine.batch(arriving(BATCHES - 1), position=position)
        engine.checkpoint.sweep(engine.commit)  # a record that is left of before is no matter
        engine.checkpoint.close()
        for other in ("memory", "disk"):
            shutil.rmtree(folder / other)
        yield folder


def start(folder: Path) -> None:
    """The steps of a start, up to where results would show."""
    identity = Identity(PLAN.query.text, "columns", PLAN.groups)
    checkpoint = Checkpoint.open(folder / "checkpoint", identity, NOTHING)
    try:
        commit = checkpoint.last_commit()
        NameList.open(checkpoint.names, commit.position)
        sink = ParquetSink(folder / "out")
        is_published = checkpoint.is_published(commit.batch)
        last = LastBatch(commit.batch, commit.staged, commit.parts, is_published)
        sink.open(checkpoint.folder, checkpoint.id, last)
        Engine(
            checkpoint=checkpoint,
            committed=commit,
            draft=RecordDraft(commit, PLAN),
            cluster=NOTHING,
            sink=sink,
            late=None,
            bad=None,
            idleness=Idleness(2, None),
            control=NOTHING,
            journal=Journal(),
            costs=NOTHING,
            driver_clock=NOTHING,
        ).publish_last()
    finally:
        checkpoint.close()


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): xxhash.xxh3_64_hexdigest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


KINDS = {
    "a log file": "checkpoint/log/*.log",
    "the commit record": "checkpoint/commits/*.json",
    "the checkpoint's identity": "checkpoint/braid.json",
    "the note of what was published": "checkpoint/published.json",
    "the list of files read": "checkpoint/read.jsonl",
    "a staged part": "out/.staging/*/*.parquet",
    "the output's marker": "out/.braid.json",
}


def bytes_that_count(folder: Path, path: Path) -> range:
    """All bytes of a file; of a log file, those of one section that the commit names."""
    if path.suffix != ".log":
        return range(path.stat().st_size)
    commit = Commit.from_json(read_sealed(next(folder.glob("checkpoint/commits/*.json"))))
    section = max((s for s in commit.sections() if s.file == path.name), key=lambda s: s.offset)
    return range(section.offset, section.offset + section.length)


def flip_some_bit(path: Path, counting: range, data: st.DataObject) -> None:
    flip_bit(path, data.draw(st.sampled_from(counting), "byte"))


def truncate(path: Path, counting: range, data: st.DataObject) -> None:
    length = data.draw(st.integers(0, counting[-1]), "length")
    rewrite(path, path.read_bytes()[:length])


@pytest.mark.parametrize("damage", [flip_some_bit, truncate])
@pytest.mark.parametrize("kind", KINDS)
@settings(LAW)
@given(data=st.data())
def test_damage_is_found_before_any_result_shows(
    stopped: Path,
    kind: str,
    damage: Callable[[Path, range, st.DataObject], None],
    data: st.DataObject,
) -> None:
    with copied(stopped) as folder:
        path = data.draw(st.sampled_from(sorted(folder.glob(KINDS[kind]))))
        damage(path, bytes_that_count(folder, path), data)
        assert_refused(folder, path)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "the output's marker"])
def test_a_missing_file_is_found_before_any_result_shows(stopped: Path, kind: str) -> None:
    with copied(stopped) as folder:
        path = next(folder.glob(KINDS[kind]))
        path.unlink()
        assert_refused(folder, path.parent if kind == "the commit record" else path)


def test_a_missing_marker_of_the_output_is_written_again_beside_the_last_batch(
    stopped: Path,
) -> None:
    with copied(stopped) as folder:
        start(folder)
        marker = folder / "out" / ".braid.json"
        before = marker.read_bytes()
        marker.unlink()
        start(folder)
        assert marker.read_bytes() == before
        marker.unlink()
        (folder / "out" / f"__batch={BATCHES - 1}").rename(folder / "out" / "__batch=0")
        with pytest.raises(BraidError, match="already holds batches") as refused:
            start(folder)
        assert ".braid.json was lost" in str(refused.value.hint)


def test_an_empty_log_file_is_found_before_any_result_shows(stopped: Path) -> None:
    with copied(stopped) as folder:
        path = next(folder.glob(KINDS["a log file"]))
        rewrite(path, b"")
        assert_refused(folder, path)


def test_undamaged_files_start_and_show_the_results_that_were_promised(stopped: Path) -> None:
    with copied(stopped) as folder:
        start(folder)
        (shown,) = folder.glob("out/__batch=*")
        assert shown.name == f"__batch={BATCHES - 1}"
        start(folder)
        assert list(folder.glob("out/__batch=*")) == [shown]


@pytest.mark.parametrize("kind", KINDS)
def test_restoring_a_damaged_file_from_a_copy_is_a_cure(stopped: Path, kind: str) -> None:
    with copied(stopped) as folder:
        path = next(folder.glob(KINDS[kind]))
        good = path.read_bytes()
        rewrite(path, b"\0" * len(good))
        assert_refused(folder, path)
        rewrite(path, good)
        start(folder)
        assert len(list(folder.glob("out/__batch=*"))) == 1


@settings(LAW, max_examples=12)
@given(seed=st.integers(0, 2**32))
def test_damaged_run_files_are_made_again_and_results_stay_exact(seed: int) -> None:
    random = np.random.default_rng(seed)
    with quick_folder() as folder:
        engine = Driven(PLAN, folder, workers=2)
        for number in range(BATCHES):
            engine.batch(arriving(number))
            store_module._verified.clear()  # as if each batch had a process of its own
            for path in sorted(folder.glob("memory/*/*")):
                place = int(random.integers(0, path.stat().st_size))
                match random.integers(0, 4):
                    case 0:
                        flip_bit(path, place)
                    case 1:
                        rewrite(path, path.read_bytes()[:place])
                    case 2:
                        path.unlink()
        assert counted(engine.all_results()) == expected(BATCHES)
        engine.checkpoint.close()


@contextmanager
def copied(stopped: Path) -> Iterator[Path]:
    with quick_folder() as folder:
        yield Path(shutil.copytree(stopped, folder, dirs_exist_ok=True))


def assert_refused(folder: Path, path: Path) -> None:
    before = digest(folder)
    with pytest.raises(DamagedFile) as caught:
        start(folder)
    assert str(path) in caught.value.message
    assert "restore" in str(caught.value.hint)
    assert digest(folder) == before
    assert not list(folder.glob("out/__batch=*"))
