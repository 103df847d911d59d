"""Synthetic streams, as papers 000 (3.4) and 001 (3.1) define them, for experiments.

A `WorkloadSpec` says what the streams look like, and `rows` and `batches` give any slice of
any of them. Same spec, same slice, same rows: in any order, on any machine, after any restart.
`offers` dresses the same streams as the bank offers of paper 001's first query. The streams of
the NEXMark benchmark have columns and links of their own: they are in `braid.workload.nexmark`.

Nothing here knows Spark (the streaming source is `braid.spark.generator_source`) or the
engine's partition groups: a partition here is `k % partitions`.
"""

from braid.workload.files import FORMATS, WrittenFiles, write_files, write_slices
from braid.workload.offers import BANKS, OFFER_SCHEMA, offers, offers_spec
from braid.workload.rows import batches, rows, schema
from braid.workload.spec import PartitionSpec, Phase, StreamSpec, WorkloadSpec
from braid.workload.spec_json import dump_spec, load_spec, parse_nexmark_spec, parse_spec

__all__ = [
    "BANKS",
    "FORMATS",
    "OFFER_SCHEMA",
    "PartitionSpec",
    "Phase",
    "StreamSpec",
    "WorkloadSpec",
    "WrittenFiles",
    "batches",
    "dump_spec",
    "load_spec",
    "offers",
    "offers_spec",
    "parse_nexmark_spec",
    "parse_spec",
    "rows",
    "schema",
    "write_files",
    "write_slices",
]
