"""Adaptation: what to spill and what to move, decided from numbers alone.

    tally       one batch's counts, folded into a `Snapshot`
    statistics  the snapshot: workers, their groups, what is in flight
    strategy    snapshot in, proposals out; one policy per file
    choose      which groups a proposal names
    proposal    what a strategy may ask for, with its reason and the numbers behind it
    guard       what of it is safe; all else is refused, with a sentence that says why

Nothing here knows Spark, a clock or a file: the time is a number in the snapshot, and the same
snapshots give the same proposals. Enacting them is the runtime's work.
"""
