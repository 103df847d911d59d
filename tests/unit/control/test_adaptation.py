"""What users may say of memory, and what the account of a run hands to its strategy."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest

from braid.control.adaptation import Adaptation, MemorySettings, memory_settings
from braid.control.decider import BatchSeen
from braid.control.strategy import make_strategy
from braid.events import CleanedUp
from braid.model.errors import BraidError
from braid.record.commit import Commit
from braid.record.move import Move
from braid.record.next_commit import commit_before_first
from braid.record.plan_change import Way
from braid.record.worker_orders import WorkerOrders
from tests.driven import Driven
from tests.oracle.steady import CHAIN, CLIQUE, Steady
from tests.oracle.test_overflow import cleaned_results

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from braid.control.proposal import Proposal
    from braid.control.statistics import GroupTable, Snapshot
    from braid.events import Event
    from braid.plan.join_plan import JoinPlan


@dataclass
class Recording:
    """A strategy that keeps all snapshots, and has its proposals ready."""

    seen: list[Snapshot]
    proposals: tuple[Proposal, ...] = ()

    def decide(self, snapshot: Snapshot, /) -> tuple[Recording, tuple[Proposal, ...]]:
        self.seen.append(snapshot)
        return self, self.proposals


class Account:
    """The engine's batches, a second each, and the account that is kept of them."""

    def __init__(
        self, plan: JoinPlan, folder: Path, workers: int = 1, streams: Steady = CLIQUE
    ) -> None:
        self.engine = Driven(plan, folder, workers, worker_orders=WorkerOrders(counts=True))
        self.strategy = Recording([])
        settings = MemorySettings(strategy=self.strategy)
        self.adaptation = Adaptation.of(plan, settings, self.engine.commit)
        self.rows = streams.rows(100)

    def batch(
        self,
        now_ms: int,
        under_way: Sequence[Move] = (),
        worker_orders: WorkerOrders | None = None,
    ) -> list[Event]:
        """One more batch, that ends at a moment of the run; what is told of it."""
        orders = {} if worker_orders is None else {0: worker_orders}
        before, plan = self.engine.commit, self.engine.plan
        self.engine.batch(dict(enumerate(next(self.rows).values())), worker_orders=orders)
        commit, reports = self.engine.commit, self.engine.reports
        self.adaptation = self.adaptation.counted(commit.batch, reports)
        self.engine.commit = replace(commit, tallies=self.adaptation.tallies())
        seen = BatchSeen(before, self.engine.commit, plan, reports, 0, now_ms)
        decided = self.adaptation.observe(seen, under_way)
        self.adaptation = decided.next
        return list(decided.events)

    @property
    def last(self) -> Snapshot:
        return self.strategy.seen[-1]

    @property
    def table(self) -> GroupTable:
        return self.last.workers[0].tables[0]


PLAN = CLIQUE.plan(dict.fromkeys(CLIQUE.keys, 3), "(a b c d)")


def test_time_between_batches_passes_and_is_idle(tmp_path: Path) -> None:
    account = Account(PLAN, tmp_path)
    account.batch(1_000)
    account.batch(61_000)
    assert account.last.elapsed_ms == 61_000
    (load,) = account.last.workers
    assert load.busy_ms + load.idle_ms == 60_000


def test_each_space_is_told_of_the_results_that_it_owed_itself(tmp_path: Path) -> None:
    plan = CHAIN.plan(dict.fromkeys(CHAIN.keys, 9), "((a b) (c d))")
    account = Account(plan, tmp_path, streams=CHAIN)
    spill = dict.fromkeys(range(len(plan.rounds.spaces)), ((0, plan.groups),))
    for second in (1, 2, 3):
        account.batch(
            1000 * second, worker_orders=WorkerOrders(defers=True, counts=True, spill=spill)
        )
    account.rows = iter([{}])
    events = account.batch(
        4000, worker_orders=WorkerOrders(defers=True, counts=True, clean_bytes=1 << 40)
    )
    told = [event for event in events if isinstance(event, CleanedUp)]
    first_round = [event.results for event in told if event.results]
    assert len(first_round) > 1
    assert sum(first_round) == cleaned_results(account.engine)
    assert len(set(first_round)) > 1, "of their own, and not all of them the same"


def test_only_a_move_that_has_begun_and_ended_starts_the_time_between_moves(
    tmp_path: Path,
) -> None:
    account = Account(PLAN, tmp_path, workers=2)
    wanted = Move(0, 1, 0, (0,), 0)
    account.strategy.proposals = (wanted,)
    account.batch(1_000)
    (wanted,) = account.adaptation.accepted
    account.strategy.proposals = ()
    account.batch(2_000)
    account.batch(3_000)
    assert account.last.last_relocation_ms is None, "nobody has begun it"
    account.engine.move(0, ((0, 1),), 0, 1)
    account.batch(4_000, under_way=(wanted,))
    assert account.last.last_relocation_ms is None, "it is on its way"
    account.engine.arrive(account.engine.commit.moves[0], with_files=True)
    account.batch(5_000)
    account.batch(6_000)
    assert account.last.last_relocation_ms == 5_000


def made_results(account: Account) -> int:
    return sum(load.made_results for load in account.last.workers)


