"""What holds for every NEXMark spec: the same rows in any slices, no dangling links."""

from itertools import pairwise

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from braid.workload.nexmark import STREAMS, NexmarkSpec, auction, batches, bid, person, rows

EVENTS = 150_000
DRAWN = {"person": person, "auction": auction, "bid": bid}


def specs():
    return st.builds(
        NexmarkSpec,
        rate=st.integers(1, 10**6) | st.sampled_from([1, 3, 50, 10**9]),
        seed=st.integers(0, 2**64 - 1),
        hot_auctions=st.integers(1, 5),
        hot_bidders=st.integers(1, 5),
        hot_sellers=st.integers(1, 5),
        open_auctions=st.integers(1, 500),
        active_people=st.integers(1, 2000),
        person_bytes=st.sampled_from([0, 80, 200]),
        auction_bytes=st.sampled_from([0, 130]),
        bid_bytes=st.sampled_from([0, 34, 100]),
    )


def cuts(end):
    return st.lists(st.integers(0, end), max_size=5).map(lambda cut: [0, *sorted(cut), end])


@settings(deadline=None, max_examples=40)
@given(specs(), st.sampled_from(STREAMS), cuts(3000))
def test_any_slices_of_events_give_the_same_rows(spec, stream, cuts):
    slices = [DRAWN[stream](spec, *bounds) for bounds in pairwise(cuts)]
    assert pa.concat_tables(slices).equals(DRAWN[stream](spec, 0, 3000))


@settings(deadline=None, max_examples=20)
@given(specs(), st.sampled_from(STREAMS), st.integers(0, 10**12), st.integers(0, 200))
def test_what_came_before_a_slice_does_not_matter(spec, stream, first, length):
    alone = DRAWN[stream](spec, first, first + length)
    within = DRAWN[stream](spec, max(0, first - 70), first + length)
    assert within.slice(within.num_rows - alone.num_rows).equals(alone)


@settings(deadline=None, max_examples=40)
@given(specs(), st.sampled_from(STREAMS), st.data())
def test_any_slices_of_time_give_the_same_rows(spec, stream, data):
    end_us = max(1, 3000 * 1_000_000 // spec.rate)
    slices = [
        batch
        for bounds in pairwise(data.draw(cuts(end_us)))
        for batch in batches(spec, stream, *bounds)
    ]
    whole = rows(spec, stream, 0, end_us)
    assert pa.Table.from_batches(slices, whole.schema).equals(whole)
    assert whole.equals(DRAWN[stream](spec, 0, spec.first_event(end_us)))


@settings(deadline=None, max_examples=20)
@given(specs(), st.integers(0, EVENTS))
def test_nobody_refers_to_what_is_yet_to_come(spec, first):
    people, auctions = (draw(spec, 0, first + 3000) for draw in (person, auction))
    made = auction(spec, first, first + 3000)
    bids = bid(spec, first, first + 3000)
    check_link(made, "seller", people)
    check_link(bids, "auction", auctions)
    check_link(bids, "bidder", people)


def check_link(table, column, target):
    """All referred to were there before; as ids count up from 1000, they tell the place."""
    places = table[column].to_numpy() - 1000
    assert ((places >= 0) & (places < target.num_rows)).all()
    came = target["ts"].cast(pa.int64()).to_numpy()[places]
    assert (came <= table["ts"].cast(pa.int64()).to_numpy()).all()


@settings(deadline=None, max_examples=20)
@given(specs(), st.integers(0, EVENTS))
def test_rows_are_in_order_of_time(spec, first):
    for draw in DRAWN.values():
        times = draw(spec, first, first + 1000)["ts"].cast(pa.int64()).to_numpy()
        assert (np.diff(times) >= 0).all()
