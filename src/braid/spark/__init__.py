"""Batches on Spark: the only room besides `cli` that knows it.

`sources` are the streams, `cluster` evaluates batches of them: `union` and `split` are what
runs in Catalyst, `task` what runs on an executor, `pinning` keeps the two together.
"""
