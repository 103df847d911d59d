"""The batch loop, exactly once: evaluate, commit, publish, sweep.

Start at `engine`, which takes a batch through these steps. `cluster` is what it asks of the
world below, `feed` and `sources` what brings the rows, `sink` where results go.
"""
