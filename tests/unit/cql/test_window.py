import pytest

from tests.unit.cql.pointing import A, bound, failing

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
        ("AS b [RANGE 1 DAY]", 86_400_000_000),
        ("[RANGE 1 DAY] AS b", 86_400_000_000),
        ("[RANGE 1 DAY]b", 86_400_000_000),
    ],
)
def test_a_window_follows_the_stream_or_its_alias(window, length_us):
    assert bound(f"{BEFORE} {window}{AFTER}").streams[1].window_us == length_us


@pytest.mark.parametrize(
    ("window", "message"),
    [
        ("«[]»", "not of the form [RANGE n unit]"),
        ("«[10 SECONDS]»", "not of the form [RANGE n unit]"),
        ("«[[RANGE 1 DAY]»]", "not of the form [RANGE n unit]"),
        ("«[RANGE]»", "a number and a unit"),
        ("«[RANGE 10]»", "a number and a unit"),
        ("«[RANGE SECONDS]»", "a number and a unit"),
        ("[RANGE «-»5 SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE «x» SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE «1e3» SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE «'1'» SECONDS]", "is a number such as 10 or 0.5"),
        ("[RANGE 5 «FORTNIGHTS»]", "unknown unit 'FORTNIGHTS'"),
        ("[RANGE 5 «,» DAYS]", "unknown unit ','"),
        ("[RANGE 5 DAYS «AND 3 HOURS»]", "ends after its unit"),
        ("«[RANGE 5000000 DAYS]»", "too long"),
        ("«[RANGE 0.0001 MILLISECONDS]»", "finer than one microsecond"),
        ("[«ROWS» 10]", "ROWS in a window is not supported yet"),
        ("[«NOW»]", "NOW in a window is not supported yet"),
        ("[RANGE «UNBOUNDED»]", "UNBOUNDED in a window is not supported yet"),
        ("[RANGE 9 DAYS «SLIDE» 1 DAY]", "SLIDE in a window is not supported yet"),
        ("[«PARTITION BY» k ROWS 10]", "PARTITION in a window is not supported yet"),
        ("[RANGE 1 DAY] «[RANGE 1 DAY]»", "no stream stands before this window"),
        ("AS «[RANGE 1 DAY]» b", "no stream stands before this window"),
        ("[RANGE 1 DAY] b «[RANGE 1 DAY]»", "stream 'b' has two windows"),
        ("«[»RANGE 1 DAY", "nothing closes this '['"),
        ("RANGE 1 DAY«]»", "nothing opens this ']'"),
    ],
)
def test_a_window_that_cannot_be_read_is_pointed_at(window, message):
    assert message in failing(f"{BEFORE} {window}{AFTER}").message


@pytest.mark.parametrize(
    "marked",
    [
        f"SELECT a.k FROM {A}, «b»{AFTER}",
        f"SELECT a.k FROM «a», b [RANGE 1 DAY]{AFTER}",
        f"SELECT x.k FROM «a» AS x, b [RANGE 1 DAY]{AFTER}",
    ],
)
def test_a_stream_without_a_window_learns_how_to_write_one(marked):
    error = failing(marked)
    assert error.message.endswith("has no window")
    assert "[RANGE 10 SECONDS]" in error.hint


def test_an_unknown_unit_comes_with_the_known_ones():
    hint = failing(f"{BEFORE} [RANGE 2 «WEEKS»]{AFTER}").hint
    assert hint == "the units are MILLISECONDS, SECONDS, MINUTES, HOURS, DAYS"


@pytest.mark.parametrize(
    "marked",
    [
        f"SELECT a.k FROM «[RANGE 1 DAY]» a, b{AFTER}",
        f"SELECT a.k FROM {A}, «[RANGE 1 DAY]» b{AFTER}",
        f"SELECT a.k FROM {A}, b [RANGE 1 DAY]{AFTER} «[RANGE 1 DAY]»",
        f"SELECT a.k «[RANGE 1 DAY]» FROM {A}, b [RANGE 1 DAY]{AFTER}",
    ],
)
def test_a_window_that_belongs_to_no_stream_is_refused(marked):
    assert failing(marked).message == "no stream stands before this window"
