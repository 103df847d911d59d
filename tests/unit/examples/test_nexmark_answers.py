"""What DuckDB is asked in the NEXMark examples means what Braid's language means.

Auctions are open for up to a minute here, longer than any window, so that windows matter.
"""

from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import pytest

from examples.against_duckdb import connect
from examples.nexmark.run import QUERIES, make_streams

FOLDER = Path(__file__).parents[3] / "examples" / "nexmark"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seconds(count):
    return timedelta(seconds=count)


@pytest.fixture(scope="module")
def streams(tmp_path_factory):
    return make_streams(tmp_path_factory.mktemp("streams"), rate=60, seconds=42, seed=3)


@pytest.fixture(scope="module")
def rows(streams):
    with connect(streams) as db:
        return {name: db.sql(f"FROM {name}").to_arrow_table().to_pylist() for name in streams}


def answer(streams, query):
    with connect({name: streams[name] for name in QUERIES[query]}) as db:
        found = db.execute((FOLDER / f"{query}.duckdb.sql").read_text())
        return [column[0] for column in found.description], Counter(found.fetchall())


def boundaries(slide_seconds, *sources):
    """All multiples of the slide up to the watermark."""
    watermark = min(max(row["ts"] for row in source) for source in sources)
    first = min(row["ts"] for source in sources for row in source)
    step = seconds(slide_seconds)
    moment = first - (first - EPOCH) % step
    while moment <= watermark:
        yield moment
        moment += step


def groups(joined, key, slide_seconds, range_seconds, *sources):
    """For each boundary and key the combinations whose members all lie in the window."""
    found = defaultdict(list)
    for moment in boundaries(slide_seconds, *sources):
        for members in joined:
            if all(moment - seconds(range_seconds) <= m["ts"] <= moment for m in members):
                found[moment, key(*members)].append(members)
    return found


def within(range_seconds, *members):
    newest = max(member["ts"] for member in members)
    return all(newest - member["ts"] <= seconds(range_seconds) for member in members)


def bids_while_open(rows):
    return [
        (a, b)
        for a, b in product(rows["auction"], rows["bid"])
        if a["id"] == b["auction"] and a["ts"] <= b["ts"] <= a["expires"]
    ]


def test_q3(streams, rows):
    expected = Counter(
        (p["name"], p["city"], p["state"], a["id"])
        for a, p in product(rows["auction"], rows["person"])
        if a["seller"] == p["id"] and a["category"] == 10 and p["state"] in ("OR", "ID", "CA")
    )
    assert expected
    assert answer(streams, "q3")[1] == expected


def test_q4(streams, rows):
    found = groups(
        bids_while_open(rows),
        lambda a, b: (a["category"], a["id"]),
        *(5, 20),
        *(rows["auction"], rows["bid"]),
    )
    expected = Counter()
    for (moment, key), members in found.items():
        prices = [b["price"] for _, b in members]
        average = sum(prices) / len(prices)
        expected[*key, max(prices), average, len(prices), moment] += 1
    assert len(expected) > 100
    assert answer(streams, "q4")[1] == expected


def test_q7(streams, rows):
    high = [b for b in rows["bid"] if b["price"] > 10_000_000]
    found = groups(
        [(b, rival) for b, rival in product(high, high) if b["auction"] == rival["auction"]],
        lambda b, rival: (b["auction"], b["bidder"], b["price"]),
        *(10, 10),
        *(rows["bid"],),
    )
    expected = Counter(
        (*key, moment)
        for (moment, key), members in found.items()
        if key[2] == max(rival["price"] for _, rival in members)
    )
    assert len(expected) > 20
    assert answer(streams, "q7")[1] == expected


def test_q8(streams, rows):
    expected = Counter(
        (p["id"], p["name"], a["id"], a["reserve"])
        for p, a in product(rows["person"], rows["auction"])
        if p["id"] == a["seller"] and within(10, p, a)
    )
    assert 0 < expected.total() < len(rows["auction"])
    assert answer(streams, "q8")[1] == expected


def test_q9(streams, rows):
    names = ("id", "item_name", "seller", "category", "reserve", "expires")
    found = groups(
        bids_while_open(rows),
        lambda a, b: tuple(a[name] for name in names),
        *(5, 20),
        *(rows["auction"], rows["bid"]),
    )
    expected = Counter(
        (*key, max(b["price"] for _, b in members), len(members), moment)
        for (moment, key), members in found.items()
        if moment - seconds(5) < key[5] <= moment
    )
    assert len(expected) > 20
    assert answer(streams, "q9")[1] == expected


def test_q20(streams, rows):
    found = Counter(
        (b["auction"], b["bidder"], b["ts"], a["ts"], a["expires"])
        for b, a in product(rows["bid"], rows["auction"])
        if b["auction"] == a["id"] and a["category"] == 10
    )
    columns, answers = answer(streams, "q20")
    places = [
        columns.index(n) for n in ("auction", "bidder", "bid_ts", "auction_ts", "expires")
    ]
    assert found
    assert Counter(tuple(row[p] for p in places) for row in answers.elements()) == found
    assert len(columns) == len(set(columns)) == 16


def test_every_query_has_a_question_for_duckdb():
    names = {path.name.split(".")[0] for path in FOLDER.glob("*.sql")}
    assert names == set(QUERIES)
    assert all(
        (FOLDER / f"{name}{end}").exists() for name in names for end in (".sql", ".duckdb.sql")
    )
