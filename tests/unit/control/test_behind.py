"""How far a query is behind its input, as far as anybody can tell."""

from __future__ import annotations

import pytest

from braid.control.behind import Behind, rows_between
from braid.optimize.timing.memory_driven import MemoryDriven
from braid.optimize.timing.refined import RefinedMemoryDriven
from braid.optimize.timing.statistics import DataStatistics, Load, Measure, Situation

NOTHING = DataStatistics({}, {})


def behind_after(*batches: tuple[int, float, float]) -> list[float]:
    behind, seen = Behind(), []
    for batch in batches:
        behind = behind.observe(*batch, None)
        seen.append(behind.unread_rows.value or 0.0)
    return seen


def test_a_batch_that_takes_longer_than_its_rows_last_leaves_others_unread() -> None:
    assert behind_after(*[(100, 1500, 1000)] * 3) == [50, 100, 150]


def test_a_query_that_keeps_up_or_catches_up_has_nothing_unread() -> None:
    assert behind_after(*[(100, 900, 1000)] * 3) == [0, 0, 0]
    assert behind_after((100, 1500, 1000), (100, 200, 1000)) == [50, 0]
    assert behind_after((0, 300, 0)) == [0], "no rows, no rate"


def test_sources_that_can_tell_are_believed() -> None:
    behind = Behind().observe(100, 5, 1000, told=300.0)
    assert behind.unread_rows == Measure.estimated(300)


KAFKA = '{"t": {"0": 10, "1": 20}, "u": {"0": 5}}'


@pytest.mark.parametrize(
    ("offsets", "rows"),
    [
        ([(KAFKA, '{"t": {"0": 14, "1": 20}, "u": {"0": 6}}')], 5),
        ([(KAFKA, KAFKA), ('{"v": {"0": 1}}', '{"v": {"0": 3, "1": 2}}')], 4),
        ([(KAFKA, None)], None),
        ([('{"logOffset": 3}', '{"logOffset": 9}')], None),
        ([("17", "19")], None),
        ([(KAFKA, KAFKA), ("17", "19")], None),
        ([('{"v": {"0": "x"}}', '{"v": {"0": "y"}}')], None),
        ([("not JSON", "at all")], None),
    ],
)
def test_offsets_tell_of_rows_if_they_count_them(
    offsets: list[tuple[str | None, str | None]], rows: float | None
) -> None:
    assert rows_between(offsets) == rows


@pytest.mark.parametrize("kind", [MemoryDriven, RefinedMemoryDriven])
def test_a_plan_without_cpu_enough_is_seen_though_no_row_waits(
    kind: type[MemoryDriven],
) -> None:
    trigger, behind = kind(period_ms=8_000, interval_ms=0), Behind()
    decisions = []
    for second in range(12):
        behind = behind.observe(100, 1500, 1000, None)
        load = Load(waiting_rows=Measure.exact(0), unread_rows=behind.unread_rows)
        trigger, decision = trigger.decide(Situation(1000.0 * second, NOTHING, load))
        decisions.append(decision)
    found = [decision for decision in decisions if decision.yes]
    assert found[0].reason == "unread rows have risen steadily"
