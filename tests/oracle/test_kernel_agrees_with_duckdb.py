"""Random m-way joins through the real workers and checkpoint equal DuckDB's, as multisets."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings

from tests.engine import Engine
from tests.oracle.cases import Case, cases, counted
from tests.unit.state.making import quick_folder

SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(SLOW, max_examples=400)
@given(case=cases())
def test_any_join_equals_duckdb_through_restarts_and_other_numbers_of_workers(
    case: Case,
) -> None:
    with quick_folder() as folder:
        engine = Engine(case.plan, folder, case.workers, case.hash_bits)
        for batch, workers in zip(case.batches(), case.restarts, strict=True):
            if workers:
                engine = engine.restart(workers)
            engine.batch(batch)
            assert sum(report.late_rows for report in engine.reports) == 0
        assert counted(engine.all_results()) == case.expected()
        engine.checkpoint.close()
