from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import braid
from braid.model.errors import BraidError
from braid.model.paths import local_path
from braid.runtime.sinks import ParquetSink

SEGMENTS = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1
).filter(lambda segment: segment not in (".", ".."))


@given(st.lists(SEGMENTS, min_size=1, max_size=4))
def test_a_file_uri_names_the_path_that_it_was_made_of(segments: list[str]) -> None:
    path = Path("/", *segments)
    assert local_path(path) == path
    assert local_path(path.as_uri()) == path
    assert local_path(path.as_uri().replace("file://", "file:", 1)) == path
    assert local_path(Path(path.as_uri())) == path, "a Path has lost two slashes"


@pytest.mark.parametrize(
    ("written", "path"),
    [
        ("file://localhost/data/x", "/data/x"),
        ("FILE:///data/x", "/data/x"),
        ("file:////data/x", "/data/x"),
        ("file:///a%20b/%C3%A9/100%", "/a b/é/100%"),
        ("out", "out"),
        ("at 12:30/out", "at 12:30/out"),
        ("a:b", "a:b"),
        ("file:x", "file:x"),
        ("./s3a:/x", "s3a:/x"),
        ("/data/s3a:/x", "/data/s3a:/x"),
        ("a=b:/c", "a=b:/c"),
    ],
)
def test_a_path_without_another_scheme_is_local(written: str, path: str) -> None:
    assert local_path(written) == Path(path)


@pytest.mark.parametrize(
    ("written", "words"),
    [
        ("s3a://bucket/out", ["s3a://bucket/out", "s3a", "file:///", "./s3a://bucket/out"]),
        (Path("s3a://bucket/out"), ["s3a:/bucket/out"]),
        ("hdfs:///x", ["hdfs"]),
        ("dbfs:/x", ["dbfs"]),
        ("file://server/x", ["'server'", "file:///server/x"]),
        ("file:///x?y", ["query", "%3F"]),
        ("file:///x#y", ["fragment", "%23"]),
        ("file:///x%00y", ["NUL"]),
        ("x\0y", ["NUL"]),
    ],
)
def test_a_path_that_is_not_local_is_refused_by_name(
    written: str | Path, words: list[str]
) -> None:
    with pytest.raises(BraidError) as caught:
        local_path(written)
    assert caught.value.hint is not None
    for word in words:
        assert word in str(caught.value)


def test_streams_and_outputs_take_file_uris_and_no_others(tmp_path: Path) -> None:
    assert braid.files(tmp_path.as_uri()).folder == tmp_path
    assert ParquetSink(tmp_path.as_uri()).folder == tmp_path
    for take in (braid.files, braid.sinks.parquet):
        with pytest.raises(BraidError, match="gs://bucket/x"):
            take("gs://bucket/x")
