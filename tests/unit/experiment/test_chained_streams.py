from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.parquet as pq
import pytest

from braid.experiment.chained_streams import ChainedStreams

if TYPE_CHECKING:
    from pathlib import Path

STREAMS = ChainedStreams((300, 600, 900), (0.1, 0.02), 1.5, 4, 0.5, switches=(2,))


def test_the_query_joins_neighbours_on_a_key_of_their_own() -> None:
    window = "[RANGE 1500 MILLISECONDS]"
    assert STREAMS.query == (
        "SELECT a.v AS va, b.v AS vb, c.v AS vc "
        f"FROM a {window}, b {window}, c {window} WHERE a.x = b.x AND b.y = c.y"
    )


def test_a_batch_is_a_file_with_the_rows_of_its_time(tmp_path: Path) -> None:
    STREAMS.write(tmp_path)
    for number, name in enumerate(STREAMS.streams):
        paths = sorted((tmp_path / name).iterdir())
        assert len(paths) == STREAMS.batches == 8
        for batch, path in enumerate(paths):
            table = pq.read_table(path)
            at = table.column("ts").cast("int64").to_numpy()
            assert (np.diff(at) >= 0).all()
            assert at.min() >= batch * 500_000
            assert at.max() < (batch + 1) * 500_000
            assert table == STREAMS.rows(number, batch * 500_000, (batch + 1) * 500_000)
        assert pq.read_table(tmp_path / name).num_rows == pytest.approx(
            STREAMS.rates[number] * 4, rel=0.1
        )


def test_selectivities_trade_places_at_a_switch() -> None:
    def values(stream: int, key: str, second: float) -> int:
        lower_us = round(second * 1e6)
        column = STREAMS.rows(stream, lower_us, lower_us + 1_000_000).column(key)
        return len(column.unique())

    assert [values(0, "x", 0.5), values(1, "x", 1.5), values(1, "x", 2)] == [10, 10, 50]
    assert [values(1, "y", 1), values(2, "y", 2), values(2, "y", 3)] == [50, 10, 10]
    assert STREAMS.batch_at(STREAMS.switches[0]) == 4


def test_scaled_streams_have_more_rows_with_as_many_matches() -> None:
    scaled = STREAMS.scaled(7)
    for one, other in ((0, 1), (1, 2)):
        matches = STREAMS.selectivities[one] * STREAMS.rates[other]
        assert scaled.selectivities[one] * scaled.rates[other] == pytest.approx(matches)
    assert scaled.rates[0] == 2100
