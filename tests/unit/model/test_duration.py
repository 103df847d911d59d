from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.model.duration import (
    LONGEST_US,
    UNIT_US,
    format_duration,
    parse_duration,
    unit_us,
)
from braid.model.errors import BraidError

LAW = settings(deadline=None)


@pytest.mark.parametrize(
    ("text", "length_us"),
    [
        ("5 seconds", 5_000_000),
        ("1 SECOND", 1_000_000),
        ("1.5 hours", 5_400_000_000),
        ("250milliseconds", 250_000),
        ("  2   Days ", 172_800_000_000),
        ("0 seconds", 0),
        ("0.001 milliseconds", 1),
    ],
)
def test_a_number_and_a_unit_make_a_duration(text: str, length_us: int) -> None:
    assert parse_duration(text) == length_us


@pytest.mark.parametrize(
    "text",
    ["", "5", "seconds", "5 parsecs", "-5 seconds", "5 seconds 3", "1e3 seconds", "five days"],
)
def test_what_is_no_duration_is_named_with_an_example_of_one(text: str) -> None:
    with pytest.raises(BraidError) as caught:
        parse_duration(text)
    assert repr(text) in caught.value.message
    assert "5 seconds" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["900000 days", "9" * 400 + " milliseconds"])
def test_a_duration_beyond_all_history_is_refused(text: str) -> None:
    with pytest.raises(BraidError, match="too long"):
        parse_duration(text)


@pytest.mark.parametrize("unit", UNIT_US)
def test_a_unit_may_be_plural_and_in_any_case(unit: str) -> None:
    assert unit_us(unit.lower()) == unit_us(unit.title() + "s") == UNIT_US[unit]


@pytest.mark.parametrize("word", ["", "s", "secondss", "fortnight"])
def test_other_words_are_no_units(word: str) -> None:
    assert unit_us(word) is None


@LAW
@given(st.integers(0, LONGEST_US))
def test_a_duration_survives_being_written_and_read(length_us: int) -> None:
    assert parse_duration(format_duration(length_us)) == length_us
