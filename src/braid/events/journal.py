"""Where a run's events go: to memory for those who ask, to a file, and to listeners."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from braid.events.facts import Event, Finished, instant
from braid.events.subscription import Subscription
from braid.events.telling import ToldEvent
from braid.model.errors import BraidError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MOST_KEPT = 100_000
"""Events kept in memory; a run that outlives this should write them to a file."""


class Journal:
    """Takes events down as they happen."""

    def __init__(self, path: Path | None = None, run: str = "") -> None:
        """Keep the events of a `run` in memory; append them to `path`, if one is given."""
        self._run, self._count = run, 0
        self._subscriptions: list[Subscription] = []
        self._kept: deque[dict[str, Any]] = deque(maxlen=MOST_KEPT)
        self._listeners: list[Callable[[Event], None]] = []
        self._file = None
        if path is not None:
            require_folder(path)
            try:
                _drop_torn_line(path)
                self._file = open(path, "a", encoding="utf-8")  # noqa: SIM115 - kept open
            except OSError as error:
                raise _unwritable(str(path), error) from None

    def listen(self, listener: Callable[[Event], None]) -> None:
        """Call `listener` with every event from now on."""
        self._listeners.append(listener)

    def subscribe(self, most: int) -> Subscription:
        """Events from now on, of which at most so many wait."""
        subscription = Subscription(most)
        self._subscriptions.append(subscription)
        return subscription

    def add(self, event: Event) -> None:
        """Take an event down, and tell everyone; the first error on the way is raised then."""
        at = instant(time.time_ns() // 1000)
        told_event = ToldEvent(event, at or "", self._run, self._count)
        self._count += 1
        record = told_event.to_json()
        self._kept.append(record)
        for subscription in self._subscriptions:
            subscription.put(told_event)
        told = (partial(listener, event) for listener in self._listeners)
        faults: list[BaseException] = []
        for step in (partial(self._write, record), *told):
            try:
                step()
            except BaseException as fault:
                faults.append(fault)
        if faults:
            raise faults[0]

    def _write(self, record: dict[str, Any]) -> None:
        """Append to the file, if there is one."""
        if self._file is None:
            return
        try:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
        except OSError as error:
            file, self._file = self._file, None  # the run's end is an event too
            with suppress(OSError):
                file.close()
            raise _unwritable(file.name, error) from None

    def records(self) -> list[dict[str, Any]]:
        """The events so far, as JSON objects."""
        return list(self._kept)

    def close(self) -> None:
        """Close the file; nobody is told anything any more."""
        for subscription in self._subscriptions:
            subscription.end()
        if self._file is not None:
            self._file.close()


def follow(
    path: Path, pause_s: float = 0.2, gives_up: Callable[[], bool] = lambda: False
) -> Iterator[ToldEvent]:
    """The events in a file, and those that a run goes on to write there, until it ends.

    For another process than the run's. A file that is not there yet is waited for. A run that
    was killed says nothing of its end: `gives_up` is asked while there is nothing to read.
    """
    while not path.is_file():
        if gives_up():
            return
        time.sleep(pause_s)
    with open(path, encoding="utf-8") as file:
        line = ""
        while True:
            line += file.readline()
            if not line.endswith("\n"):
                if gives_up():
                    return
                time.sleep(pause_s)  # the rest is still being written
                continue
            told, line = ToldEvent.from_json(json.loads(line)), ""
            yield told
            if isinstance(told.event, Finished):
                return


def require_folder(path: Path) -> None:
    """Demand that the folder of a file for events is there; a mistyped one is not made."""
    if not path.absolute().parent.is_dir():
        raise BraidError(
            f"cannot write events to {path}: there is no folder {path.parent}",
            hint="make the folder first, or give --events a file in one that is there",
        )


def _drop_torn_line(path: Path) -> None:
    """Cut off a last line whose end a kill has kept from being written."""
    if path.is_file():
        with open(path, "rb+") as file:
            whole = 0
            for line in file:
                whole += len(line) if line.endswith(b"\n") else 0
            file.truncate(whole)


def _unwritable(path: str, error: OSError) -> BraidError:
    return BraidError(
        f"cannot write events to {path}: {error.strerror}",
        hint="give --events a file in a folder with room that you may write to",
    )
