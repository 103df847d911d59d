"""Deciders: what to spill and what to move, and when a plan should change.

    tally         one batch's counts, folded into a `Snapshot`
    statistics    the snapshot: workers, their groups, what is in flight
    strategy      snapshot in, proposals out; one policy per file
    choose        which groups a proposal names
    proposal      what a strategy may ask for, with its reason and the numbers behind it
    guard         what of it is safe; all else is refused, with a sentence that says why
    adaptation    all of that after a batch
    pacing        how much of a batch each worker may join
    observation   what a running query measures of its streams
    behind        how far it is behind its input
    slices        how many groups a batch fills while the plan changes
    change_cost   what a change of plan costs

Nothing here knows Spark, a clock or a file.
"""
