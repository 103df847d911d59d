"""The sinks there are: a folder of Parquet files, a function, this process's memory."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from braid.engine.sink import STAGING
from braid.events import GapFound
from braid.model.errors import BraidError, DamagedFile
from braid.model.paths import local_path
from braid.model.shown import Shown
from braid.record.checkpoint import read_sealed, sealed, write_sealed
from braid.state.files import PENDING, checksum, room_in, sync_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from braid.engine.sink import LastBatch
    from braid.record.commit import ResultFile
    from braid.spark.sources import Frame


BATCH = "__batch"
"""Folders are called after this and a batch's number; readers take it for a column."""

_MARKER = ".braid.json"  # inside the output
_RESULTS = "results"  # inside the checkpoint
_STAGED_NAME = re.compile(r"\d+-[0-9a-f]{8}")
_OLD_BATCH = "batch"  # in outputs that were begun when folders had no other name


class _Staging(Shown):
    """A folder with a folder for each attempt at a batch, by a run on some checkpoint."""

    _staging = Path()
    _checkpoint, _checkpoint_id = Path(), ""

    def stage(self, batch: int) -> Path:
        """A new folder; what earlier attempts left is removed."""
        self.clear()
        return self._staging / f"{batch}-{uuid.uuid4().hex[:8]}"

    def clear(self) -> None:
        """Remove all that is staged."""
        if self._staging.is_dir():
            for path in self._staging.iterdir():
                shutil.rmtree(path, ignore_errors=True)

    def _found(self, staged: Path) -> Path:
        """Where a staged folder is now; it may have moved with everything around it.

        Or a sink of an earlier run had it: in the checkpoint, or in an output of it. Nothing
        else is looked at, whatever a record says, for files that it does not name are removed.
        """
        here = self._staging / staged.name
        if not _STAGED_NAME.fullmatch(staged.name):
            raise _damaged_part(staged, "its name is not that of staged results")
        places = [here, self._checkpoint / _RESULTS / staged.name]
        if staged.parent.name == STAGING:
            owner, _ = _read_marker_of(staged.parent.with_name(_MARKER))
            places += [staged] if owner == self._checkpoint_id else []
        return next((place for place in places if place.is_dir()), here)


