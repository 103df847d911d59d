from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from braid.worker.results import stream_folder

ALIASES = st.text(max_size=400) | st.text("a%/.~é", max_size=300)


@given(ALIASES)
@example("p/../../x")
@example("..")
@example("\0")
@example("é" * 300)
@example("/" * 300)
def test_an_alias_makes_one_folder_that_can_be_made_and_read_back(alias: str) -> None:
    name = stream_folder(alias)
    assert Path("late", name).parts == ("late", name)
    assert "\0" not in name
    assert len(os.fsencode(name)) <= 255
    if "%~" not in name:
        assert unquote(name, errors="surrogatepass") == f"stream={alias}"


@given(st.sets(ALIASES, max_size=5))
@example({"a/b", "a%2Fb", "a%252Fb"})
@example({"a" * 300, "a" * 301})
def test_two_aliases_have_two_folders(aliases: set[str]) -> None:
    assert len({stream_folder(alias) for alias in aliases}) == len(aliases)


@pytest.mark.parametrize("alias", ["a", "orders_2", "Größe", "my stream", "a.b", "a-b"])
def test_an_ordinary_name_stays_as_it_is(alias: str) -> None:
    assert stream_folder(alias) == f"stream={alias}"
    assert re.fullmatch(r"stream=[^%]+", stream_folder(alias))
