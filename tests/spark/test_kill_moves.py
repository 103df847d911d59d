"""Processes die while groups are pushed out or moved, or plans change: results stay exact."""

from __future__ import annotations

import pytest

from braid.model.failpoints import CHANGE_STEPS, MOVE_STEPS, OVERFLOW_STEPS
from tests.spark.kill_harness import Job
from tests.spark.kill_workloads import GROUPS, ONE_KEY, TREE
from tests.spark.test_kills import IS_CAMPAIGN, spark_home

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.usefixtures("quick_starts")]

CAMPAIGN_ONLY = pytest.mark.skipif(not IS_CAMPAIGN, reason="make kills has more of them")
RESTLESS = ("--strategy", "relocate-only theta_r=0.999 tau_ms=0", "--groups", "32")
TIGHT = (
    *("--strategy", "spill-only", "--memory", "16KB", "--overflow", "defer"),
    *("--cleanup", "idle", "--groups", "32"),
)
CHANGING = (
    *("--migrate-at", "2:(a (b c))", "--migrate-at", "9:(a b c)"),
    *("--migration", "moving-state"),
)
CHANGING_AT_ONCE = (*CHANGING[:4], "--migration-pause", "1 minute")
CHANGING_ONE = ("--migrate-at", "2@1:(a (b c))", "--migrate-at", "9@0:((a c) b)")


MOVING = (*RESTLESS, "--assign", "0.9,0.1")
# Rows of the other workloads must not wait, so their groups do not move and owe nothing.
MOVABLE = [ONE_KEY, TREE, GROUPS]
CASES = [
    *((workload, MOVE_STEPS, MOVING) for workload in (MOVABLE if IS_CAMPAIGN else [ONE_KEY])),
    *((workload, OVERFLOW_STEPS, TIGHT) for workload in (MOVABLE if IS_CAMPAIGN else [])),
    *((workload, CHANGE_STEPS, CHANGING) for workload in (MOVABLE if IS_CAMPAIGN else [TREE])),
    (TREE, CHANGE_STEPS, CHANGING_AT_ONCE),
    *([(ONE_KEY, CHANGE_STEPS, CHANGING_ONE)] if IS_CAMPAIGN else []),
]


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("workload", "steps", "options"),
    CASES,
    ids=[f"{workload.name}-{steps[0]}-{options[-1]}" for workload, steps, options in CASES],
)
def test_a_driver_killed_at_every_step_loses_and_doubles_nothing(
    tmp_path, workload, steps, options
):
    with Job(tmp_path / "job", 6, workload, batches=24, rows=300, options=options) as job:
        for step in steps:
            job.start(failpoint=f"{step}@*").die()
        job.start().end()
        job.check_all_results()


@CAMPAIGN_ONLY
@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", MOVE_STEPS[:3])
def test_an_executor_that_dies_as_it_sends_or_receives_halves_no_move(tmp_path, step):
    options = (*RESTLESS, "--assign", "0.8,0.1,0.1")
    cluster = "local-cluster[3,1,1024]"
    with Job(tmp_path / "job", 7, GROUPS, 8, 1000, cluster, workers=3, options=options) as job:
        job.environ["SPARK_HOME"] = str(spark_home(tmp_path / "spark"))
        driver = job.start(failpoint=f"{step}@*", with_driver=False, with_executor=True)
        driver.end()
        assert (job.folder / "died").exists()
        steps = [event["step"] for event in driver.events("relocate")]
        assert steps.count("deactivate") == steps.count("reactivate") > 0
        job.check_all_results()
