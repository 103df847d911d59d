import pytest

from braid.model.query import UNBOUNDED_US
from tests.unit.cql.pointing import A, bound, failing, hint_of

BEFORE = f"SELECT a.k FROM {A}, b"
AFTER = " WHERE a.k = b.k"


@pytest.mark.parametrize(
    ("window", "length_us"),
    [
        ("[RANGE 10 SECONDS]", 10_000_000),
        ("[range 1 second]", 1_000_000),
        ("[ RANGE\n1.5 Hours /* ? */ ]", 5_400_000_000),
        ("[RANGE 1MINUTE]", 60_000_000),
        ("[RANGE 0.001 MILLISECONDS]", 1),
        ("[RANGE 0 DAYS]", 0),
        ("[RANGE 007 DAYS]", 604_800_000_000),
        ("[RANGE 1 WEEK]", 604_800_000_000),
        ("[UNBOUNDED]", UNBOUNDED_US),
        ("[Range Unbounded]", UNBOUNDED_US),
        ("[PARTITION BY k ROWS 1]", UNBOUNDED_US),
        ("AS b [RANGE 1 DAY]", 86_400_000_000),
        ("[RANGE 1 DAY] AS b", 86_400_000_000),
        ("[RANGE 1 DAY]b", 86_400_000_000),
    ],
)
def test_a_window_follows_the_stream_or_its_alias(window: str, length_us: int) -> None:
    assert bound(f"{BEFORE} {window}{AFTER}").streams[1].window_us == length_us


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("«[]»", "of no known form"),
        ("«[10 SECONDS]»", "of no known form"),
        ("«[[RANGE 1 DAY]»]", "of no known form"),
        ("«[`RANGE` 1 DAY]»", "of no known form"),
        ("«[RANGE]»", "a number and a unit"),
        ("«[RANGE 10]»", "a number and a unit"),
        ("«[RANGE SECONDS]»", "a number and a unit"),
        ("[RANGE «-»5 SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE «x» SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE «1e3» SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE «10S» SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE «'1'» SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE 5 «FORTNIGHTS»]", "unknown unit 'FORTNIGHTS'"),
        ("[RANGE 5 «,» DAYS]", "unknown unit ','"),
        ("[RANGE 5 DAYS «AND 3 HOURS»]", "an end before this"),
        ("[RANGE «5000000 DAYS»]", "cannot be so long"),
        (f"[RANGE «{'9' * 5000} DAYS»]", "cannot be so long"),
        ("[RANGE «0.0001 MILLISECONDS»]", "finer than one microsecond"),
        ("[RANGE 1 DAY «SLIDE 0 DAYS»]", "a slide of nothing"),
        ("«[RANGE 1 DAY SLIDE]»", "a slide is a number and a unit"),
        ("[RANGE 1 DAY SLIDE «-»1 DAY]", "a slide is a number such as"),
        ("«[ROWS 10]»", "ROWS needs PARTITION BY"),
        ("«[NOW]»", "no window [NOW]"),
        ("«[SLIDE 1 DAY]»", "of no known form"),
        ("[PARTITION BY k «RANGE 1 DAY]»", "needs ROWS after its columns"),
        ("[PARTITION BY k«]»", "needs ROWS after its columns"),
        ("[PARTITION BY «]»", "takes columns' names"),
        ("[PARTITION BY k, «1» ROWS 1]", "takes columns' names"),
        ("[PARTITION BY «'k'» ROWS 1]", "takes columns' names"),
        ("[PARTITION BY k ROWS«]»", "ROWS takes a whole number"),
        ("[PARTITION BY k ROWS «0»]", "always empty"),
        ("[PARTITION BY k ROWS «1.5»]", "ROWS takes a whole number"),
        ("[PARTITION BY k ROWS «-»1]", "ROWS takes a whole number"),
        ("[PARTITION BY k ROWS «99999999999»]", "too many rows"),
        (f"[PARTITION BY k ROWS «{'9' * 5000}»]", "too many rows"),
        ("[PARTITION BY k ROWS 1 «RANGE 1 DAY»]", "an end before this"),
        ("[RANGE 1 DAY] «[RANGE 1 DAY]»", "no stream stands before this window"),
        ("AS «[RANGE 1 DAY]» b", "no stream stands before this window"),
        ("[RANGE 1 DAY] b «[RANGE 1 DAY]»", "stream 'b' has two windows"),
        ("«[»RANGE 1 DAY", "nothing closes this '['"),
        ("RANGE 1 DAY«]»", "nothing opens this ']'"),
    ],
)
def test_a_window_that_cannot_be_read_is_pointed_at(window: str, message: str) -> None:
    assert message in failing(f"{BEFORE} {window}{AFTER}").message


@pytest.mark.parametrize(
    "marked",
    [
        f"SELECT a.k FROM {A}, «b»{AFTER}",
        f"SELECT a.k FROM «a», b [RANGE 1 DAY]{AFTER}",
        f"SELECT x.k FROM «a» AS x, b [RANGE 1 DAY]{AFTER}",
        f"SELECT a.k FROM {A} JOIN «b» ON a.tags[0] = b.name",
    ],
)
def test_a_stream_without_a_window_learns_how_to_write_one(marked: str) -> None:
    error = failing(marked)
    assert error.message.endswith("has no window")
    assert "[RANGE 10 SECONDS]" in hint_of(error)


def test_an_unknown_unit_comes_with_the_known_ones() -> None:
    hint = failing(f"{BEFORE} [RANGE 2 «MONTHS»]{AFTER}").hint
    assert hint == "the units are MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS, WEEKS"


@pytest.mark.parametrize(
    "marked",
    [
        f"SELECT a.k FROM «[RANGE 1 DAY]» a, b{AFTER}",
        f"SELECT a.k FROM {A}, «[RANGE 1 DAY]» b{AFTER}",
        f"SELECT a.k FROM {A}, b [RANGE 1 DAY]{AFTER} «[RANGE 1 DAY]»",
        f"SELECT a.k «[RANGE 1 DAY]» FROM {A}, b [RANGE 1 DAY]{AFTER}",
        f"SELECT a.k «[UNBOUNDED]» FROM {A}, b [RANGE 1 DAY]{AFTER}",
    ],
)
def test_a_window_that_belongs_to_no_stream_is_refused(marked: str) -> None:
    assert failing(marked).message == "no stream stands before this window"


def test_brackets_of_arrays_are_no_windows() -> None:
    query = bound(
        f"SELECT a.tags[0] FROM {A} JOIN b [RANGE 1 DAY] ON a.tags[1] = b.tags[1] AND "
        "a.k = b.k, c [RANGE 1 DAY] WHERE a.tags[2] = c.name"
    )
    assert [stream.window_us for stream in query.streams] == [86_400_000_000] * 3
    assert query.streams[0].derived[0].sql == "`tags`[0]"


def test_a_week_is_written_as_seven_days_in_the_normal_form() -> None:
    weeks = bound(f"{BEFORE} [RANGE 2 WEEKS]{AFTER}")
    assert weeks == bound(f"{BEFORE} [RANGE 14 DAYS]{AFTER}")
