from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import braid
from braid.front.sinks import ParquetSink
from braid.model.errors import BraidError
from braid.model.paths import local_path

SEGMENTS = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1
).filter(lambda segment: segment not in (".", ".."))


@given(st.lists(SEGMENTS, min_size=1, max_size=4))
def test_a_file_uri_names_the_path_that_it_was_made_of(segments: list[str]) -> None:
    path = Path("/", *segments)
    assert local_path(path) == path
    assert local_path(path.as_uri()) == path
    assert local_path(path.as_uri().replace("file://", "file:", 1)) == path


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
        ("C:x", "C:x"),
        ("s3a", "s3a"),
        ("out/s3a:x", "out/s3a:x"),
        ("orders:gs", "orders:gs"),
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
        ("s3a:bucket/x", ["s3a:bucket/x", "support s3a", "./s3a:bucket/x"]),
        ("wasbs:container@account/x", ["support wasbs", "./wasbs:container@account/x"]),
        (Path("GS:bucket"), ["support GS"]),
        (Path("file://server/x"), ["file:/server/x", "lost slashes", "as text"]),
        (Path("file:///data/x"), ["file:/data/x", "lost slashes", "without a scheme"]),
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


def test_what_is_here_under_the_name_of_a_scheme_is_local(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("s3a:bucket").mkdir()
    Path("hdfs:").mkdir()
    assert local_path("s3a:bucket/x") == Path("s3a:bucket/x")
    for written in ("s3a:another/x", "hdfs://x", "hdfs:/x"):
        with pytest.raises(BraidError, match="is not a local path"):
            local_path(written)


def test_streams_and_outputs_take_file_uris_and_no_others(tmp_path: Path) -> None:
    assert braid.files(tmp_path.as_uri()).folder == tmp_path
    assert ParquetSink(tmp_path.as_uri()).folder == tmp_path
    for take in (braid.files, braid.sinks.parquet):
        with pytest.raises(BraidError, match="gs://bucket/x"):
            take("gs://bucket/x")
