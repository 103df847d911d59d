import hashlib
import json

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from braid.model.errors import BraidError
from braid.workload import dump_spec, nexmark, parse_nexmark_spec, write_slices
from braid.workload.nexmark import STREAMS, NexmarkSpec, auction, bid, person, rows

SECOND = 1_000_000
SPEC = NexmarkSpec(seed=5)
MANY = 500_000

DRAWN = {"person": person, "auction": auction, "bid": bid}


@pytest.fixture(scope="module")
def drawn():
    return {name: draw(SPEC, 0, MANY) for name, draw in DRAWN.items()}


def numbers(table, column):
    return table[column].cast(pa.int64()).to_numpy()


def share(mask):
    return float(np.mean(mask))


def test_of_fifty_events_one_is_a_person_three_are_auctions_and_the_rest_bids(drawn):
    assert [drawn[name].num_rows for name in STREAMS] == [
        MANY // 50,
        MANY * 3 // 50,
        MANY * 46 // 50,
    ]


@pytest.mark.parametrize("name", STREAMS)
def test_tables_are_valid_and_have_no_nulls(drawn, name):
    drawn[name].validate(full=True)
    assert drawn[name].schema == nexmark.SCHEMAS[name]
    assert all(column.null_count == 0 for column in drawn[name].columns)


def test_ids_count_up(drawn):
    for name in ("person", "auction"):
        ids = numbers(drawn[name], "id")
        assert (ids == 1000 + np.arange(len(ids))).all()


@pytest.mark.parametrize("rate", [1, 7, 1000, 300_000])
def test_so_many_events_happen_in_a_second(rate):
    spec = NexmarkSpec(rate=rate)
    counts = [
        sum(rows(spec, s, n * SECOND, (n + 1) * SECOND).num_rows for s in STREAMS)
        for n in range(3)
    ]
    assert counts == [rate] * 3


def test_time_advances_evenly():
    spec = NexmarkSpec(rate=2000)
    times = np.sort(
        np.concatenate([numbers(draw(spec, 0, 5000), "ts") for draw in DRAWN.values()])
    )
    assert (times == spec.start_us + np.arange(5000) * 500).all()


