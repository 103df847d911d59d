from __future__ import annotations

from typing import TYPE_CHECKING

from braid.spark.calibrate import measure_costs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_shuffled_row_costs_more_than_one_that_stays_and_less_than_100_microseconds(
    spark: SparkSession,
) -> None:
    settings = spark.conf.getAll
    costs = measure_costs(several_keys=True)
    assert costs.search < costs.shuffle < 1e-4
    assert measure_costs(several_keys=False).shuffle == 0
    assert spark.conf.getAll == settings, "those of the session are left as they were"