class ParquetSink(_Staging):
    """A folder `__batch=N/` of Parquet files per batch, which appears by one rename.

    An output that was begun with folders `batch=N/` goes on with them.
    """

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        """Results go below `folder`."""
        self.folder = local_path(folder).absolute()  # executors work in other folders
        self._staging = self.folder / STAGING  # on the same disk: a rename publishes
        self._marker = self.folder / _MARKER
        self._column = BATCH

    def check_columns(self, columns: Iterable[str], *others: str) -> None:
        """Refuse columns that the folders' names would hide; `others` are folders below ours.

        An output of older folders stays as it was.
        """
        self._read_marker()
        taken = {BATCH, *others} if self._column == BATCH else set()
        for column in columns:
            if column.lower() in taken:
                raise BraidError(
                    f"the output {self.folder} cannot have a column called {column!r}: its "
                    f"folders {column.lower()}=… would hide it",
                    hint=f"give the column another name, such as {column.strip('_')}_2",
                )

    def _facts(self) -> dict[str, object]:
        return {"folder": self.folder}

    def open(self, checkpoint: Path, checkpoint_id: str, last: LastBatch) -> GapFound | None:
        """Make the folder ours, and tell whether it lacks the last batch."""
        self._checkpoint, self._checkpoint_id = checkpoint, checkpoint_id
        if self.folder.exists() and not self.folder.is_dir():
            raise BraidError(
                f"{self.folder} is a file; results need a folder",
                hint="give the name of a new folder",
            )
        owner = self._read_marker()
        if owner is None:
            if not self._has_lost_marker(last):
                self._refuse_strangers(last)
                self._refuse_another(last)
            with room_in(self.folder):
                self._staging.mkdir(parents=True, exist_ok=True)
            write_sealed(self._marker, self._marking())
        elif owner != checkpoint_id:
            raise BraidError(
                f"the folder {self.folder} holds the results of another checkpoint",
                hint="give a new folder for the results, or continue that checkpoint",
            )
        self._refuse_newer(last.number)
        return self._gap(last)

    def _marking(self) -> dict[str, Any]:
        """What the marker says."""
        return {"checkpoint": self._checkpoint_id, "folders": self._column}

    def _place(self, batch: int) -> Path:
        """The folder of a published batch."""
        return self.folder / f"{self._column}={batch}"

    def _read_marker(self) -> str | None:
        """The checkpoint whose results the folder holds, if any; also learn its layout."""
        owner, self._column = _read_marker_of(self._marker)
        return owner

    def _has_lost_marker(self, last: LastBatch) -> bool:
        """Whether the folder has the checkpoint's last batch; learn the layout by it.

        Copies may lack the marker, as those of `cp -r out/* copy` do.
        """
        for name in (BATCH, _OLD_BATCH):
            place = self.folder / f"{name}={last.number}"
            if last.parts and _has_parts(place, last.parts):
                _check_parts(place, last.parts)
                self._column = name
                return True
        return False

    def _gap(self, last: LastBatch) -> GapFound | None:
        """Compare the last batch with its commit; it may have been moved away, which is told.

        If it is yet to be published, publishing compares it.
        """
        place = self._place(last.number)
        if not last.is_published:
            return None
        if place.exists():
            _refuse_others(place, last.parts, "go on without these results")
            return None
        if last.output is None or not last.parts:  # it was never here
            return None
        newest = max(self._batches(), default=None)
        found = "has no batches" if newest is None else f"ends with batch {newest}"
        return GapFound(
            batch=last.number,
            folder=str(self.folder),
            newest=newest,
            reason=f"the folder {self.folder} {found}, and batch {last.number} was shown "
            "there: batches were moved away since, or are lost, as in an older copy",
        )

    def _refuse_newer(self, batch: int) -> None:
        """Refuse results of batches that the checkpoint does not know: it is an older copy.

        Its next batches would have the numbers of theirs, and other results.
        """
        newest = max(self._batches(), default=batch)
        if newest > batch:
            raise BraidError(
                f"the folder {self.folder} has results of batch {newest}, but the checkpoint "
                f"{self._checkpoint} ends with batch {batch}: it is an older copy",
                hint="restore the newest copy of the checkpoint; or move the folders after "
                f"{self._column}={batch} away, for the run makes their results again",
            )

    def _refuse_another(self, last: LastBatch) -> None:
        """Refuse to go on in a new folder, for the results so far are in an old one, or lost.

        A folder that was moved has brought its marker along.
        """
        before = last.output
        if before is None:
            return
        if _read_marker_of(before / _MARKER)[0] == self._checkpoint_id:
            raise BraidError(
                f"the checkpoint {self._checkpoint} has its output in {before}, not in "
                f"{self.folder}",
                hint=f"go on with {before}; if it has moved, its file {_MARKER} "
                f"belongs to it; to go on in {self.folder} without the results so far, copy "
                "that file there",
            )
        raise BraidError(
            f"the output {before} of the checkpoint {self._checkpoint} is gone: it has no file "
            f"{_MARKER}",
            hint="give the folder that it is in now, or restore it from a copy with that file; "
            f"to go on in {self.folder} without the results so far: {self._marking_command()}",
        )

    def _marking_command(self) -> str:
        """How to write the marker by hand."""
        folder, marker = shlex.quote(str(self.folder)), shlex.quote(str(self._marker))
        line = sealed(self._marking()).decode().strip()
        return f"mkdir -p {folder} && echo '{line}' > {marker}"

    def _batches(self) -> Iterator[int]:
        """The numbers of all batches that have been published."""
        for path in self.folder.glob(f"{self._column}=*"):
            number = path.name.removeprefix(f"{self._column}=")
            if number.isdecimal():
                yield int(number)

    def _refuse_strangers(self, last: LastBatch) -> None:
        """Refuse batches that nobody knows; they may be ours, without their marker."""
        for name in (BATCH, _OLD_BATCH):
            if next(self.folder.glob(f"{name}=*"), None) is None:
                continue
            hint = "give a new folder for the results"
            if last.output is not None:
                self._column = name
                hint = (
                    f"if they are of the checkpoint {self._checkpoint}, its file {_MARKER} was "
                    "lost: restore it from where they come from, or write it anew: "
                    f"{self._marking_command()}"
                )
            raise BraidError(
                f"the folder {self.folder} already holds batches of another run", hint=hint
            )

    def publish(self, batch: int, staged: Path, parts: Sequence[ResultFile]) -> None:
        """Rename the staged folder, stripped of what no commit names, into place."""
        place = self._place(batch)
        if place.exists():
            _refuse_others(place, parts, "have its results made again")
            _check_parts(place, parts)
        elif parts:
            staged = self._found(staged)
            keep_only(staged, parts)
            with room_in(self.folder):
                os.rename(self._brought_here(staged), place)
            sync_folder(self.folder)

    def _brought_here(self, staged: Path) -> Path:
        """The staged folder, on our own disk though an earlier run had another for results."""
        here = self._staging / staged.name
        if staged != here:
            pending = here.with_name(f"{here.name}{PENDING}")
            shutil.rmtree(pending, ignore_errors=True)  # of a copy that was cut off
            shutil.copytree(staged, pending).rename(here)
        return here