def test_results_are_counted_as_they_are_joined_though_groups_of_them_are_written(
    tmp_path: Path,
) -> None:
    grouped = CLIQUE.plan(
        dict.fromkeys(CLIQUE.keys, 3),
        "(a b c d)",
        select="count(*) AS n",
        slide=" SLIDE 1 SECOND",
    )
    joined = Account(PLAN, tmp_path / "joined", workers=2)
    shown = Account(grouped, tmp_path / "grouped", workers=2)
    for second in range(1, 4):
        joined.batch(1000 * second)
        shown.batch(1000 * second)
        written = sum(report.output_rows for report in joined.engine.reports)
        assert made_results(joined) == made_results(shown) == written > 0


def test_results_of_every_round_count(tmp_path: Path) -> None:
    plan = CHAIN.plan(dict.fromkeys(CHAIN.keys, 3), "(((a b) c) d)")
    account = Account(plan, tmp_path, streams=CHAIN)
    for second in range(1, 4):
        account.batch(1000 * second)
    found = sum(edge.found for report in account.engine.reports for edge in report.edges)
    assert made_results(account) == found, "each join has one probe for each of its inputs"


def test_what_a_clean_up_makes_is_no_productivity(tmp_path: Path) -> None:
    account = Account(PLAN, tmp_path)
    everything = {0: ((0, PLAN.groups),)}
    account.batch(1_000)
    for second in (2, 3):
        account.batch(
            1_000 * second,
            worker_orders=WorkerOrders(defers=True, counts=True, spill=everything),
        )
    before = account.table.results.sum()
    account.rows = iter([{}])
    account.batch(
        4_000, worker_orders=WorkerOrders(defers=True, counts=True, clean_bytes=1 << 40)
    )
    assert cleaned_results(account.engine) > 0
    assert made_results(account) == 0
    assert account.table.results.sum() == before > 0


def test_productivity_outlives_a_restart_and_costs_the_record_little(tmp_path: Path) -> None:
    account = Account(PLAN, tmp_path)
    for second in range(1, 5):
        account.batch(1000 * second)
    record = json.dumps(account.engine.commit.to_json())
    commit = Commit.from_json(json.loads(record))
    again = Adaptation.of(PLAN, account.adaptation.settings, commit)
    before, after = (
        each.tally.tables({0: commit.assignments[0]}) for each in (account.adaptation, again)
    )
    for name in ("results", "recent_results", "recent_rows", "last_insert"):
        kept = getattr(after[0][0], name)
        assert kept.tolist() == pytest.approx(getattr(before[0][0], name).tolist(), abs=0.01)
        assert kept.any()
    assert len(json.dumps(commit.tallies)) < 64 + 40 * PLAN.groups


def test_productivity_outlives_a_change_of_plan_under_the_same_key(tmp_path: Path) -> None:
    account = Account(PLAN, tmp_path)
    for second in range(1, 4):
        account.batch(1000 * second)
    before = account.table.results
    assert account.engine.change("((a b) (c d))", Way.PARALLEL_TRACK)
    engine = account.engine
    account.adaptation = account.adaptation.replanned(engine.plan, engine.commit)
    account.batch(4000)
    assert before.all()
    assert (account.table.results > before).all()


def test_what_is_known_of_groups_goes_along_with_their_key(tmp_path: Path) -> None:
    plan = CHAIN.plan(dict.fromkeys(CHAIN.keys, 3), "(((a b) c) d)")
    account = Account(plan, tmp_path, streams=CHAIN)
    account.batch(1000)
    old = account.engine.commit.tallies
    assert account.engine.change("(a (b (c d)))", Way.PARALLEL_TRACK)
    spaces, new = account.engine.plan.rounds.spaces, account.engine.commit.tallies
    keys = [space.keys for space in plan.rounds.spaces]
    for space, tally in zip(spaces, new, strict=True):
        assert tally == old[keys.index(space.keys)]


def test_records_of_before_know_no_tallies() -> None:
    data = commit_before_first(PLAN, 1).to_json()
    del data["tallies"]
    assert Commit.from_json(data).tallies == ()


def test_what_is_said_of_spilling_is_the_strategys() -> None:
    said = memory_settings("1MB", strategy="lazy-disk", spill_policy="largest", spill_percent=7)
    assert said.strategy == make_strategy("lazy-disk", order="largest", k=7, theta_m=0.9)
    assert said.memory_bytes == 1 << 20


@pytest.mark.parametrize(
    ("strategy", "said", "told"),
    [
        (None, {"spill_percent": 20}, "strategy auto takes no spill percentage"),
        ("relocate-only", {"spill_policy": "largest"}, "takes no spill policy"),
        ("none", {"spill_percent": 20}, "strategy none takes no spill percentage"),
    ],
)
def test_a_strategy_that_does_not_take_it_says_who_does(
    strategy: str | None, said: dict[str, object], told: str
) -> None:
    with pytest.raises(BraidError, match=told) as caught:
        memory_settings("1MB", strategy=strategy, **said)  # type: ignore[arg-type]
    assert caught.value.hint is not None
    assert "lazy-disk" in caught.value.hint


@pytest.mark.parametrize("memory", ["0KB", "0.0001KB", 0, -1, float("nan"), [1]])
def test_a_memory_that_holds_nothing_is_refused(memory: object) -> None:
    with pytest.raises(BraidError, match="no room for any state") as caught:
        memory_settings(memory)  # type: ignore[arg-type]
    assert "1 byte or more" in str(caught.value.hint)
