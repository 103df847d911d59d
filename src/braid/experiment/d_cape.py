"""The experiments of Liu and Rundensteiner, on D-CAPE, on spilling and moving state.

Theirs ran for 40 minutes to hours, on machines with thresholds of 60 and 200 MB. Ours read 30
to 60 batches, and the budgets are as scarce in relation to the state as theirs.
"""

from __future__ import annotations

from dataclasses import replace
from statistics import mean
from typing import TYPE_CHECKING

from braid.experiment.partitioned_streams import PartitionedStreams
from braid.experiment.picture import draw_cleanup, draw_memory, draw_output, draw_worker_memory
from braid.experiment.setup import Experiment, Trial
from braid.workload import PartitionSpec, Phase

if TYPE_CHECKING:
    from collections.abc import Mapping

    from braid.experiment.outcome import Outcome
    from braid.experiment.setup import Rows

_SOURCE = "Liu and Rundensteiner, D-CAPE"
PARTITIONS = 60
"""As many as the engine has groups in these experiments, and a partition is a group."""
_THIRD = PARTITIONS // 3
_DEFER = {"overflow": "defer"}
_ALL_MEMORY = "all in memory"
_UNIFORM = PartitionedStreams((PartitionSpec(PARTITIONS, 3.0, 30_000),))
_UNIFORM_LONG = replace(_UNIFORM, seconds=45)


