"""Random m-way joins through the real workers and checkpoint equal DuckDB's, as multisets."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine import Engine
from tests.oracle.cases import Case, cases, counted

SLOW = settings(deadline=None, suppress_health_check=list(HealthCheck))


@settings(SLOW, max_examples=400)
@given(case=cases(), data=st.data())
def test_any_join_equals_duckdb_through_restarts_and_other_numbers_of_workers(
    case: Case, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(case.plan, Path(folder), case.workers, case.hash_bits)
        for batch in case.batches():
            if data.draw(st.integers(0, 3)) == 0:
                engine = engine.restart(data.draw(st.integers(1, min(8, case.plan.groups))))
            engine.batch(batch)
        assert counted(engine.all_results()) == case.expected()
        assert sum(r.late_rows for r in engine.reports) == 0
        engine.checkpoint.close()
