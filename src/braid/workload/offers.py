"""The demo's data: offers of three banks, for the first query of paper 001.

A workload in disguise: its partitions are currencies and its values are offers, so the banks'
offers join on (offerCurrency, offer) with the join rate and tuple range of the spec.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from braid.workload.draw import value_counts
from braid.workload.rows import rows
from braid.workload.spec import MOST_SECONDS, PartitionSpec, Phase, StreamSpec, WorkloadSpec

if TYPE_CHECKING:
    from braid.workload.arrivals import Ints

BANKS = ("bank1", "bank2", "bank3")

OFFER_SCHEMA = pa.schema(
    [
        ("ts", pa.timestamp("us", "UTC")),
        ("offerCurrency", pa.string()),
        ("offer", pa.string()),
        ("brokerName", pa.string()),
        ("price", pa.decimal128(12, 4)),
    ]
)

_CURRENCIES = {
    "USD": 44.0,
    "EUR": 15.0,
    "JPY": 8.0,
    "GBP": 6.5,
    "CNY": 3.5,
    "AUD": 3.0,
    "CAD": 3.0,
    "CHF": 2.5,
    "HKD": 1.5,
    "SGD": 1.0,
}
"""Each currency's load relative to the others; roughly its part in world trade."""

_BROKERS = (
    "Alder & Sons",
    "Birch Brothers",
    "Cedar House",
    "Elm Street",
    "Hazel Partners",
    "Juniper",
    "Larch & Larch",
    "Maple Leaf",
    "Rowan",
    "Spruce Trading",
    "Willow Bank",
    "Yew Exchange",
)


def offers_spec(
    rate: float = 1000.0,
    *,
    join_rate: float = 3.0,
    tuple_range: int = 30_000,
    disorder_seconds: float = 0.0,
    seed: int = 0,
    handover_seconds: float | None = None,
) -> WorkloadSpec:
    """A workload whose streams are the three banks and whose partitions are the currencies.

    With a handover, the first bank has twice the rate until then and the last a tenth of it;
    from then on the first has a tenth of it and the last four times the rate.
    """
    rates = dict.fromkeys(BANKS, (rate, rate))
    if handover_seconds is not None:
        rates[BANKS[0]], rates[BANKS[-1]] = (2 * rate, rate / 10), (rate / 10, 4 * rate)
    return WorkloadSpec(
        streams=tuple(
            StreamSpec(bank, rate, _phases(handover_seconds, *rates[bank])) for bank in BANKS
        ),
        partitions=tuple(
            PartitionSpec(1, join_rate, tuple_range, weight) for weight in _CURRENCIES.values()
        ),
        disorder_seconds=disorder_seconds,
        seed=seed,
    )


def _phases(until: float | None, before: float, after: float) -> tuple[Phase, ...]:
    return () if until is None else (Phase(until, before), Phase(MOST_SECONDS, after))


def offers(spec: WorkloadSpec, bank: str, lower_us: int, upper_us: int) -> pa.Table:
    """What a bank offers in a slice of time; the spec is one of `offers_spec`.

    >>> offers(offers_spec(rate=10), "bank1", 0, 60_000_000).column_names
    ['ts', 'offerCurrency', 'offer', 'brokerName', 'price']
    """
    plain = rows(spec, bank, lower_us, upper_us)
    keys = plain["k"].to_numpy()
    luck = plain["v"].to_numpy()
    names = [f"offer-{number:05d}" for number in range(int(value_counts(spec).max()))]
    columns = [
        plain["ts"],
        _pick(tuple(_CURRENCIES), keys % len(_CURRENCIES)),
        _pick(names, keys // len(_CURRENCIES)),
        _pick(_BROKERS, luck % len(_BROKERS)),
        _decimals(_prices(keys, luck)),
    ]
    return pa.table(columns, schema=OFFER_SCHEMA)


def _pick(words: tuple[str, ...] | list[str], places: Ints) -> pa.Array:
    return pa.array(words).take(pa.array(places))


def _prices(keys: Ints, luck: Ints) -> Ints:
    """Ten-thousandths: each offer has a price of 10 to 1,000; brokers add up to 5 % to it."""
    # Multiplying by a large odd number scatters neighbouring keys over the range.
    base = 100_000 + keys * 2_654_435_761 % 9_900_000
    return base + base * (luck // len(_BROKERS) % 1000) // 20_000


def _decimals(unscaled: Ints) -> pa.Array:
    """Non-negative whole numbers as decimal128, whose upper halves are then zero."""
    halves = np.zeros((len(unscaled), 2), np.int64)
    halves[:, 0] = unscaled
    kind = OFFER_SCHEMA.field("price").type
    return pa.Array.from_buffers(kind, len(unscaled), [None, pa.py_buffer(halves)])
