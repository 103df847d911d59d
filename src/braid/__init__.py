"""Braid: continuous multi-way stream joins on Spark that adapt while they run."""

from braid import optimize
from braid.cql.fluent import Draft, stream
from braid.engine.folder import files
from braid.front import sinks
from braid.front.local import local
from braid.front.query import ContinuousQuery, query
from braid.front.run import Progress, Run
from braid.model.errors import BraidError, CheckpointError, QueryError
from braid.model.join_graph import JoinGraph
from braid.spark.session import session

__version__ = "0.1.0"

__all__ = [
    "BraidError",
    "CheckpointError",
    "ContinuousQuery",
    "Draft",
    "JoinGraph",
    "Progress",
    "QueryError",
    "Run",
    "files",
    "local",
    "optimize",
    "query",
    "session",
    "sinks",
    "stream",
]
