"""Chapter 16.4 of Zhu's dissertation: queries that change their plans by themselves.

Two joins over three streams, with windows of 5 seconds, as in the text. Its streams have 20
rows a second; a batch of so few is Spark's overhead and nothing else. So ours have thousands of
times as many. Selectivities are smaller, and have the text's ratio. The optimizer is the one
that begins with binary trees, as the text's only switches joins.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from braid.experiment.chained_streams import ChainedStreams
from braid.experiment.picture import draw_batch_times, draw_results_by_time, draw_state
from braid.experiment.setup import Experiment, Trial

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from braid.experiment.outcome import Outcome
    from braid.experiment.setup import Rows

    _Compare = Callable[[ChainedStreams, Mapping[str, Outcome]], Rows]

_SOURCE = "Zhu, Dynamic Optimization and Migration of Continuous Queries"
_WITHOUT = {"plan": "((a b) c)"}
_WITH = _WITHOUT | {
    "optimizer": "bjtree-init",
    # The text knows no budget of CPU here: the less a plan takes, the better.
    "cpu": math.inf,
    # Looked at after every batch, so that a switch is seen while its window passes.
    "replan_when": "data interval_ms=500 threshold=0.2",
    # Throughput is what counts here: a change may be done in a few long batches.
    "migration_pause": "5 seconds",
}
_WINDOW_S = 5.0
_REHEARSED = 100  # seconds: by then, Java has compiled most of what it runs


def two_joins(
    rate: float, fewer: float, more: float, seconds: int, *switches: int
) -> ChainedStreams:
    """Of a and b, a row finds `fewer` matches in a window, and `more` of b and c."""
    rows = rate * _WINDOW_S
    return ChainedStreams(
        (rate,) * 3, (fewer / rows, more / rows), _WINDOW_S, seconds, switches=switches
    )


def _of_both(
    outcomes: Mapping[str, Outcome], curve: Callable[[Outcome], Sequence[int]]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """A curve with the optimizer and one without, each the mean of two trials."""
    ours, theirs = (
        np.mean([curve(each) for name, each in outcomes.items() if name.split()[0] == which], 0)
        for which in ("with", "without")
    )
    return ours, theirs


def times(
    outcomes: Mapping[str, Outcome],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """What each batch takes with the optimizer and without, in milliseconds."""
    return _of_both(outcomes, lambda outcome: outcome.taken_ms)


def time_ratio(outcomes: Mapping[str, Outcome], lower: int, upper: int | None = None) -> float:
    """Throughput with : without, in the batches `lower:upper`, of which both read the same."""
    ours, theirs = (sum(each[lower:upper]) for each in times(outcomes))
    return float(theirs / ours)


def state_ratio(outcomes: Mapping[str, Outcome], lower: int) -> float:
    """State with : without, on average from a batch on."""
    ours, theirs = _of_both(outcomes, lambda outcome: outcome.state_bytes)
    return float(ours[lower:].mean() / theirs[lower:].mean())


def _silence(outcomes: Mapping[str, Outcome]) -> tuple[str, str, str]:
    silent = sum(outcome.silent_batches for outcome in outcomes.values())
    return "batches without results in a change", str(silent), "—"


def _side_by_side(
    name: str, title: str, figures: str, compare: _Compare, streams: ChainedStreams
) -> Experiment:
    """The same streams with the optimizer and without, in turns.

    Java does not stop to get faster, so the first to start is at a disadvantage: both are that
    once.
    """
    switches = tuple(moment for moment in streams.switches if moment < _REHEARSED)
    before = replace(streams, seconds=_REHEARSED, switches=switches)
    return Experiment(
        name=name,
        title=title,
        source=f"{_SOURCE}, {figures}",
        trials=(
            Trial("with", streams, 2, _WITH),
            Trial("without", streams, 2, _WITHOUT),
            Trial("without again", streams, 2, _WITHOUT),
            Trial("with again", streams, 2, _WITH),
        ),
        compare=partial(compare, streams),
        panels=(draw_results_by_time, draw_state, draw_batch_times),
        rehearsal=Trial("rehearsal", before, 2, _WITH),
        in_turns=True,
    )


# Figure 16.9.

_WARM = 10  # batches: two windows


def overhead(outcomes: Mapping[str, Outcome]) -> tuple[float, float, float]:
    """What a batch takes more with the optimizer, as a part: the median, and its bounds.

    In 95 of 100 cases the true median is between them, however the times are distributed.
    """
    ours, theirs = (each[_WARM:] for each in times(outcomes))
    more = ours / theirs - 1
    reach = min(0.5, 0.98 / math.sqrt(len(more)))
    found, lower, upper = np.quantile(more, (0.5, 0.5 - reach, 0.5 + reach)).tolist()
    return found, lower, upper


def _compare_stable(streams: ChainedStreams, outcomes: Mapping[str, Outcome]) -> Rows:
    found, lower, upper = overhead(outcomes)
    changes = sum(len(outcome.changes) for outcome in outcomes.values())
    return [
        ("a batch takes longer with the optimizer, by the median", f"{found:.1%}", "minimal"),
        ("the bounds of that median, 95 %", f"{lower:.1%} to {upper:.1%}", "—"),
        ("all batches", f"{1 / time_ratio(outcomes, _WARM) - 1:.1%}", "minimal"),
        ("changes of plan", str(changes), "0"),
    ]


def replan_stable(streams: ChainedStreams) -> Experiment:
    """Streams without a switch."""
    title = "Looking for better plans where there are none"
    return _side_by_side("replan-stable", title, "Figure 16.9", _compare_stable, streams)


# Figures 16.10 and 16.11.


def _compare_once(streams: ChainedStreams, outcomes: Mapping[str, Outcome]) -> Rows:
    switch = streams.batch_at(streams.switches[0])
    changes = outcomes["with"].changes
    rows = [
        ("changes of plan", str(len(changes)), "1"),
        (
            "throughput with : without, from the switch on",
            f"{time_ratio(outcomes, switch):.2f}",
            "1.4 to 1.5",
        ),
        (
            "state with : without, from the switch on",
            f"{state_ratio(outcomes, switch):.2f}",
            "—",
        ),
    ]
    if not changes:
        return rows
    first, last = changes[0], changes[-1]
    return [
        *rows,
        ("batches from the switch to the change", str(first.lower - switch), "10 s"),
        ("batches of the change", str(first.upper - first.lower), "—"),
        _silence(outcomes),
        (
            "throughput with : without, from then on",
            f"{time_ratio(outcomes, last.upper):.2f}",
            "1.4 to 1.5",
        ),
        (
            "state with : without, from then on",
            f"{state_ratio(outcomes, last.upper):.2f}",
            "at most 0.5",
        ),
    ]


def replan_once(streams: ChainedStreams) -> Experiment:
    """Streams with one switch."""
    title = "Two joins trade their selectivities"
    return _side_by_side(
        "replan-once", title, "Figures 16.10 and 16.11", _compare_once, streams
    )


# Figures 16.12 and 16.13.


def leads(outcomes: Mapping[str, Outcome], lower: int) -> list[float]:
    """Throughput with : without, up to every batch after `lower`."""
    ours, theirs = (each.cumsum()[lower:] for each in times(outcomes))
    return list(theirs / ours)


def _last_below(ratios: Sequence[float]) -> int:
    """How many of some ratios there are up to the last that is below 1."""
    return max((number for number, each in enumerate(ratios, 1) if each < 1), default=0)


def _compare_many(streams: ChainedStreams, outcomes: Mapping[str, Outcome]) -> Rows:
    moments = [streams.batch_at(moment) for moment in streams.switches]
    changes = outcomes["with"].changes
    so_far = leads(outcomes, changes[0].lower if changes else moments[0])
    rows = [
        ("changes of plan", str(len(changes)), "4"),
        (
            "throughput with : without, from the first switch on",
            f"{time_ratio(outcomes, moments[0]):.2f}",
            "above 1",
        ),
        (
            "the same so far, at its least from the first change on",
            f"{min(so_far):.2f}",
            "above 1",
        ),
        ("batches until it stays above 1", str(_last_below(so_far)), "0"),
        (
            "state with : without, from the first switch on",
            f"{state_ratio(outcomes, moments[0]):.2f}",
            "below 1",
        ),
        _silence(outcomes),
    ]
    for number, (lower, upper) in enumerate(pairwise([*moments, streams.batches])):
        which = "good" if number % 2 else "bad"
        ours = f"{time_ratio(outcomes, lower, upper):.2f}"
        what = f"throughput with : without, batches {lower} to {upper - 1}"
        rows.append((f"{what} (the plan without is {which})", ours, "—"))
    return rows


def replan_many(streams: ChainedStreams) -> Experiment:
    """Streams with several switches."""
    title = "Two joins trade their selectivities again and again"
    return _side_by_side(
        "replan-many", title, "Figures 16.12 and 16.13", _compare_many, streams
    )


EXPERIMENTS = {
    each.name: each
    for each in (
        replan_stable(two_joins(40_000, 1, 4, 150)),
        replan_once(two_joins(80_000, 1, 4, 90, 6)),
        # The text's plans changed at 10, 30, 70 and 130 seconds.
        replan_many(two_joins(80_000, 0.4, 6, 150, 8, 28, 68, 128)),
    )
}
