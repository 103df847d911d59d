"""Chapter 8.1 of Zhu's dissertation: plans with and without intermediate results, as they run.

The four sets of Table 8.1, with its windows, and several times its rates with selectivities as
many times smaller: a row finds as many matches as there. Set 4 would have 16 million results
for every second of its streams, even unscaled; there, a row of b finds less than a hundredth
of its matches in c, and the reverse. No plan of the set keeps such pairs, so its states are
those of the table.

The dissertation gave two sets more memory than they need and the others 30 MB of Java heap, of
which the mjoin of set 3 took 12. Our engine would push state to disk instead of running out of
memory. So we let all plans run, and compare what they keep with a budget as scarce as that: two
and a half times the state of the mjoin of set 3. For set 4 the text has no such figure; nine
times leaves room for the hybrid tree, and not for the binary one, as it says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from statistics import mean
from typing import TYPE_CHECKING

from braid.experiment.chained_streams import ChainedStreams
from braid.experiment.picture import draw_results_by_time, draw_state_rows
from braid.experiment.setup import Experiment, Trial
from braid.experiment.zhu_optimizers import SETS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from matplotlib.axes import Axes

    from braid.experiment.outcome import Outcome
    from braid.experiment.setup import Rows

_SOURCE = "Zhu, Dynamic Optimization and Migration of Continuous Queries"
MJOIN, BINARY, HYBRID = "mjoin", "binary tree", "hybrid tree"


@dataclass(frozen=True, slots=True)
class PlanSet:
    """How a set of Table 8.1 is run, and what the dissertation says of it.

    `factor` is how many times the rows are, `matches` the part of their matches that rows of b
    and c find in one another. The `budget` is a multiple of the mjoin's state.
    """

    number: int
    figures: str
    plans: Mapping[str, str]
    factor: float
    seconds: float
    said: Mapping[str, str]
    matches: float = 1.0
    batch_s: float = 1.0
    budget: float | None = None

    def streams(self) -> ChainedStreams:
        """The streams of the set."""
        graph = SETS[self.number]
        window_s = max(graph.windows.values())
        selectivities = tuple(
            part * (self.matches if pair == ("b", "c") else 1.0)
            for pair, part in graph.selectivity.items()
        )
        return ChainedStreams(
            tuple(graph.rates.values()), selectivities, window_s, self.seconds, self.batch_s
        ).scaled(self.factor)


def settled(values: tuple[int, ...]) -> float:
    """The mean of the last third of a curve, when windows are full."""
    return mean(values[-(len(values) // 3) :])


def _compare(which: PlanSet, outcomes: Mapping[str, Outcome]) -> Rows:
    mjoin = outcomes[MJOIN]
    rows = []
    for name in which.plans:
        if name != MJOIN:
            ratio = settled(outcomes[name].state_rows) / settled(mjoin.state_rows)
            what = f"rows in states, mjoin : {name}"
            rows.append((what, f"1 : {ratio:.2f}", which.said.get(f"state {name}", "—")))
            ratio = sum(mjoin.taken_ms[1:]) / sum(outcomes[name].taken_ms[1:])
            what = f"throughput, mjoin : {name}"
            rows.append((what, f"1 : {ratio:.2f}", which.said.get(f"throughput {name}", "—")))
    for name in which.plans if which.budget is not None else ():
        share = max(outcomes[name].state_rows) / _budget_rows(which, outcomes)
        said = which.said.get(f"budget {name}", "—")
        rows.append((f"{name}: state, at most, of the budget", f"{share:.0%}", said))
    return rows


def _budget_rows(which: PlanSet, outcomes: Mapping[str, Outcome]) -> float:
    assert which.budget is not None, "asked only of sets that have one"
    return which.budget * settled(outcomes[MJOIN].state_rows)


def _draw_state(which: PlanSet, axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    draw_state_rows(axes, outcomes)
    if which.budget is not None:
        budget = _budget_rows(which, outcomes) / 1000
        axes.axhline(budget, linestyle=":", color="0.5", label="budget")


def plans_set(which: PlanSet) -> Experiment:
    """All plans of a set."""
    streams = which.streams()
    *_, last = which.plans.values()
    return Experiment(
        name=f"plans-set-{which.number}",
        title=f"Plans of Table 8.1, set {which.number}",
        source=f"{_SOURCE}, Table 8.1 and Figures {which.figures}",
        trials=tuple(
            Trial(name, streams, 2, {"plan": plan}) for name, plan in which.plans.items()
        ),
        compare=partial(_compare, which),
        panels=(draw_results_by_time, partial(_draw_state, which)),
        rehearsal=Trial("rehearsal", streams, 2, {"plan": last}),
    )


PLAN_SETS = (
    PlanSet(
        1,
        "8.2 and 8.3",
        {MJOIN: "(a b c)", BINARY: "((a b) c)"},
        factor=20,
        seconds=30,
        said={f"state {BINARY}": "much larger", f"throughput {BINARY}": "similar"},
    ),
    PlanSet(
        2,
        "8.4 and 8.5",
        {MJOIN: "(a b c)", BINARY: "((a b) c)"},
        factor=4,
        seconds=45,
        said={f"throughput {BINARY}": "1 : more than 2"},
    ),
    PlanSet(
        3,
        "8.6 and 8.7",
        {MJOIN: "(a b c d)", BINARY: "((a b) (c d))"},
        factor=3,
        seconds=45,
        budget=2.5,
        said={
            f"state {BINARY}": "12 MB : over 30 MB",
            f"throughput {BINARY}": "similar, at first",
            f"budget {MJOIN}": "40 %",
            f"budget {BINARY}": "over 100 %, after 50 s",
        },
    ),
    PlanSet(
        4,
        "8.8 and 8.9",
        {MJOIN: "(a b c d)", BINARY: "((a b) (c d))", HYBRID: "((a b) c d)"},
        factor=4,
        seconds=100,
        matches=0.008,
        batch_s=5.0,
        budget=9.0,
        said={
            f"throughput {BINARY}": "above 1, at first",
            f"throughput {HYBRID}": "above 1",
            f"budget {BINARY}": "over 100 %, after 80 s",
            f"budget {HYBRID}": "below 100 %",
        },
    ),
)

EXPERIMENTS = {each.name: each for each in map(plans_set, PLAN_SETS)}
