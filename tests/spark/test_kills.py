"""Processes die at every step and at any moment, and no result is lost or doubled by it.

`BRAID_KILLS` says how many drivers to kill at random moments (`make kills` sets it), and
`BRAID_KILLS_SEED` which moments; the seed stands in the test's name.
"""

from __future__ import annotations

import os
import random
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyspark
import pytest

from braid.model.failpoints import STEPS
from tests.spark.kill_harness import Job

KILLS = int(os.environ.get("BRAID_KILLS", "4"))
SEED = int(os.environ.get("BRAID_KILLS_SEED", time.time_ns() % 1_000_000))

pytestmark = [pytest.mark.spark, pytest.mark.kills]

COMMIT_BEFORE_LOG = '''\
"""Python reads this file at its start: the engine, with two steps in the wrong order.

The log of a batch is held back until its commit is written and its results are published.
"""
import os
from braid.state.checkpoint import Checkpoint
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


@pytest.mark.timeout(900)
def test_a_driver_killed_at_every_step_loses_and_doubles_nothing(tmp_path):
    with Job(tmp_path / "job", seed=1, batches=len(STEPS) + 2) as job:
        for number, step in enumerate(STEPS, start=1):
            job.start(failpoint=f"{step}@{number}").die()
            done = number + 1 if step in STEPS[STEPS.index("results published") :] else number
            assert len(job.published()) == done, f"killed at another step than {step!r}"
            job.check_published_is_whole()
        job.finish()


@pytest.mark.timeout(300 + 90 * KILLS)
@pytest.mark.parametrize("seed", [SEED])
def test_a_driver_killed_at_random_moments_loses_and_doubles_nothing(tmp_path, seed):
    chance, kills = random.Random(seed), 0
    while kills < KILLS:
        folder = tmp_path / f"job-{kills}"
        with Job(folder, seed=chance.randrange(10**6), batches=20, rows=300) as job:
            while kills < KILLS and len(job.published()) < job.batches:
                driver = job.start()
                wait_for_a_moment(driver, chance, len(job.drivers))
                kills += driver.kill()
                job.check_published_is_whole()
            job.finish()


def wait_for_a_moment(driver, chance, start):
    """Any moment will do, but most of them are Spark's: so every other one is aimed at ours."""
    if start == 1:  # as the checkpoint is being made
        driver.wait_until(driver.job.checkpoint.exists, "there is a checkpoint folder")
        time.sleep(chance.uniform(0, 0.2))
        return
    driver.wait_for("started")
    driver.wait_for("batch", count=chance.randint(0, 4))
    if start % 2:
        time.sleep(chance.uniform(0, 1))
    else:
        driver.wait_until(lambda: any(driver.job.out.glob(".staging/*")), "results are staged")
        time.sleep(chance.uniform(0, 0.1))


@pytest.mark.timeout(300)
def test_a_python_worker_killed_in_a_batch_is_replaced(tmp_path):
    with Job(tmp_path / "job", seed=2, batches=14) as job:
        driver = job.start()
        done = 2
        while not driver.events("retried"):
            driver.wait_for("batch", count=done)
            victim, *others = driver.python_workers()
            for worker in (victim, *others):
                worker.suspend()  # or the batch may be over before the kill
            time.sleep(2)
            victim.kill()
            for worker in others:
                worker.resume()
            done += 2
            driver.wait_for("batch", count=done)
        driver.end()
        job.check_result()


@pytest.mark.timeout(300)
def test_workers_of_a_killed_executor_rebuild_their_state_on_another(tmp_path):
    cluster = "local-cluster[2,1,1024]"
    with Job(tmp_path / "job", seed=3, batches=12, master=cluster, workers=4) as job:
        job.environ["SPARK_HOME"] = str(spark_home(tmp_path / "spark"))
        driver = job.start()
        done = 3
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
    homes = {share["worker"]: share["host"] for share in batches[0]} if batches else {}
    return sum(
        share["rebuilt_runs"]
        for shares in batches
        for share in shares
        if share["host"] != homes[share["worker"]]
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
    with Job(tmp_path / "job", seed=4, environ={"PYTHONPATH": str(tmp_path)}) as job:
        job.start(failpoint="batch evaluated@2").die()
        job.check_published_is_whole()
        job.start(failpoint="commit written@4").die()  # in the order as it is, this is harmless
        job.check_published_is_whole()
        with pytest.raises(AssertionError, match=r"log/4-\d-\w+\.log: it is missing"):
            job.finish()


@pytest.mark.timeout(60)
def test_a_lost_or_doubled_or_half_published_batch_is_found_out(tmp_path):
    job = Job(tmp_path / "job", seed=5, batches=3, rows=200)
    names = ("va", "vb", "vc", "k", "ts")
    for number, rows in job.expected.items():
        folder = job.out / f"batch={number}"
        folder.mkdir(parents=True)
        table = pa.table(dict(zip(names, zip(*rows.elements(), strict=True), strict=True)))
        pq.write_table(table, folder / "part-0.parquet")
    job.check_published_is_whole()
    part = job.out / "batch=2" / "part-0.parquet"
    whole = pq.read_table(part)
    pq.write_table(whole.slice(1), part)
    with pytest.raises(AssertionError, match="batch 2 lacks 1 results"):
        job.check_published_is_whole()
    pq.write_table(pa.concat_tables([whole, whole.slice(0, 1)]), part)
    with pytest.raises(AssertionError, match="batch 2 has 1 results too many"):
        job.check_published_is_whole()
    part.unlink()
    part.parent.rmdir()
    job.check_published_is_whole()
    with pytest.raises(AssertionError, match="batches lack"):
        job.check_result()
