"""The micro-batch loop on Spark: split, pinning, coordinator, sources and sinks.

The only room that knows Spark. Start reading at `query` (what a user calls), then `coordinator`
(a batch's steps), `task` (what runs on an executor) and `split` (what runs in Catalyst).
"""
