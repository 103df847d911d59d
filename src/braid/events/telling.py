"""Events as they are told: with time, run and a number in sequence; as JSON, both ways.

    {"event": "batch", "at": "2026-11-19T10:00:00.000Z", "version": 1, "run": "5f3a…",
     "sequence": 17, "batch": 3, "input_rows": 20, …}

A field that is new has a default, so that older events can be read. Whatever else changes gets
another version.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from braid.events.facts import Event
from braid.model.errors import BraidError

VERSION = 1
_ENVELOPE = ("event", "at", "version", "run", "sequence")


@dataclass(frozen=True, slots=True)
class ToldEvent:
    """An event of a run, with its time in UTC and its number in sequence.

    Events that were told before there were runs and numbers have none.
    """

    event: Event
    at: str
    run: str = ""
    sequence: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The event as a JSON object."""
        told = (self.event.name, self.at, VERSION, self.run, self.sequence)
        return {**dict(zip(_ENVELOPE, told, strict=True)), **dataclasses.asdict(self.event)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> ToldEvent:
        """The inverse of `to_json`."""
        version, name = record.get("version", VERSION), record.get("event")
        kind = _kinds().get(str(name))
        if version != VERSION or kind is None:
            what = f"the event {name!r}" if version == VERSION else f"version {version}"
            raise BraidError(
                f"cannot read {what} of events",
                hint=f"this Braid reads events of version {VERSION}: a newer one told them",
            )
        fields = {key: value for key, value in record.items() if key not in _ENVELOPE}
        event = _read(kind, fields)
        return cls(event, record["at"], record.get("run", ""), record.get("sequence"))


@cache
def _kinds() -> dict[str, Any]:
    return {kind.name: kind for kind in get_args(Event)}


@cache
def _types(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: Any, value: Any) -> Any:
    """A value of some type, from what JSON makes of it."""
    if dataclasses.is_dataclass(kind):
        return _made(kind, value)
    if get_origin(kind) in (Union, UnionType):
        return value  # a plain value, or nothing
    if get_origin(kind) is tuple:
        (each, *_) = get_args(kind)
        return tuple(_read(each, part) for part in value)
    return value


def _made(kind: Any, fields: dict[str, Any]) -> Any:
    types = _types(kind)
    try:
        return kind(**{name: _read(types[name], each) for name, each in fields.items()})
    except (KeyError, TypeError) as error:
        name = getattr(kind, "name", kind.__name__)
        raise BraidError(f"cannot read an event {name!r}: {error}") from None