class _StagedInCheckpoint(_Staging):
    """What sinks have in common that keep no files of their own."""

    def open(self, checkpoint: Path, checkpoint_id: str, last: LastBatch) -> None:
        """Stage results beside the checkpoint."""
        self._checkpoint, self._checkpoint_id = checkpoint, checkpoint_id
        self._staging = checkpoint / _RESULTS


class CallbackSink(_StagedInCheckpoint):
    """Calls a function with each batch's results as a DataFrame, and the batch's number.

    After a crash the function may be called again with the last batch; it should know by
    the number whether it has had it. But if an older copy of the checkpoint is restored, the
    numbers after its last one come again with other results: what was kept of these is to be
    removed first.
    """

    def __init__(self, function: Callable[[Frame, int], object]) -> None:
        """Results go to `function`."""
        if not callable(function):
            raise BraidError(
                f"braid.sinks.callback takes a function, not {function!r}",
                hint="give one of a DataFrame and the number of its batch",
            )
        self.function = function
        self.read: Callable[[Path], Frame] | None = None  # known once a run begins

    def _facts(self) -> dict[str, object]:
        return {"function": getattr(self.function, "__qualname__", self.function)}

    def publish(self, batch: int, staged: Path, parts: Sequence[ResultFile]) -> None:
        """Call the function; its results stay readable until it returns."""
        staged = self._found(staged)
        keep_only(staged, parts)
        assert self.read is not None, "a run begins before it shows results"
        self.function(self.read(staged), batch)


class MemorySink(_StagedInCheckpoint):
    """Keeps results in this process, for notebooks and tests."""

    def __init__(self) -> None:
        """Nothing kept yet."""
        self.batches: dict[int, pa.Table] = {}
        self.schema = pa.schema([])  # of results, known once a run begins
        self._files: dict[int, set[str]] = {}  # that the batches were read from

    def _facts(self) -> dict[str, object]:
        rows = sum(len(batch) for batch in self.batches.values())
        return {"batches": f"{len(self.batches):,}", "rows": f"{rows:,}"}

    def open(self, checkpoint: Path, checkpoint_id: str, last: LastBatch) -> None:
        """Go on behind results of this checkpoint, up to its last batch, and no others."""
        newest, files = max(self.batches, default=last.number), {p.file for p in last.parts}
        why = ""
        if self.batches and checkpoint_id != self._checkpoint_id:
            why = "holds the results of another checkpoint"
        elif newest > last.number:
            why = f"has results of batch {newest}, but the checkpoint {checkpoint} ends with "
            why += f"batch {last.number}: it is an older copy"
        elif last.number in self.batches and self._files.get(last.number) != files:
            why = f"has other results of batch {last.number} than the checkpoint {checkpoint}"
        if why:
            raise BraidError(
                f"the memory sink {why}",
                hint="give a new one: braid.sinks.memory() keeps what comes from now on",
            )
        super().open(checkpoint, checkpoint_id, last)

    def publish(self, batch: int, staged: Path, parts: Sequence[ResultFile]) -> None:
        """Read the parts into memory."""
        staged = self._found(staged)
        keep_only(staged, parts)
        found = [pq.read_table(staged / part.file) for part in parts]
        self.batches[batch] = pa.concat_tables(found or [self.schema.empty_table()])
        self._files[batch] = {part.file for part in parts}

    def table(self) -> pa.Table:
        """All results so far; without any, the columns alone."""
        found = [self.batches[batch] for batch in sorted(self.batches)]
        return pa.concat_tables(found or [self.schema.empty_table()])

    def rows(self) -> list[dict[str, Any]]:
        """All results so far, as dictionaries."""
        rows: list[dict[str, Any]] = self.table().to_pylist()
        return rows


