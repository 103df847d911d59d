"""The join: what one worker does with one batch of rows.

`wire` says how rows travel, `keys` how a key becomes a hash, `kernel` finds matches, `probe`
chains them into m-way results under their windows, `expression` computes what a query says of
them, and `worker` does the whole step: sort, log, probe, insert, keep the ladder in shape. No
Spark here: rows come in as Arrow batches.
"""
