"""Processes die at every step and at any moment, and no result is lost or doubled by it.

`BRAID_KILLS` says how many drivers to kill at random moments (`make kills` sets it), and
`BRAID_KILLS_SEED` which moments; a failure shows the seed.
"""

from __future__ import annotations

import os
import random
import time
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from braid.model.failpoints import DRIVER_STEPS, WORKER_STEPS
from tests.spark.kill_harness import Job
from tests.spark.kill_workloads import FLAT, GROUPS, ODD, TREE, WORKLOADS

KILLS = int(os.environ.get("BRAID_KILLS", "2"))
SEED = int(os.environ.get("BRAID_KILLS_SEED", time.time_ns() % 1_000_000))
IS_CAMPAIGN = KILLS > 4

pytestmark = [pytest.mark.spark, pytest.mark.kills, pytest.mark.usefixtures("quick_starts")]

COMMIT_BEFORE_LOG = '''\
"""Python reads this file at its start: the engine, with two steps in the wrong order.

The log of a batch is held back until its commit is written and its results are published.
"""
import os
from braid.record.checkpoint import Checkpoint
from braid.state.log import LogFile

write, sweep = LogFile.write, Checkpoint.sweep

def hold_back(self):
    held = self.path.parent.parent / "held"
    held.mkdir(exist_ok=True)
    self.path = held / self.path.name
    write(self)

def write_log_and_sweep(self, commit):
    for path in (self.folder / "held").glob("*"):
        os.replace(path, self.log / path.name)
    sweep(self, commit)

LogFile.write, Checkpoint.sweep = hold_back, write_log_and_sweep
'''


def named(workload):
    return workload.name


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("workload", WORKLOADS if IS_CAMPAIGN else (GROUPS,), ids=named)
def test_a_driver_killed_at_every_step_loses_and_doubles_nothing(tmp_path, workload):
    places = list(product(range(workload.rounds), WORKER_STEPS))
    if not IS_CAMPAIGN:  # every step, in one round or another
        places = [(n % workload.rounds, step) for n, step in enumerate(WORKER_STEPS)]
    deaths = [(step, 1 + n, f"/{n}") for n, step in sorted(places)]
    last = 1 + workload.rounds
    deaths += [(step, n, "") for n, step in enumerate(DRIVER_STEPS, start=last)]
    shown = DRIVER_STEPS[DRIVER_STEPS.index("results published") :]
    with Job(tmp_path / "job", 1, workload, batches=deaths[-1][1] + 2) as job:
        for step, number, in_round in deaths:
            job.start(failpoint=f"{step}@{number}{in_round}").die()
            done = number + 1 if step in shown else number
            assert len(job.published()) == done, f"killed elsewhere than {step}{in_round}"
            job.check_published_is_whole()
        job.finish()


@pytest.mark.timeout(600)
def test_rows_that_are_kept_apart_are_kept_once_whenever_the_driver_dies(tmp_path):
    with Job(tmp_path / "job", 8, ODD, batches=4, rows=300) as job:
        for number, step in enumerate(("commit written", "results published"), 1):
            job.start(failpoint=f"{step}@{number}").die()
            job.check_published_is_whole()
        assert len(job.published_bad()) == 3
        job.finish()


