"""The places where a run writes: they lie apart from each other and from what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from braid.engine.folder import FORMATS
from braid.front.sinks import ParquetSink
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from braid.engine.folder import FileStream
    from braid.engine.sink import Sink

_CHECKPOINT, _OUTPUT, _LATE = "checkpoint", "output", "folder for late rows"
_EVENTS = "events file"


def places_of(
    checkpoint: Path, sink: Sink, late: ParquetSink | None, events: Path | None
) -> dict[str, Path]:
    """Where a run writes, by what it writes there."""
    places = {_CHECKPOINT: checkpoint}
    if isinstance(sink, ParquetSink):
        places[_OUTPUT] = sink.folder
    if late is not None:
        places[_LATE] = late.folder
    if events is not None:
        places[_EVENTS] = events
    return places


def check_apart(places: Mapping[str, Path]) -> None:
    """Refuse results and late rows in one folder, and anything else inside the checkpoint."""
    resolved = {what: place.resolve() for what, place in places.items()}
    if _LATE in places and resolved[_LATE] == resolved.get(_OUTPUT):
        raise BraidError(
            f"results and late rows cannot share the folder {places[_LATE]}",
            hint="give late rows a folder of their own",
        )
    for what, place in places.items():
        if what != _CHECKPOINT and resolved[what].is_relative_to(resolved[_CHECKPOINT]):
            raise BraidError(
                f"the {what} {place} lies in the checkpoint {places[_CHECKPOINT]}: files there "
                "may be removed",
                hint=f"give a place for the {what} outside of the checkpoint",
            )


def check_input(places: Mapping[str, Path], streams: Iterable[tuple[str, FileStream]]) -> None:
    """Refuse to write where the input is read: a later run would read its own files.

    An input inside the output is no harm. One inside the checkpoint is, for files there
    that no commit names are removed.
    """
    checkpoint = places[_CHECKPOINT]
    for name, stream in streams:
        for what, place in places.items():
            if what == _EVENTS and place.suffix.lower() not in FORMATS:
                continue
            if stream.would_list(place):
                raise BraidError(
                    f"the {what} {place} lies in {stream.folder}, which stream {name!r} "
                    "reads: it would be read as input",
                    hint=f"give a place for the {what} outside of all streams' folders",
                )
        if stream.folder.resolve().is_relative_to(checkpoint.resolve()):
            raise BraidError(
                f"stream {name!r} reads {stream.folder}, which lies in the checkpoint "
                f"{checkpoint}: files there may be removed",
                hint="give a folder for the checkpoint that has nothing else in it",
            )
