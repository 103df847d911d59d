"""What people do wrong with files and folders: one clear error each, and nothing is lost."""

from __future__ import annotations

import datetime as dt
import fcntl
import json
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
import xxhash

from tests.spark.commands import (
    COLUMNS,
    EPOCH,
    FORMATS,
    QUERY,
    TIME,
    Place,
    Row,
    Told,
    assert_refused,
    many_commands,
    write_parquet,
)
from tests.unit.state.making import flip_bit, rewrite, small_disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

pytestmark = pytest.mark.spark

COMMAND = Path(sys.executable).with_name("braid")


@pytest.fixture(scope="module")
def braid() -> Iterator[Callable[..., Told]]:
    with many_commands() as run:
        yield run


def joined(streams: dict[str, list[Row]]) -> Counter[tuple[Any, ...]]:
    """DuckDB's answer to the query over all rows."""
    with duckdb.connect() as db:
        for name, rows in streams.items():
            db.register(name, pa.Table.from_pylist(rows, COLUMNS))
        times = ", ".join(f"epoch_us({name}.ts)" for name in streams)
        windows = [f"greatest({times}) - epoch_us({n}.ts) <= 3000000" for n in streams]
        sql = (
            "SELECT a.k, a.v, b.v, c.v FROM a, b, c WHERE a.k = b.k AND b.k = c.k "
            "AND a.ts IS NOT NULL AND b.ts IS NOT NULL AND c.ts IS NOT NULL AND "
        )
        return Counter(db.sql(sql + " AND ".join(windows)).fetchall())


def expected(place: Place, files: int) -> Counter[tuple[Any, ...]]:
    rows = {s: [r for n in range(files) for r in place.rows(s, n)] for s in FORMATS}
    return joined(rows)


def digest(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): xxhash.xxh3_64_hexdigest(path.read_bytes())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path).fill(files=2)


@pytest.fixture(scope="module")
def finished(
    braid: Callable[..., Told], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Place]:
    """A run that is done; whoever uses it must leave it as it was."""
    place = Place(tmp_path_factory.mktemp("finished")).fill(files=2)
    told = braid(*place.command())
    assert told.code == 0, told
    assert place.results() == expected(place, 2)
    before = digest(place.folder)
    yield place
    assert digest(place.folder) == before


# --- before Spark is needed


def test_a_stream_that_has_no_folder_is_named(place: Place, braid: Callable[..., Told]) -> None:
    told = braid(*place.command(QUERY.replace("FROM a", "FROM orders")))
    assert_refused(told, "'orders'", "--stream orders=DIR")


def test_an_unknown_unit_of_a_window_is_pointed_at(
    place: Place, braid: Callable[..., Told]
) -> None:
    told = braid(*place.command(QUERY.replace("3 SECONDS", "3 PARSECS", 1)))
    assert_refused(told, "'PARSECS'", "^^^^^^^", "MINUTES")


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("a", ["--stream 'a'", "NAME=DIR"]),
        ("=somewhere", ["NAME=DIR"]),
        ("b=elsewhere", ["'b' twice"]),
        ("d=nowhere", ["nowhere does not exist", "check the path"]),
    ],
)
def test_a_stream_option_that_makes_no_sense_is_named(
    place: Place, braid: Callable[..., Told], option: str, words: list[str]
) -> None:
    assert_refused(braid(*place.command(), "--stream", option), *words)
    assert not place.checkpoint.exists()


def test_a_column_that_the_folders_of_the_output_would_hide_is_refused(
    place: Place, braid: Callable[..., Told]
) -> None:
    told = braid(*place.command(QUERY.replace("av", "__batch")))
    assert_refused(told, place.out, "'__batch'", "another name")
    assert not place.out.exists()
    assert not place.checkpoint.exists()


