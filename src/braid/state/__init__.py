"""State: immutable sorted runs, the ladder that keeps them few, and the checkpoint behind them.

A worker's state of one stream is a *ladder* of *runs*. A run is one Arrow record batch sorted
by (key hash, event time), written once, mapped into memory for reading, and backed by
*sections* of the durable log, from which it can be made again anywhere.
Probing runs lives in `braid.worker`, and which runs there are is on record (`braid.record`).
"""