def test_times_far_ahead_are_as_exact():
    spec = NexmarkSpec(rate=3, start_us=0)
    far = 3 * 10**12 + 50
    (ts,) = numbers(person(spec, far // 50 * 50, far // 50 * 50 + 1), "ts")
    assert ts == (far // 50 * 50) * SECOND // 3


def test_these_are_the_rows_of_seed_one():
    digest = hashlib.blake2b(digest_size=8)
    for draw in DRAWN.values():
        digest.update(
            json.dumps(draw(NexmarkSpec(), 0, 2000).to_pylist(), default=str).encode()
        )
    assert digest.hexdigest() == "b6e8a10e779482d8"


@pytest.mark.parametrize("name", STREAMS)
def test_another_seed_gives_other_rows(name):
    one, two = (DRAWN[name](NexmarkSpec(seed=seed), 0, 5000) for seed in (1, 2))
    assert not one.equals(two)
    assert one["ts"].equals(two["ts"])


@pytest.mark.parametrize(
    ("stream", "column", "hot", "least"),
    # The hot bidder comes one person after the hot seller, who stands in for as long.
    [("bid", "auction", 0, 0.5), ("bid", "bidder", 1, 0.74), ("auction", "seller", 0, 0.75)],
)
def test_hot_ones_are_hot(drawn, stream, column, hot, least):
    found = share((numbers(drawn[stream], column) - 1000) % 100 == hot)
    assert least < found < least + 0.02


def test_without_heat_everything_is_as_likely():
    spec = NexmarkSpec(hot_auctions=1, hot_bidders=1, hot_sellers=1)
    bids = bid(spec, 0, MANY)
    for column in ("auction", "bidder"):
        places = (numbers(bids, column) - 1000) % 100
        assert np.bincount(places, minlength=100).max() < 1.2 * len(places) / 100


def test_cold_bids_go_to_recent_auctions_of_recent_people():
    spec = NexmarkSpec(hot_auctions=1, hot_bidders=1, open_auctions=30, active_people=40)
    bids = bid(spec, 250_000, 300_000)
    opened = np.repeat(np.arange(5000, 6000) * 3 + 2, 46)
    came = np.repeat(np.arange(5000, 6000), 46)
    assert set(opened - (numbers(bids, "auction") - 1000)) == set(range(30))
    assert set(came - (numbers(bids, "bidder") - 1000)) == set(range(40))


def test_prices_are_spread_evenly_by_their_logarithm(drawn):
    prices = numbers(drawn["bid"], "price")
    assert prices.min() >= 100
    assert prices.max() <= 100_000_000
    counts, _ = np.histogram(np.log10(prices + 0.5), bins=np.linspace(2, 8, 13))
    assert counts.min() > 0.95 * len(prices) / 12
    assert counts.max() < 1.05 * len(prices) / 12


def test_reserves_are_above_the_first_bid(drawn):
    table = drawn["auction"]
    assert (numbers(table, "reserve") >= numbers(table, "initial_bid") + 100).all()


def test_about_so_many_auctions_are_open_at_a_time(drawn):
    opens, ends = numbers(drawn["auction"], "ts"), numbers(drawn["auction"], "expires")
    assert (ends > opens).all()
    moments = np.linspace(opens[1000], opens[-1], 200).astype(np.int64)
    open_then = [((opens <= moment) & (moment < ends)).sum() for moment in moments]
    assert 90 < np.mean(open_then) < 110


def test_categories_are_ten_to_fourteen(drawn):
    counts = np.bincount(numbers(drawn["auction"], "category"))
    assert counts[:10].sum() == 0
    assert len(counts) == 15
    assert counts[10:].min() > 0.9 * counts.sum() / 5


def test_people_have_names_and_live_in_the_west(drawn):
    table = drawn["person"]
    first = table.slice(0, 500)
    assert pc.all(pc.match_substring_regex(first["name"], "^[A-Z][a-z]+ [A-Z][a-z]+$")).as_py()
    assert pc.all(pc.match_substring_regex(first["email"], "^[a-z]{7}@[a-z]{5}[.]com$")).as_py()
    assert pc.all(pc.match_substring_regex(first["credit_card"], "^([0-9]{4} ?){4}$")).as_py()
    assert set(table["state"].unique().to_pylist()) == {"AZ", "CA", "ID", "OR", "WA", "WY"}
    assert len(table["city"].unique()) == 10


def test_half_of_the_bids_come_through_four_channels(drawn):
    table = drawn["bid"]
    hot = pc.is_in(table["channel"], pa.array(["Google", "Facebook", "Baidu", "Apple"]))
    assert 0.49 < pc.mean(hot.cast(pa.int8())).as_py() < 0.51
    cold = table.filter(pc.invert(hot))
    named = cold.filter(pc.match_substring(cold["url"], "channel_id="))
    assert 0.88 < named.num_rows / cold.num_rows < 0.92
    ids = pc.replace_substring_regex(named["url"], ".*channel_id=", "channel-")
    assert ids.equals(named["channel"])


def test_extra_makes_up_the_bytes_of_a_row():
    lengths = pc.utf8_length(auction(NexmarkSpec(auction_bytes=1125), 0, 50_000)["extra"])
    assert 980 < pc.mean(lengths).as_py() < 1020
    assert pc.min_max(lengths).as_py() == {"min": 800, "max": 1200}
    empty = bid(NexmarkSpec(bid_bytes=0), 0, 500)["extra"]
    assert set(empty.to_pylist()) == {""}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"rate": 0}, "rate must be from 1"),
        ({"rate": 2.5}, "rate must be a whole number"),
        ({"seed": -1}, "seed must be from 0"),
        ({"hot_auctions": 0}, "hot_auctions must be from 1"),
        ({"open_auctions": 0}, "open_auctions must be from 1"),
        ({"bid_bytes": -1}, "bid_bytes must be from 0"),
    ],
)
def test_a_spec_checks_itself(options, said):
    with pytest.raises(BraidError) as caught:
        NexmarkSpec(**options)
    assert caught.value.message.startswith(said)


def test_a_spec_survives_json():
    spec = NexmarkSpec(rate=5, seed=2**64 - 1, bid_bytes=0)
    assert parse_nexmark_spec(dump_spec(spec)) == spec
    assert parse_nexmark_spec("{}") == NexmarkSpec()


def test_an_unknown_stream_is_named():
    with pytest.raises(BraidError, match="unknown stream 'item'"):
        rows(SPEC, "item", 0, SECOND)


def test_nothing_happens_in_an_empty_slice():
    assert rows(SPEC, "bid", SECOND, SECOND).num_rows == 0
    assert rows(SPEC, "bid", -5 * SECOND, 0).num_rows == 0
    assert bid(SPEC, 10, 5).num_rows == 0
    assert person(SPEC, 1, 50).num_rows == 0


def test_lines_of_json_hold_the_same_rows(tmp_path):
    expected = rows(SPEC, "bid", 0, SECOND // 10)
    write_slices(
        lambda lower_us, upper_us: rows(SPEC, "bid", lower_us, upper_us),
        "bid",
        tmp_path / "bid",
        seconds=0.1,
        kind="jsonl",
    )
    lines = (tmp_path / "bid" / "part-00000.jsonl").read_text().splitlines()
    found = pa.Table.from_pylist([json.loads(line) for line in lines])
    names = [name for name in expected.column_names if name != "ts"]
    assert found.select(names).equals(expected.select(names))
