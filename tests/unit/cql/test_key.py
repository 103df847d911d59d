import pytest

from tests.unit.cql.pointing import A, B, C, bound, failing

ABC = f"SELECT a.k FROM {A}, {B}, {C}"


@pytest.mark.parametrize(
    ("where", "key"),
    [
        ("a.k = b.k AND b.k = c.k", ["k"]),
        ("c.k = a.k AND (c.k = b.k)", ["k"]),
        ("a.k = b.k AND a.k = c.k AND b.k = c.k AND a.k = a.k", ["k"]),
        ("b.j = a.j AND b.j = c.j AND c.k = a.k AND b.k = c.k", ["j", "k"]),
        (
            "(a.k = b.k AND (a.name = c.name)) AND b.k = c.k AND b.name = (a.name)",
            ["k", "name"],
        ),
    ],
)
def test_equal_columns_make_parts_of_the_key_in_order_of_appearance(where, key):
    query = bound(f"{ABC} WHERE {where}")
    assert [list(stream.key) for stream in query.streams] == [key] * 3


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (f"SELECT a.k FROM {A}, «b» [RANGE 1 DAY]", "connects a with b"),
        (f"SELECT a.k FROM {A}, «b» [RANGE 1 DAY], {C} WHERE a.k = c.k", "a, c with b"),
        (
            f"SELECT a.k FROM {A}, {B}, «c» [RANGE 1 DAY], {A} d WHERE a.k = b.k AND c.k = d.k",
            "connects a, b with c, d",
        ),
        (f"{ABC} WHERE «a.k = b.k» AND b.j = c.j", "several keys (this one leaves out c)"),
        (
            f"{ABC} WHERE a.k = b.k AND b.k = c.k AND «a.j = c.j»",
            "leaves out b) is not supported",
        ),
        (
            f"{ABC} WHERE a.k = b.k AND b.k = c.k AND a.k = «c.limit»",
            "(c.k and c.limit) is not",
        ),
        (f"{ABC} WHERE a.k = b.k AND b.k = c.k AND c.k = «a.limit»", "within one stream"),
        (f"{ABC} WHERE a.k = b.k AND «b.k = c.j»", "b.k is int64, but c.j is int32"),
        (f"{ABC} WHERE a.k = b.k AND «b.name = c.ts»", "is string, but c.ts is timestamp[us]"),
        (f"{ABC} WHERE «a.s» = b.s AND b.s = c.s", "struct<x: int64> of a.s in a key is not"),
        (f"{ABC} WHERE a.k = «b.tags» AND b.k = c.k", "list<item: string> of b.tags in a key"),
    ],
)
def test_what_is_not_one_key_over_all_streams_is_refused(marked, message):
    assert message in failing(marked).message


def test_types_that_differ_come_with_the_cure():
    assert "CAST" in failing(f"SELECT a.k FROM {A}, {B} WHERE «a.k = b.j»").hint
