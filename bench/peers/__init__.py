"""The systems that Braid is measured against: one script each, one process per run.

Each script reads the Parquet input (or converts it before the clock starts, if its system reads
another format better), runs the query, and prints one `Measurement`.
"""
