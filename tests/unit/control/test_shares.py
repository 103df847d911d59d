from __future__ import annotations

import pytest

from braid.control.shares import parse_shares, shared_assignment
from braid.model.errors import BraidError


def test_shares_are_read_one_per_worker() -> None:
    assert parse_shares("0.6, 0.2,.2", 3) == pytest.approx((0.6, 0.2, 0.2))
    assert parse_shares("1", 1) == (1.0,)
    assert parse_shares("0,1,0", 3) == (0, 1, 0)
    assert sum(parse_shares("0.3333333,0.3333333,0.3333333", 3)) == pytest.approx(1, abs=1e-15)


@pytest.mark.parametrize(
    ("text", "workers", "finding"),
    [
        ("0.5,0.5", 3, "2 shares"),
        ("0.5,0.4", 2, "sum to 0.9"),
        ("1.5,-0.5", 2, "'-0.5'"),
        ("0.5,half", 2, "'half'"),
        ("nan,1", 2, "'nan'"),
        ("inf,0", 2, "'inf'"),
        ("", 1, "''"),
        ("0.5,0.5,", 2, "''"),
    ],
)
def test_bad_shares_are_named_with_a_cure(text: str, workers: int, finding: str) -> None:
    with pytest.raises(BraidError) as caught:
        parse_shares(text, workers)
    assert finding in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize(
    ("groups", "shares", "counts"),
    [
        (10, (0.6, 0.2, 0.2), [6, 2, 2]),
        (100, (2 / 3, 1 / 6, 1 / 6), [67, 17, 16]),
        (1, (0.5, 0.5), [1, 0]),
        (7, (0.0, 1.0), [0, 7]),
        (3, (0.1,) * 10, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0]),
        (0, (1.0,), [0]),
    ],
)
def test_groups_are_shared_in_ranges(
    groups: int, shares: tuple[float, ...], counts: list[int]
) -> None:
    owners = shared_assignment(groups, shares)
    assert [owners.count(worker) for worker in range(len(shares))] == counts
    assert list(owners) == sorted(owners)