def test_an_empty_folder_is_named_with_the_endings_that_count(
    place: Place, braid: Callable[..., Told]
) -> None:
    (place.folder / "empty").mkdir()
    told = braid(*place.command(), "--stream", f"d={place.folder / 'empty'}")
    assert_refused(told, place.folder / "empty", ".parquet")


def test_a_folder_of_mixed_formats_is_named_with_them(
    place: Place, braid: Callable[..., Told]
) -> None:
    folder = place.file("a", 0).parent
    (folder / "x.csv").touch()
    assert_refused(braid(*place.command()), folder, "csv and parquet", "one format")


@pytest.mark.parametrize(
    ("name", "data", "why"),
    [
        ("missing.sql", None, "No such file"),
        ("binary.sql", b"\xff\xfe\x00S", "not UTF-8"),
        (".", None, "directory"),
    ],
)
def test_a_query_file_that_cannot_be_read_is_named(
    place: Place, braid: Callable[..., Told], name: str, data: bytes | None, why: str
) -> None:
    path = place.folder / name
    if data is not None:
        path.write_bytes(data)
    told = braid("run", path, *place.command()[3:])
    assert_refused(told, path, why, "-q")


# --- before a run starts


@pytest.mark.parametrize(
    ("query", "options", "words"),
    [
        (QUERY.replace("a.v", "a.w"), [], ["'w' of stream 'a'", "^", "known: k, ts, v"]),
        (QUERY.replace("c.k", "c.name"), [], ["b.k is int64, but c.name is string", "CAST"]),
        (QUERY, ["--event-time", "when"], ["no column 'when'", "known: k, ts, v"]),
        (QUERY, ["--event-time", "v"], ["'v' of stream 'a' is int64, not a timestamp"]),
        (QUERY, ["--lateness", "soon"], ["'soon'", "5 seconds"]),
    ],
)
def test_a_query_that_does_not_fit_its_streams_is_refused_before_anything_is_made(
    place: Place,
    braid: Callable[..., Told],
    query: str,
    options: list[str],
    words: list[str],
) -> None:
    assert_refused(braid(*place.command(query), *options), *words)
    assert not place.checkpoint.exists()
    assert not place.out.exists()


@pytest.mark.parametrize(
    ("stream", "data", "words"),
    [
        ("a", b"no Parquet", ["0.parquet"]),
        ("b", b"", ["0.csv", "is empty"]),
        ("c", b'{"k": 1, "ts"\n', ["0.json", "no row of it is whole"]),
    ],
)
def test_a_first_file_without_columns_is_named(
    place: Place, braid: Callable[..., Told], stream: str, data: bytes, words: list[str]
) -> None:
    place.file(stream, 0).write_bytes(data)
    assert_refused(braid(*place.command()), place.file(stream, 0).parent, *words, "mend")


def test_a_checkpoint_of_another_query_is_left_alone(
    finished: Place, braid: Callable[..., Told]
) -> None:
    told = braid(*finished.command(QUERY.replace("3 SECONDS", "4 SECONDS")))
    assert_refused(told, finished.checkpoint, "another query", "3 SECONDS", "4 SECONDS")


def test_a_checkpoint_of_another_number_of_groups_is_left_alone(
    finished: Place, braid: Callable[..., Told]
) -> None:
    told = braid(*finished.command(), "--groups", "16")
    assert_refused(told, finished.checkpoint, "another number of groups", "256", "16")


