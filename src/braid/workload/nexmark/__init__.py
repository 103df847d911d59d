"""NEXMark: people, auctions and bids of an auction house, as a benchmark defines them.

The benchmark is Tucker, Tufte, Papadimos and Maier's; the numbers (proportions, hot ones,
lengths, prices) are those that Beam's and Flink's editions of it made customary. `NexmarkSpec`
says how fast events come and from which seed; `person`, `auction` and `bid` give those of any
slice of event numbers, `rows` and `batches` those of any slice of time. An event is a function
of the spec and of its number alone: same spec, same number, same row, whoever asks.

Two things differ from these editions, both so that joins can be checked: nobody refers to
people or auctions that are yet to come, and times are in microseconds.

| module | what it says |
|---|---|
| `spec` | how fast, how skewed, from which seed; when an event happens |
| `cycle` | which event is of which kind, and who exists by then |
| `chance` | random numbers by event number |
| `words`, `prices` | names, channels, text to fill rows; what things cost |
| `columns` | who offers what, and who wants it: all columns of the three kinds |
| `streams` | slices of the streams as Arrow |
"""

from braid.workload.nexmark.spec import NexmarkSpec
from braid.workload.nexmark.streams import (
    SCHEMAS,
    STREAMS,
    auction,
    batches,
    bid,
    person,
    rows,
    stream_schema,
)

__all__ = [
    "SCHEMAS",
    "STREAMS",
    "NexmarkSpec",
    "auction",
    "batches",
    "bid",
    "person",
    "rows",
    "stream_schema",
]
