from decimal import Decimal

import pyarrow as pa
import pyarrow.compute as pc

from braid.workload import BANKS, OFFER_SCHEMA, offers, offers_spec

SECOND = 1_000_000
SPEC = offers_spec(rate=2000, seed=3)


def test_offers_have_the_columns_of_the_query():
    table = offers(SPEC, "bank1", 0, 10 * SECOND)
    assert table.schema == OFFER_SCHEMA
    table.validate(full=True)


def test_offers_are_the_same_in_any_slices():
    parts = [offers(SPEC, "bank2", n * SECOND, (n + 1) * SECOND) for n in range(5)]
    assert pa.concat_tables(parts).equals(offers(SPEC, "bank2", 0, 5 * SECOND))


def test_prices_are_those_of_a_shop():
    prices = offers(SPEC, "bank1", 0, 10 * SECOND)["price"]
    assert Decimal(10) <= pc.min(prices).as_py() < Decimal(20)
    assert Decimal(900) < pc.max(prices).as_py() <= Decimal(1050)


def test_banks_make_the_same_offers_at_prices_of_their_own():
    tables = [offers(SPEC, bank, 0, 30 * SECOND) for bank in BANKS]
    keys = [
        set(zip(*(t[c].to_pylist() for c in ("offerCurrency", "offer")), strict=True))
        for t in tables
    ]
    assert len(keys[0] & keys[1] & keys[2]) > 0.8 * len(keys[0])
    assert not tables[0]["price"].equals(tables[1]["price"])


def test_dollars_are_offered_most():
    table = offers(SPEC, "bank3", 0, 10 * SECOND)
    counts = {
        entry["values"]: entry["counts"]
        for entry in pc.value_counts(table["offerCurrency"]).to_pylist()
    }
    assert len(counts) == 10
    assert max(counts, key=counts.__getitem__) == "USD"
