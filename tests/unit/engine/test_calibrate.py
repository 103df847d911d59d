from __future__ import annotations

from braid.engine.calibrate import measure_operations


def test_every_operation_has_a_cost_of_less_than_ten_microseconds() -> None:
    costs = measure_operations(rounds=1)
    for cost in (costs.insert, costs.purge, costs.search, costs.match):
        assert 0 < cost < 1e-5
