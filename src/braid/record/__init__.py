"""The commit record, its lawful changes, and the checkpoint that it is kept in.

A batch begins with a record and ends with the next one (`commit`, `next_commit`). Between two
batches a record may change as well: groups move (`move`, `moving`), plans change
(`plan_change`, `adopt`), the number of workers does (`resharing`). Workers get their orders
from it (`worker_orders`), and their `report`s are what the next one is made from.
"""
