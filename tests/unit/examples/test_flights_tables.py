import zipfile

import pyarrow.parquet as pq
import pytest

from examples.flights import tables

FLIGHTS = """\
year,month,day,dep_delay,arr_delay,carrier,flight,tailnum,origin,dest,hour,minute,time_hour
2013,1,9,-2,,UA,1545,N14228,EWR,IAH,5,15,2013-01-09T10:00:00Z
2013,1,1,,,UA,7,,LGA,IAH,5,0,2013-01-01T10:00:00Z
"""
WEATHER = """\
origin,year,month,day,hour,temp,wind_speed,precip,visib,time_hour
EWR,2013,1,1,1,39.02,,0.0,10.0,2013-01-01T06:00:00Z
"""
PLANES = """\
tailnum,year,type,manufacturer,model,seats
N14228,,Fixed wing multi engine,BOEING,737-824,149
"""


@pytest.fixture
def streams(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", FLIGHTS)
    (tmp_path / "weather.csv").write_text(WEATHER)
    (tmp_path / "planes.csv").write_text(PLANES)
    monkeypatch.setattr(tables, "find_data", lambda: tmp_path)
    return tables.write_streams(tmp_path)


def test_flights_are_in_order_of_their_schedule_a_week_to_a_file(streams):
    first, second = sorted(streams["flights"].iterdir())
    (early,), (late,) = (pq.read_table(path).to_pylist() for path in (first, second))
    assert early["ts"].isoformat() == "2013-01-01T10:00:00+00:00"
    assert late["ts"].isoformat() == "2013-01-09T10:15:00+00:00"
    assert (early["tailnum"], late["tailnum"]) == (None, "N14228")
    assert (early["dep_delay"], late["dep_delay"]) == (None, -2)


def test_planes_are_there_from_the_start(streams):
    (path,) = streams["planes"].iterdir()
    (plane,) = pq.read_table(path).to_pylist()
    assert plane["ts"].isoformat() == "2013-01-01T00:00:00+00:00"
    assert plane["built"] is None
    assert plane["manufacturer"] == "BOEING"


def test_all_streams_have_event_times_of_one_type(streams):
    kinds = {pq.read_table(folder).schema.field("ts").type for folder in streams.values()}
    assert [str(kind) for kind in kinds] == ["timestamp[us, tz=UTC]"]
