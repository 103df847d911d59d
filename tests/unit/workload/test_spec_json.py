import json

import pytest

from braid.model.errors import BraidError
from braid.workload import (
    PartitionSpec,
    Phase,
    StreamSpec,
    WorkloadSpec,
    dump_spec,
    load_spec,
    parse_spec,
)

FULL = WorkloadSpec(
    streams=(
        StreamSpec("a", 10, (Phase(5, weights=(10.0, 1.0)), Phase(2.5, rate=100))),
        StreamSpec("b", 20),
    ),
    partitions=(PartitionSpec(2, 4.0, 15_000, 1.0), PartitionSpec(4, 1.0, 45_000, 0.5)),
    zipf=0.5,
    disorder_seconds=2.0,
    pad_bytes=8,
    seed=7,
    start_us=0,
)


def test_a_spec_survives_json():
    assert parse_spec(dump_spec(FULL)) == FULL


def test_a_spec_is_read_from_a_file(tmp_path):
    (tmp_path / "spec.json").write_text(dump_spec(FULL))
    assert load_spec(tmp_path / "spec.json") == FULL


@pytest.mark.parametrize("content", [b"\xff\xfe", None])
def test_a_file_that_is_no_text_is_named(tmp_path, content):
    path = tmp_path / "spec.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(BraidError, match=f"cannot read the workload spec {path}"):
        load_spec(path)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ([], "the workload spec must be an object"),
        ({}, "streams is missing"),
        ({"streams": [{"rate": 1}]}, "streams[0].name is missing"),
        ({"streams": {"name": "a"}}, "streams must be a list"),
        ({"streams": ["a"]}, "streams[0] must be an object"),
        ({"streams": [{"name": "a"}], "tempo": 1}, "unknown field tempo"),
        ({"streams": [{"name": "a", "rat": 1}]}, "unknown field streams[0].rat"),
        ({"streams": [{"name": "a", "rate": -1}]}, "streams[0].rate must be from 0"),
        ({"streams": [{"name": "a", "rate": "9"}]}, "streams[0].rate must be a number"),
        ({"streams": [{"name": "a", "rate": 10**400}]}, "streams[0].rate must be from 0"),
        (
            {"streams": [{"name": "a"}, {"name": "b", "phases": [{"seconds": 1, "rate": -2}]}]},
            "streams[1].phases[0].rate must be from 0",
        ),
        (
            {"streams": [{"name": "a"}], "partitions": [{}, {"join_rate": 0}]},
            "partitions[1].join_rate must be from",
        ),
        (
            {"streams": [{"name": "a", "phases": [{"seconds": 1, "weights": 2}]}]},
            "streams[0].phases[0].weights must be a list",
        ),
    ],
)
def test_a_bad_field_is_named_with_its_path(data, said):
    with pytest.raises(BraidError) as caught:
        parse_spec(json.dumps(data))
    assert caught.value.message.startswith(said)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"streams": 1' + "0" * 5000 + "}"])
def test_text_that_is_not_json_is_refused(text):
    with pytest.raises(BraidError, match="the workload spec is not JSON"):
        parse_spec(text)


def test_nan_is_no_rate():
    with pytest.raises(BraidError, match=r"streams\[0\]\.rate must be from 0"):
        parse_spec('{"streams": [{"name": "a", "rate": NaN}]}')
