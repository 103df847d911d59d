"""`braid optimize`: the plans of all strategies for a join graph, side by side."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from braid.cli.plans_picture import draw_plans
from braid.model.errors import BraidError
from braid.model.paths import local_path
from braid.optimize import (
    MODELS,
    CostModel,
    NestedLoops,
    Plan,
    Skyline,
    bjtree_init,
    exhaustive,
    load_graph,
    min_state,
    mjoin_init,
    skyline,
)
from braid.optimize.exhaustive import MOST_STREAMS
from braid.optimize.plan import Budget

_STRATEGIES: Mapping[str, Callable[..., Plan | None]] = {
    "mjoin-init": mjoin_init,
    "bjtree-init": bjtree_init,
    "min-state": min_state,
    "exhaustive": exhaustive,
}


def optimize(
    graph: Annotated[
        Path, typer.Argument(metavar="GRAPH.JSON", help="Rates, selectivities and window.")
    ],
    *,
    cpu: Annotated[
        float, typer.Option(help="Most CPU per unit of time.", show_default=False)
    ] = math.inf,
    memory: Annotated[float, typer.Option(help="Most memory.", show_default=False)] = math.inf,
    model: Annotated[
        str, typer.Option(help=f"What costs how much: {' or '.join(MODELS)}.")
    ] = "nested-loops",
    calibrate: Annotated[
        bool, typer.Option(help="Measure what operations cost here; CPU is then in cores.")
    ] = False,
    cartesian: Annotated[
        bool, typer.Option(help="Allow joins of streams that have no predicate.")
    ] = True,
    seconds: Annotated[float, typer.Option(help="How long to look for the skyline.")] = 1.0,
    out: Annotated[
        Path | None,
        typer.Option(parser=local_path, metavar="PICTURE.png", help="Draw CPU against memory."),
    ] = None,
) -> None:
    """Find plans for a join whose CPU and memory both fit, by all strategies.

    CPU counts operations per unit of time; memory counts rows, or bytes if the graph has
    row_bytes. Budgets are in the same units.
    """
    streams, budget = load_graph(graph), Budget(cpu, memory)
    costs = _costs(model, calibrate, len(streams.keys) > 1)
    table = Table("strategy", "plan")
    for heading in ("CPU", "memory", "qualified", "ms"):
        table.add_column(heading, justify="right")
    plans: dict[str, Plan] = {}
    for name, strategy in _STRATEGIES.items():
        if strategy is exhaustive and len(streams.rates) > MOST_STREAMS:
            table.add_row(name, Text(f"not for more than {MOST_STREAMS} streams"))
            continue
        began = perf_counter()
        plan = strategy(streams, cpu=cpu, memory=memory, model=costs, cartesian=cartesian)
        taken = f"{(perf_counter() - began) * 1000:.1f}"
        if plan is None:
            table.add_row(name, Text("no plan keeps both budgets"), "", "", "", taken)
        else:
            plans[name] = plan
            table.add_row(name, *_cells(plan), taken)
    found = skyline(streams, model=costs, cartesian=cartesian, seconds=seconds)
    console = Console(highlight=False, soft_wrap=True)
    console.print(table, soft_wrap=False)
    console.print(_about(found, budget, seconds))
    best = min(plans.values(), key=lambda p: (budget.pressure(p.cpu, p.memory), p.cpu))
    if best.qualified:
        console.print(f"most room: --plan '{best.tree}'", markup=False, end="")
        console.print(f" --order '{best.orders}'" if best.orders else "", markup=False)
    if out is not None:
        draw_plans(plans, found, budget, out)
        console.print(f"drawn in {out}", markup=False)


def _costs(model: str, calibrate: bool, several_keys: bool) -> CostModel:
    if model not in MODELS:
        raise BraidError(f"unknown cost model {model!r}", hint=f"known: {', '.join(MODELS)}")
    if not calibrate:
        return MODELS[model]()
    from braid.spark.calibrate import measure_costs  # compiles, which takes a second

    costs = measure_costs(several_keys=several_keys and model == "index")
    if model == "index":
        return costs
    return NestedLoops(costs.insert, costs.purge, costs.match)


def _cells(plan: Plan) -> tuple[Text, str, str, str]:
    """A plan in a row of the table; names of streams are no markup."""
    qualified = "yes" if plan.qualified else "no"
    return Text(plan.tree), _number(plan.cpu), _number(plan.memory), qualified


def _about(found: Skyline, budget: Budget, seconds: float) -> str:
    """The skyline in words."""
    kind = "all there are" if found.complete else f"as found in {seconds:g} s"
    kept = sum(budget.allows(plan.cpu, plan.memory) for plan in found.plans)
    first, last = found.plans[0], found.plans[-1]
    return (
        f"skyline: {len(found.plans)} plan{'s' if len(found.plans) != 1 else ''}, {kind}, of "
        f"which {kept} keep{'s' if kept == 1 else ''} both budgets; "
        f"CPU {_number(first.cpu)} to {_number(last.cpu)}, "
        f"memory {_number(first.memory)} to {_number(last.memory)}"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e12 else f"{value:.4g}"