def test_a_checkpoint_in_use_is_left_alone_until_it_is_free(
    finished: Place, braid: Callable[..., Told]
) -> None:
    with open(finished.checkpoint / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert_refused(braid(*finished.command()), finished.checkpoint, "in use", "stop")
    assert braid(*finished.command()).code == 0


def test_a_folder_that_is_no_checkpoint_is_left_alone(
    finished: Place, braid: Callable[..., Told]
) -> None:
    told = braid(*finished.command(checkpoint=finished.out, out=finished.folder / "new"))
    assert_refused(told, finished.out, "not a Braid checkpoint", "new folder")


@pytest.mark.parametrize("file", ["braid.json", "commits/*.json", "log/*.log"])
def test_a_damaged_checkpoint_is_named_and_mending_it_is_a_cure(
    finished: Place, braid: Callable[..., Told], file: str
) -> None:
    path = next(finished.checkpoint.glob(file))
    good = path.read_bytes()
    flip_bit(path, len(good) // 2)
    damaged = digest(finished.folder)
    told = braid(*finished.command())
    assert digest(finished.folder) == damaged
    rewrite(path, good)
    assert_refused(told, path, "checksum", "restore")
    assert braid(*finished.command()).code == 0


def test_a_mistyped_output_of_a_checkpoint_is_refused_with_both_names(
    finished: Place, tmp_path: Path, braid: Callable[..., Told]
) -> None:
    typo = tmp_path / "uot"
    assert_refused(braid(*finished.command(out=typo)), finished.out, typo, "copy that file")
    assert not typo.exists()


def test_the_results_of_another_checkpoint_are_left_alone(
    finished: Place, place: Place, braid: Callable[..., Told]
) -> None:
    told = braid(*place.command(out=finished.out))
    assert_refused(told, finished.out, "another checkpoint", "new folder")


def test_results_and_late_rows_in_one_folder_are_refused(
    place: Place, braid: Callable[..., Told]
) -> None:
    (place.folder / "link").symlink_to(place.out)
    for late in (place.out, place.out / ".." / place.out.name, place.folder / "link"):
        assert_refused(braid(*place.command(), "--late", late), late, "late rows")
        assert not place.checkpoint.exists()


def test_nothing_but_its_own_lies_in_the_checkpoint(
    place: Place, braid: Callable[..., Told]
) -> None:
    for option in ("--out", "--late"):
        told = braid(*place.command(), option, place.checkpoint / "x")
        assert_refused(told, "lies in the checkpoint", place.checkpoint / "x")
    assert not place.checkpoint.exists()


@pytest.mark.parametrize("what", ["out", "checkpoint"])
def test_a_place_that_may_not_be_written_is_named(
    place: Place, braid: Callable[..., Told], what: str
) -> None:
    (place.folder / "file").touch()
    nowhere = place.folder / "file" / "below a file"
    assert_refused(braid(*place.command(**{what: nowhere})), nowhere, "may write to")


# --- half way


def without_a_column(path: Path) -> None:
    write_parquet(path, [{"k": 1, "ts": EPOCH}], pa.schema([("k", pa.int64()), ("ts", TIME)]))


def with_another_type(path: Path) -> None:
    columns = pa.schema([("k", pa.int64()), ("ts", TIME), ("v", pa.string())])
    write_parquet(path, [{"k": 1, "ts": EPOCH, "v": "x"}], columns)


def with_another_header(path: Path) -> None:
    path.write_text(path.read_text().replace("k,ts,v", "k,ts,w", 1))


def with_a_word_for_a_number(path: Path) -> None:
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, "3,2024-01-01 00:00:00+00:00,many,x"]))


def with_another_field(path: Path) -> None:
    path.write_text(path.read_text().replace('"v"', '"w"'))


def with_half_a_line(path: Path) -> None:
    path.write_text(path.read_text() + '{"k": 3, "ts": "2024-01-')


HALF_WAY: list[tuple[str, Callable[[Path], None], str]] = [
    ("a", without_a_column, "it has no column 'v'"),
    ("a", with_another_type, "its column 'v' is string, not int64"),
    ("b", with_another_header, "has other columns than the files before it"),
    ("b", with_a_word_for_a_number, "a row does not fit the columns"),
    ("c", with_another_field, "it has a column 'w'"),
    ("c", with_half_a_line, "a row does not fit the columns"),
]