def _per_cent(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %"


# Figures 5 and 6.


def _compare_percents(outcomes: Mapping[str, Outcome]) -> Rows:
    whole = outcomes[_ALL_MEMORY].run_time_rows
    rows = []
    for name, outcome in outcomes.items():
        if name != _ALL_MEMORY:
            share = _per_cent(outcome.run_time_rows, whole)
            rows.append((f"{name}: results on time", share, "less, the more is pushed"))
            rows.append((f"{name}: spills", str(outcome.spills), "fewer, the more is pushed"))
    return rows


_SPILL_PERCENT = Experiment(
    name="spill-percent",
    title="How much to push to disk at a time",
    source=f"{_SOURCE}, Figures 5 and 6",
    trials=(
        Trial(_ALL_MEMORY, _UNIFORM),
        *(
            Trial(
                f"{k} %",
                _UNIFORM,
                options=_DEFER
                | {
                    "memory": "2500KB",
                    "strategy": "spill-only",
                    "spill_percent": k,
                    "spill_policy": "random",
                },
            )
            for k in (10, 30, 50, 100)
        ),
    ),
    compare=_compare_percents,
    panels=(draw_output, draw_memory),
)


# Figure 7.


def _compare_policies(outcomes: Mapping[str, Outcome]) -> Rows:
    less, more = outcomes["less productive first"], outcomes["more productive first"]
    ratio = less.run_time_rows / more.run_time_rows
    cleanup = less.all_cleanup_rows / more.all_cleanup_rows
    return [
        ("results on time, less : more productive first", f"{ratio:.2f}", "1.7"),
        ("clean-up, less productive first", f"{less.all_cleanup_rows:,}", "194,308"),
        ("clean-up, more productive first", f"{more.all_cleanup_rows:,}", "992,893"),
        ("clean-up, less : more", f"{cleanup:.2f}", "0.20"),
    ]


_THREE_KINDS = PartitionedStreams(
    tuple(PartitionSpec(_THIRD, rate, 30_000) for rate in (4.0, 2.0, 1.0)), seconds=30
)
_SPILL_POLICY = Experiment(
    name="spill-policy",
    title="Which groups to push to disk",
    source=f"{_SOURCE}, Figure 7",
    trials=(
        Trial(_ALL_MEMORY, _THREE_KINDS),
        *(
            Trial(
                f"{name} productive first",
                _THREE_KINDS,
                options=_DEFER
                | {"memory": "4MB", "strategy": "spill-only", "spill_policy": policy},
            )
            for name, policy in (("less", "least-productive"), ("more", "most-productive"))
        ),
    ),
    compare=_compare_policies,
    panels=(draw_output, draw_memory, draw_cleanup),
)


# Figures 9 and 10.

_PAPER_MOVES = {0.5: "2", 0.9: "24"}


def _compare_thresholds(outcomes: Mapping[str, Outcome]) -> Rows:
    whole = outcomes["no relocation"].run_time_rows
    rows = []
    for theta in (0.5, 0.7, 0.9):
        outcome = outcomes[f"θ_r = {theta:.0%}"]
        moves = str(outcome.relocations)
        share = _per_cent(outcome.run_time_rows, whole)
        rows.append((f"θ_r = {theta:.0%}: relocations", moves, _PAPER_MOVES.get(theta, "—")))
        rows.append((f"θ_r = {theta:.0%}: results on time", share, "about 100 %"))
    for name in ("no relocation", "θ_r = 90%"):
        last = outcomes[name].memory_bytes
        uneven = mean(max(each) / min(each) for each in last)
        paper = "alternates" if name == "no relocation" else "largely balanced"
        rows.append((f"{name}: fuller to emptier worker, mean", f"{uneven:.2f}", paper))
    return rows


_ALTERNATING = PartitionedStreams(
    (PartitionSpec(PARTITIONS // 2, 3.0, 30_000),) * 2,
    seconds=60,
    phases=(
        Phase(10, weights=(10.0, 1.0)),
        Phase(20, weights=(1.0, 10.0)),
        Phase(10, weights=(10.0, 1.0)),
    ),
)
_RELOCATION_THRESHOLD = Experiment(
    name="relocation-threshold",
    title="When to move, under load that alternates between two workers",
    source=f"{_SOURCE}, Figures 9 and 10",
    trials=(
        Trial("no relocation", _ALTERNATING, 2),
        *(
            Trial(
                f"θ_r = {theta:.0%}",
                _ALTERNATING,
                2,
                {"strategy": f"relocate-only theta_r={theta} tau_ms=500"},
            )
            for theta in (0.5, 0.7, 0.9)
        ),
    ),
    compare=_compare_thresholds,
    panels=(draw_output, draw_worker_memory),
)


# Figure 11.


def _compare_relocation(outcomes: Mapping[str, Outcome]) -> Rows:
    whole = outcomes[_ALL_MEMORY].run_time_rows
    paper = {"with relocation": "as all in memory", "spilling alone": "drops"}
    return [
        (f"{name}: results on time", _per_cent(outcomes[name].run_time_rows, whole), said)
        for name, said in paper.items()
    ]


_RELOCATION_VS_SPILL = Experiment(
    name="relocation-vs-spill",
    title="Moving groups to workers with room, or to disk",
    source=f"{_SOURCE}, Figure 11",
    trials=(
        Trial(_ALL_MEMORY, _UNIFORM_LONG, 3, {"assign": "0.6,0.2,0.2"}),
        *(
            Trial(
                name,
                _UNIFORM_LONG,
                3,
                _DEFER | {"assign": "0.6,0.2,0.2", "memory": "4500KB", "strategy": strategy},
            )
            for name, strategy in (
                ("with relocation", "lazy-disk theta_r=0.8 tau_ms=500"),
                ("spilling alone", "spill-only"),
            )
        ),
    ),
    compare=_compare_relocation,
    panels=(draw_output, draw_worker_memory),
)


# Figure 12.


def _compare_lazy_disk(outcomes: Mapping[str, Outcome]) -> Rows:
    lazy, none = outcomes["lazy-disk"], outcomes["no relocation"]
    work = max(lazy.cleanup_rows) / max(none.cleanup_rows)
    time = max(lazy.cleanup_ms) / max(none.cleanup_ms)
    ratio = lazy.run_time_rows / none.run_time_rows
    return [
        ("results on time, lazy-disk : no relocation", f"{ratio:.2f}", "above 1"),
        ("clean-up results of the busiest worker, the same", f"{work:.2f}", "—"),
        ("clean-up time of the busiest worker, the same", f"{time:.2f}", "400 s of 1,600 s"),
    ]


_LAZY_DISK = Experiment(
    name="lazy-disk",
    title="Lazy-disk against spilling without relocation",
    source=f"{_SOURCE}, Figure 12",
    trials=tuple(
        Trial(
            name,
            _UNIFORM_LONG,
            3,
            _DEFER
            | {
                "assign": "0.6666667,0.1666667,0.1666666",
                "memory": "2MB",
                "strategy": strategy,
            },
        )
        for name, strategy in (
            ("lazy-disk", "lazy-disk theta_r=0.8 tau_ms=500"),
            ("no relocation", "spill-only"),
        )
    ),
    compare=_compare_lazy_disk,
    panels=(draw_output, draw_worker_memory, draw_cleanup),
)


# Figures 13 and 14.


def _compare_active_disk(outcomes: Mapping[str, Outcome]) -> Rows:
    active, lazy = outcomes["active-disk"], outcomes["lazy-disk"]
    ratio = active.run_time_rows / lazy.run_time_rows
    pairs = zip(active.output_rows, lazy.output_rows, strict=True)
    behind = [number for number, (ours, theirs) in enumerate(pairs) if ours < theirs]
    ahead = "from the beginning" if not behind else f"after batch {behind[-1]}"
    if behind and behind[-1] == len(active.output_rows) - 1:
        ahead = "never"
    return [
        ("results on time, active-disk : lazy-disk", f"{ratio:.2f}", "above 1"),
        ("active-disk is ahead", ahead, "after a slight drop"),
    ]


def _active_disk(name: str, figure: int, productive: int, others: int) -> Experiment:
    streams = PartitionedStreams(
        (PartitionSpec(_THIRD, 4.0, productive), PartitionSpec(2 * _THIRD, 1.0, others)),
        seconds=45,
    )
    return Experiment(
        name=name,
        title="Spilling where it costs least, decided for all workers together",
        source=f"{_SOURCE}, Figure {figure}",
        trials=tuple(
            Trial(
                strategy,
                streams,
                3,
                _DEFER
                | {"memory": "2MB", "strategy": f"{strategy} theta_r=0.8 tau_ms=500{more}"},
            )
            for strategy, more in (("lazy-disk", ""), ("active-disk", " lambda_=2"))
        ),
        compare=_compare_active_disk,
        panels=(draw_output, draw_worker_memory),
    )


EXPERIMENTS = {
    each.name: each
    for each in (
        _SPILL_PERCENT,
        _SPILL_POLICY,
        _RELOCATION_THRESHOLD,
        _RELOCATION_VS_SPILL,
        _LAZY_DISK,
        _active_disk("active-disk", 13, 30_000, 30_000),
        _active_disk("active-disk-skewed", 14, 15_000, 45_000),
    )
}
