"""Braid: continuous multi-way stream joins on Spark that adapt while they run."""

from braid import optimize
from braid.cql.fluent import Draft, stream
from braid.model.errors import BraidError, CheckpointError, QueryError
from braid.model.join_graph import JoinGraph
from braid.runtime import sinks
from braid.runtime.files import files
from braid.runtime.query import ContinuousQuery, query
from braid.runtime.run import Progress, Run
from braid.runtime.session import session

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
    "optimize",
    "query",
    "session",
    "sinks",
    "stream",
]