def test_a_bad_file_half_way_stops_the_run_behind_the_last_good_batch_until_it_is_mended(
    tmp_path: Path, braid: Callable[..., Told]
) -> None:
    files = 1 + len(HALF_WAY)
    place = Place(tmp_path).fill(files)
    good = {}
    for number, (stream, spoil, _) in enumerate(HALF_WAY, 1):
        path = place.file(stream, number)
        good[path] = path.read_bytes()
        spoil(path)
    for number, (stream, _, why) in enumerate(HALF_WAY, 1):
        path = place.file(stream, number)
        assert_refused(braid(*place.command()), path, why, "start again")
        assert place.batches() == list(range(number)), "the batches before the bad file"
        path.write_bytes(good[path])
    told = braid(*place.command())
    assert told.code == 0, told
    assert place.batches() == list(range(files))
    assert place.results() == expected(place, files)


@pytest.mark.parametrize("where", ["checkpoint", "out"])
def test_a_full_disk_stops_the_run_until_there_is_room_again(
    tmp_path: Path, braid: Callable[..., Told], where: str
) -> None:
    files = 4
    place = Place(tmp_path).fill(files)
    disk = tmp_path / "disk"
    with small_disk(disk, "40k" if where == "checkpoint" else "12k"):
        command = place.command(**{where: disk / where})
        assert_refused(braid(*command), f"no space left in {disk}", "free some space")
        first = sorted((disk if where == "out" else tmp_path).glob("out/__batch=*"))
        assert 0 < len(first) < files, "it got some way"
        assert_refused(braid(*command), f"no space left in {disk}")
        subprocess.run(["mount", "-o", "remount,size=4m", disk], check=True)
        told = braid(*command)
        assert told.code == 0, told
        done = Place(disk if where == "out" else tmp_path)
        assert done.batches() == list(range(files))
        assert done.results() == expected(place, files)


def test_null_keys_and_null_times_are_counted_and_not_joined(
    place: Place, braid: Callable[..., Told]
) -> None:
    rows = {s: [r for n in (0, 1) for r in place.rows(s, n)] for s in FORMATS}
    nulls = 0
    for stream in FORMATS:
        for number, name in ((0, "k"), (1, "ts")):
            given = place.rows(stream, number)
            for row in given[::5]:
                row[name] = None
                nulls += 1
            place.write(stream, number, given)
            rows[stream][number * 12 : number * 12 + 12] = given
    told = braid(*place.command(), "--events", place.folder / "events.jsonl")
    assert told.code == 0, told
    assert f"dropped 0 late and {nulls} null rows" in told.out
    assert place.results() == joined(rows)
    events = map(json.loads, (place.folder / "events.jsonl").read_text().splitlines())
    batches = [event for event in events if event["event"] == "batch"]
    assert sum(b["null_key_rows"] for b in batches) == nulls // 2
    assert sum(b["null_time_rows"] for b in batches) == nulls // 2


def test_times_out_of_range_are_counted_apart_from_null_times_and_not_joined(
    place: Place, braid: Callable[..., Told]
) -> None:
    last = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=(1 << 56) - 1)
    strange = [last + dt.timedelta(microseconds=1), last.replace(year=9999), None]
    streams = {}
    for stream in FORMATS:
        rows = place.rows(stream, 1)
        for row, moment in zip(rows, strange, strict=False):
            row["ts"] = moment
        rows[-1]["ts"] = last  # fits, and joins with those of the other streams
        place.write(stream, 1, rows)
        streams[stream] = place.rows(stream, 0) + [
            row for row in rows if row["ts"] is not None and row["ts"] <= last
        ]
    told = braid(*place.command(), "--events", place.folder / "events.jsonl")
    assert told.code == 0, told
    assert "dropped 0 late and 3 null rows, 6 with a time out of range" in told.out
    assert place.results() == joined(streams)
    events = map(json.loads, (place.folder / "events.jsonl").read_text().splitlines())
    batches = [event for event in events if event["event"] == "batch"]
    assert sum(b["out_of_range_time_rows"] for b in batches) == 6
    assert sum(b["null_time_rows"] for b in batches) == 3