@pytest.mark.timeout(300 + 90 * KILLS)
def test_a_driver_killed_at_random_moments_loses_and_doubles_nothing(tmp_path):
    print(f"BRAID_KILLS_SEED={SEED}")  # noqa: T201 - pytest shows it if the test fails
    chance, kills, jobs = random.Random(SEED), 0, 0
    workloads = chance.sample(WORKLOADS, len(WORKLOADS))
    while kills < KILLS:
        workload = workloads[jobs % len(workloads)]
        jobs += 1
        folder, batches = tmp_path / f"job-{jobs}", 20
        with Job(folder, chance.randrange(10**6), workload, batches, rows=300) as job:
            alive = True
            while alive and kills < min(KILLS, jobs * max(2, KILLS // len(workloads))):
                driver = job.start()
                wait_for_a_moment(driver, chance, kills)
                alive = driver.kill()
                kills += alive
                job.check_published_is_whole()
            job.finish()


def wait_for_a_moment(driver, chance, kills):
    """Any moment will do, but most of them are Spark's: so every other one is aimed at ours."""
    if not kills:  # as the checkpoint is being made
        driver.wait_until(driver.job.checkpoint.exists, "there is a checkpoint folder")
        time.sleep(chance.uniform(0, 0.2))
        return
    driver.wait_for("started")
    driver.wait_for("batch", count=chance.randint(0, 4))
    if kills % 2:
        time.sleep(chance.uniform(0, 1))
    else:
        driver.wait_until(lambda: any(driver.job.out.glob(".staging/*")), "results are staged")
        time.sleep(chance.uniform(0, 0.1))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("step", WORKER_STEPS if IS_CAMPAIGN else WORKER_STEPS[:1])
def test_a_worker_that_dies_in_a_later_round_has_the_whole_batch_done_again(tmp_path, step):
    with Job(tmp_path / "job", 3, TREE, batches=5) as job:
        driver = job.start(failpoint=f"{step}@3/1", with_driver=False)
        driver.end()
        assert len(driver.events("retried")) == 1
        job.check_result()


@pytest.mark.timeout(300)
def test_a_python_worker_killed_in_a_batch_is_replaced(tmp_path):
    with Job(tmp_path / "job", 2, FLAT, batches=14) as job:
        driver = job.start()
        done = 2
        while not driver.events("retried"):
            driver.wait_for("batch", count=done)
            kill_a_python_worker(driver)
            done += 2
            driver.wait_for("batch", count=done)
        driver.end()
        job.check_result()


def kill_a_python_worker(driver):
    """One that a batch needs: it has held the batch up for a while."""
    victim, *others = driver.python_workers()
    for worker in (victim, *others):
        worker.suspend()  # or the batch may be over before the kill
    time.sleep(2)
    victim.kill()
    for worker in others:
        worker.resume()


@pytest.mark.timeout(300)
def test_workers_of_a_killed_executor_rebuild_their_state_on_another(tmp_path):
    cluster = "local-cluster[2,1,1024]"
    with Job(tmp_path / "job", 3, TREE, batches=14, master=cluster, workers=4) as job:
        job.environ["SPARK_HOME"] = str(spark_home(tmp_path / "spark"))
        driver = job.start()
        driver.wait_for("batch", count=2)
        kill_a_python_worker(driver)  # Spark itself tries its task again
        done = 4
        while not rebuilt_elsewhere(driver):
            driver.wait_for("batch", count=done)
            oldest = min(driver.executors(), key=lambda process: process.create_time())
            oldest.kill()
            done += 3
            driver.wait_for("batch", count=done)
        driver.end()
        job.check_result()


def rebuilt_elsewhere(driver):
    """How many runs were made again by workers that are not where they began."""
    batches = [event["workers"] for event in driver.events("batch")]
    join_spaces = {share["worker"]: share["host"] for share in batches[0]} if batches else {}
    return sum(
        share["rebuilt_runs"]
        for shares in batches
        for share in shares
        if share["host"] != join_spaces[share["worker"]]
    )


def spark_home(folder: Path) -> Path:
    """Spark as installed, but with a `work` folder of its own to write into."""
    folder.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        if path.name != "work":
            (folder / path.name).symlink_to(path)
    return folder


@pytest.mark.timeout(300)
def test_an_engine_that_commits_before_it_logs_is_found_out(tmp_path):
    (tmp_path / "sitecustomize.py").write_text(COMMIT_BEFORE_LOG)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with Job(tmp_path / "job", seed=4, environ={"PYTHONPATH": path}) as job:
        job.start(failpoint="batch evaluated@2").die()
        job.check_published_is_whole()
        job.start(failpoint="commit written@4").die()  # in the order as it is, this is harmless
        job.check_published_is_whole()
        with pytest.raises(AssertionError, match=r"log/4-\d-\d-\w+\.log: it is missing"):
            job.finish()


@pytest.mark.timeout(60)
@pytest.mark.parametrize("workload", WORKLOADS, ids=named)
def test_a_lost_or_doubled_or_half_published_batch_is_found_out(tmp_path, workload):
    job = Job(tmp_path / "job", 5, workload, batches=4, rows=200)
    for number, rows in job.expected.items():
        folder = job.out / f"__batch={number}"
        folder.mkdir(parents=True)
        values = [list(row) for row in rows.elements()]
        columns = {name: [r[n] for r in values] for n, name in enumerate(workload.columns)}
        pq.write_table(pa.table(columns), folder / "part-0.parquet")
    job.check_published_is_whole()
    last = max(job.expected)
    part = job.out / f"__batch={last}" / "part-0.parquet"
    whole = pq.read_table(part)
    pq.write_table(whole.slice(1), part)
    with pytest.raises(AssertionError, match=f"batch {last} lacks 1 results"):
        job.check_published_is_whole()
    pq.write_table(pa.concat_tables([whole, whole.slice(0, 1)]), part)
    with pytest.raises(AssertionError, match=f"batch {last} has 1 results too many"):
        job.check_published_is_whole()
    part.unlink()
    part.parent.rmdir()
    job.check_published_is_whole()
    with pytest.raises(AssertionError, match="batches lack"):
        job.check_result()
