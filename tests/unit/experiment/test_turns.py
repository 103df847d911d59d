"""That runs take turns: none goes on in another's, and one that fails holds nobody up."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, replace

import pytest

from braid.events import Journal
from braid.experiment.turns import run_in_turns
from braid.front.run import Run
from tests.unit.events.test_facts import BATCH


@dataclass
class Counting:
    """A feed of batches that do nothing but say that they are there; one may fail."""

    name: str
    batches: int
    said: list[str]
    fails_at: int | None = None
    journal: Journal = field(default_factory=Journal)
    is_stopping: bool = False
    failure: Exception | None = None

    def start(self) -> Run:
        run = Run(self.journal, lambda: None, lambda: None, lambda plan, workers: None)
        self.thread = threading.Thread(target=self.work, daemon=True)
        threading.Timer(0.01, self.thread.start).start()
        return run.follow(self)

    def work(self) -> None:
        for number in range(self.batches):
            if self.is_stopping:
                return
            if number == self.fails_at:
                self.failure = RuntimeError("a fault")
                return
            self.said.append(f"{self.name}{number}")
            for rows in (0, 10):
                self.journal.add(replace(BATCH, input_rows=rows))

    def wait(self, timeout_s: float | None) -> bool:
        if self.thread.ident is None:
            return False
        self.thread.join(timeout_s)
        if self.failure is not None:
            raise self.failure
        return not self.thread.is_alive()

    @property
    def is_used_up(self) -> bool:
        return not self.is_stopping

    def stop(self) -> None:
        self.is_stopping = True


def test_each_run_has_a_batch_with_rows_at_a_time() -> None:
    said: list[str] = []
    feeds = [Counting("a", 3, said), Counting("b", 1, said), Counting("c", 2, said)]
    found = run_in_turns([feed.start for feed in feeds])
    assert said == ["a0", "b0", "c0", "a1", "c1", "a2"]
    assert [len(turns.taken_ms) for turns in found] == [3, 1, 2]
    assert all(turns.run.events()[-1]["event"] == "finished" for turns in found)


def test_a_run_that_fails_ends_them_all() -> None:
    said: list[str] = []
    feeds = [
        Counting("a", 99, said),
        Counting("b", 99, said, fails_at=1),
        Counting("c", 99, said),
    ]
    with pytest.raises(RuntimeError, match="a fault"):
        run_in_turns([feed.start for feed in feeds])
    for feed in feeds:
        feed.thread.join(10)
        assert not feed.thread.is_alive()
    assert said[:4] == ["a0", "b0", "c0", "a1"]
    assert "a98" not in said