def test_nothing_is_written_where_the_input_is_read(
    place: Place, braid: Callable[..., Told]
) -> None:
    before = digest(place.folder)
    folder = place.file("c", 0).parent
    (place.folder / "link").symlink_to(folder)
    for inside in (folder, folder / "results", place.folder / "link" / "results"):
        for what, option in {
            "output": "--out",
            "checkpoint": "--checkpoint",
            "late rows": "--late",
        }.items():
            told = braid(*place.command(), option, inside)
            assert_refused(told, what, inside, "'c'", "outside of all streams' folders")
    for inside in (folder / "e.jsonl", place.folder / "link" / "e.jsonl"):
        told = braid(*place.command(), "--events", inside)
        assert_refused(told, "events file", inside, "outside of all streams' folders")
    told = braid(*place.command(checkpoint=place.folder))
    assert_refused(told, place.folder, "lies in the checkpoint")
    assert digest(place.folder) == before


def test_an_alias_cannot_lead_late_rows_out_of_their_folder(
    place: Place, braid: Callable[..., Told]
) -> None:
    late, alias = place.folder / "kept" / "late", "p/../../../x"
    place.write("a", 2, place.rows("a", 0)[:1])  # older than the file before it
    query = QUERY.replace("a.", f"`{alias}`.")
    query = query.replace("SECONDS], b", f"SECONDS] AS `{alias}`, b", 1)
    told = braid(*place.command(query), "--late", late)
    assert told.code == 0, told
    assert "dropped 1 late" in told.out
    (kept,) = late.parent.parent.rglob("stream=*/*.parquet")
    assert kept.parent.parent.parent == late
    assert kept.parent.name == "stream=p%2F..%2F..%2F..%2Fx"
    with duckdb.connect() as db:
        found = db.execute(f"SELECT stream FROM '{late}/*/*/*.parquet'").fetchall()
    assert found == [(alias,)]


def test_the_command_itself_ends_with_a_code_and_one_error_and_can_be_repeated(
    tmp_path: Path, braid: Callable[..., Told]
) -> None:
    place = Place(tmp_path).fill(files=2)
    good = place.file("c", 1).read_bytes()
    with_half_a_line(place.file("c", 1))
    command = [COMMAND, *place.command()]
    done = subprocess.run(command, capture_output=True, text=True)
    assert_refused(Told(done.returncode, done.stdout, done.stderr), place.file("c", 1))
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 3, "a batch, the error and its cure"
    place.file("c", 1).write_bytes(good)
    assert braid(*place.command()).code == 0
    assert place.results() == expected(place, 2)


def test_an_older_checkpoint_beside_newer_output_is_refused_and_nothing_is_lost(
    braid: Callable[..., Told], place: Place
) -> None:
    assert braid(*place.command()).code == 0
    known = place.batches()
    shutil.copytree(place.checkpoint, place.folder / "copy")
    place.fill(files=4)
    assert braid(*place.command()).code == 0
    newer = sorted(set(place.batches()) - set(known))
    assert newer

    shutil.rmtree(place.checkpoint)
    shutil.copytree(place.folder / "copy", place.checkpoint)
    place.fill(files=6)
    before = digest(place.out)
    assert_refused(braid(*place.command()), place.out, f"batch {newer[-1]}", "older copy")
    assert digest(place.out) == before

    for batch in newer:
        shutil.rmtree(place.out / f"__batch={batch}")
    assert braid(*place.command()).code == 0
    assert place.results() == expected(place, files=6)


def test_an_output_older_than_the_checkpoint_is_told(
    braid: Callable[..., Told], place: Place
) -> None:
    assert braid(*place.command()).code == 0
    shutil.rmtree(place.out / f"__batch={place.batches()[-1]}")
    told = braid(*place.command())
    assert told.code == 0, told
    assert f"ends with batch {place.batches()[-1]}, and batch" in told.err
    assert "lost, as in an older copy" in told.err