def parquet(folder: str | os.PathLike[str]) -> ParquetSink:
    """Results as Parquet files in `folder/__batch=N/`."""
    return ParquetSink(folder)


def callback(function: Callable[[Frame, int], object]) -> CallbackSink:
    """Results as calls `function(dataframe, batch)`."""
    return CallbackSink(function)


def memory() -> MemorySink:
    """Results in memory."""
    return MemorySink()


def check_sink(sink: object) -> None:
    """Raise an error for what is no sink, with the way to make one of it."""
    if isinstance(sink, str | os.PathLike):
        raise BraidError(
            f"the sink {os.fspath(sink)!r} is a path",
            hint=f"write braid.sinks.parquet({os.fspath(sink)!r})",
        )
    if any(sink is function for function in (parquet, callback, memory)):
        name = getattr(sink, "__name__", "")
        argument = {"parquet": "'out'", "callback": "function"}.get(name, "")
        raise BraidError(
            f"the sink braid.sinks.{name} is not called",
            hint=f"call it: braid.sinks.{name}({argument})",
        )
    if not isinstance(sink, type) and all(
        callable(getattr(sink, name, None)) for name in ("open", "stage", "publish", "clear")
    ):
        return
    cure = "give braid.sinks.parquet('out'), braid.sinks.memory() or braid.sinks.callback(f)"
    if callable(sink) and not isinstance(sink, type):
        cure = "for a function of each batch's results, write braid.sinks.callback(function)"
    raise BraidError(f"the sink is a {type(sink).__name__}", hint=cure)


def keep_only(staged: Path, parts: Sequence[ResultFile]) -> None:
    """Leave only committed parts in a staged folder, once they are known to be undamaged."""
    _check_parts(staged, parts)
    wanted = {part.file for part in parts}
    for name in _files_in(staged) - wanted:
        (staged / name).unlink()


def _check_parts(folder: Path, parts: Sequence[ResultFile]) -> None:
    """Raise an error if a committed part is missing or damaged."""
    for part in parts:
        path = folder / part.file
        if not path.exists():
            raise _damaged_part(path, "it is missing, though its batch was committed")
        if checksum(memoryview(pa.memory_map(str(path)).read_buffer())) != part.checksum:
            raise _damaged_part(path, "its checksum does not match its bytes")


def _refuse_others(place: Path, parts: Sequence[ResultFile], aim: str) -> None:
    """Refuse a published batch with other files than its commit names."""
    if not _has_parts(place, parts):
        raise BraidError(
            f"{place} has other results than the checkpoint has for this batch",
            hint="output and checkpoint do not belong together: restore both from one copy, "
            f"or move the folder away to {aim}",
        )


def _has_parts(folder: Path, parts: Sequence[ResultFile]) -> bool:
    """Whether a folder has the files of these parts, and no others."""
    return _files_in(folder) == {part.file for part in parts}


def _files_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def _damaged_part(path: Path, finding: str) -> DamagedFile:
    hint = "restore it from a copy, or start again with a new checkpoint folder"
    return DamagedFile(str(path), finding, hint=hint)


def _read_marker_of(path: Path) -> tuple[str | None, str]:
    """The checkpoint whose results an output holds, if any, and its folders' name."""
    if not path.exists():
        return None, BATCH
    hint = "restore it from a copy, or give a new folder for the results"
    try:
        found = read_sealed(path)
    except DamagedFile as damage:
        raise DamagedFile(str(path), damage.finding, hint=hint) from None
    column = found.get("folders", _OLD_BATCH)
    if column not in (BATCH, _OLD_BATCH):
        raise DamagedFile(str(path), f"folders cannot be called {column!r}", hint=hint)
    return str(found.get("checkpoint")), column
