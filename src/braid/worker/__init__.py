"""One worker's round of a batch: receive, insert, probe, group, spill.

Start at `round_task`, which does it all in order. `arrivals` are the rows that come, `kernel`
finds matches, `probe` chains them into m-way results under their windows, `grouping` and
`history` hold what a query asks of these, and `overflow` is what does not fit into memory. Rows
come in as Arrow batches; a report and rows for the next round go out. No Spark here.
"""
