"""Optimizers: plans whose CPU and memory both fit, from rates, windows and selectivities.

    cost_model, cardinality, estimate   what plans cost
    mjoin_ordering                      who probes whom first; by ranks or by trying all
    mjoin_init, select_states           from one m-way join to trees that keep more
    bjtree_init, min_state, remove_states   from binary joins to trees that keep less
    exhaustive, skyline                 the best of all plans, or of those found in some time
    cost_of, graph_json                 given plans, and graphs in files
    timing                              when to optimize, and when to change the plan

A search for a plan ends in one of three ways. A plan that is `qualified` keeps within both
budgets. One that is not is the nearest that a quick strategy has found; there may be better
ones. None comes from `exhaustive` alone, and is a proof that no plan keeps within them.

Nothing here knows Spark, queries or states; the same graph gives the same plans.
"""

from braid.model.join_graph import JoinGraph
from braid.optimize import timing
from braid.optimize.bjtree_init import bjtree_init
from braid.optimize.cost_model import MODELS, CostModel, IndexProbes, NestedLoops
from braid.optimize.cost_of import cost_of
from braid.optimize.exhaustive import exhaustive
from braid.optimize.graph_json import dump_graph, load_graph, parse_graph
from braid.optimize.min_state import min_state
from braid.optimize.mjoin_init import mjoin_init
from braid.optimize.mjoin_ordering import mjoin_ordering
from braid.optimize.plan import Plan
from braid.optimize.skyline import Skyline, skyline

__all__ = [
    "MODELS",
    "CostModel",
    "IndexProbes",
    "JoinGraph",
    "NestedLoops",
    "Plan",
    "Skyline",
    "bjtree_init",
    "cost_of",
    "dump_graph",
    "exhaustive",
    "load_graph",
    "min_state",
    "mjoin_init",
    "mjoin_ordering",
    "parse_graph",
    "skyline",
    "timing",
]
