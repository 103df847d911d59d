from __future__ import annotations

import pytest

from braid.control.sizes import parse_size, show_size
from braid.model.errors import BraidError


@pytest.mark.parametrize(
    ("text", "size_bytes"),
    [
        ("64KB", 65_536),
        ("200MB", 200 * 2**20),
        ("2GB", 2**31),
        ("1.5GB", 3 * 2**29),
        ("4096", 4096),
        (" 3 tb ", 3 * 2**40),
        ("17b", 17),
        ("0", 0),
    ],
)
def test_a_number_and_a_unit_make_a_size(text: str, size_bytes: int) -> None:
    assert parse_size(text) == size_bytes


@pytest.mark.parametrize(
    "text", ["", "MB", "-5MB", "5 PB", "1e3", "5 MB 3", "five", "٣MB", "0x10", "1,5GB"]
)
def test_what_is_no_size_is_named_with_an_example_of_one(text: str) -> None:
    with pytest.raises(BraidError) as caught:
        parse_size(text)
    assert repr(text) in caught.value.message
    assert "200MB" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["9" * 30, "2000000TB"])
def test_a_size_beyond_all_machines_is_refused(text: str) -> None:
    with pytest.raises(BraidError, match="too large"):
        parse_size(text)


def test_a_size_is_shown_in_the_largest_unit_that_divides_it() -> None:
    assert [show_size(n) for n in (0, 1, 1024, 1025, 3 * 2**29)] == [
        "0B",
        "1B",
        "1KB",
        "1025B",
        "1536MB",
    ]
