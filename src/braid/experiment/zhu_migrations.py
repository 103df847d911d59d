"""Chapters 16.2 and 16.3 of Zhu's dissertation: how long a change of plan takes, what it does.

A chain of four streams begins with the plan on the left of the dissertation's Figure 10.1 and
changes to the one on the right. Windows and the matches that a row finds are those of Table
16.1; there are some hundred or thousand times as many rows, so that joining them is work.

How long a change on the parallel track takes is a matter of event time. Moving state takes as
long as its work, which goes on beside the batches: that is what these take more than usual.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from statistics import mean, median
from typing import TYPE_CHECKING

from braid.experiment.chained_streams import ChainedStreams
from braid.experiment.picture import draw_batch_rows, draw_batch_times, draw_joined_rows
from braid.experiment.setup import Experiment, Trial

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from matplotlib.axes import Axes

    from braid.experiment.outcome import Outcome, PlanChange
    from braid.experiment.setup import Rows

_SOURCE = "Zhu, Dynamic Optimization and Migration of Continuous Queries"
OLD, NEW = "(((a b) c) d)", "(a ((b c) d))"
MOVING_STATE, PARALLEL_TRACK = "moving-state", "parallel-track"
_BATCH_S = 0.5


def _changing(name: str, streams: ChainedStreams, at_s: float, way: str, pause: str) -> Trial:
    options = {
        "plan": OLD,
        "migrate_at": [f"{streams.batch_at(at_s)}:{NEW}"],
        "migration": way,
        "migration_pause": pause,
    }
    return Trial(name, streams, 2, options)


def _rehearsal(streams: ChainedStreams) -> Trial:
    return _changing("rehearsal", streams, streams.window_s, MOVING_STATE, "1 second")


def usual_ms(outcome: Outcome, change: PlanChange) -> float:
    """What a batch took shortly before a change."""
    return median(outcome.taken_ms[max(0, change.lower - 4) : change.lower])


def work_ms(outcome: Outcome) -> float:
    """What the batches of a change took more than usual, all together."""
    (change,) = outcome.changes
    taken = outcome.taken_ms[change.lower : change.upper]
    return max(0.0, sum(taken) - len(taken) * usual_ms(outcome, change))


def batches_of_change(outcome: Outcome) -> int:
    """How many batches there were during a change."""
    (change,) = outcome.changes
    return change.upper - change.lower


# Figures 16.1 to 16.4.


@dataclass(frozen=True, slots=True)
class LengthSet:
    """Streams that differ in one thing, by its values."""

    name: str
    varies: str
    unit: str
    streams: Mapping[float, ChainedStreams]

    def trial_name(self, value: float, way: str) -> str:
        """What a trial is called."""
        return f"{self.name}, {self.varies} = {value:g} {self.unit}: {way}"

    def trials(self) -> Iterator[Trial]:
        """A change in each way for every value."""
        for value, streams in self.streams.items():
            for way in (MOVING_STATE, PARALLEL_TRACK):
                # All of the work at once: that is what is measured.
                at_s = streams.window_s + 2
                yield _changing(self.trial_name(value, way), streams, at_s, way, "1 minute")

    def lengths_s(self, outcomes: Mapping[str, Outcome], way: str) -> list[float]:
        """The length of each change: the work of moving state, or a track's event time."""
        found = [
            (streams, outcomes[self.trial_name(value, way)])
            for value, streams in self.streams.items()
        ]
        if way == MOVING_STATE:
            return [work_ms(outcome) / 1000 for _, outcome in found]
        return [batches_of_change(outcome) * streams.batch_s for streams, outcome in found]


def _chain(
    factor: float, rates: tuple[float, ...], selectivities: tuple[float, ...], window_s: float
) -> ChainedStreams:
    """Streams long enough for a change that begins two seconds after the first window.

    Of a and b, only a tenth of the table's pairs join. No change depends on that, but there
    would be millions of results a second.
    """
    thinned = (selectivities[0] / 10, *selectivities[1:])
    streams = ChainedStreams(rates, thinned, window_s, 2 * window_s + 5, _BATCH_S)
    return streams.scaled(factor)


LENGTH_SETS = (
    LengthSet(
        "set 1",
        "W",
        "s",
        {w: _chain(10_000, (10,) * 4, (0.1, 0.05, 0.02), w) for w in (1.0, 2.0, 4.0)},
    ),
    LengthSet(
        "set 2",
        "λ_B",
        "rows/s",
        {b: _chain(4000, (20, b, 20, 20), (0.1, 0.05, 0.02), 1.0) for b in (20.0, 40.0, 80.0)},
    ),
    LengthSet(
        "set 3",
        "W",
        "s",
        {w: _chain(10, (10, 83, 83, 83), (0.1, 0.1, 0.1), w) for w in (1.0, 2.0, 3.0)},
    ),
)
"""As in Table 16.1, but for the scale; the values that vary are the table's."""


def growth(values: list[float], lengths: list[float]) -> float:
    """The power with which lengths grow, between the last two values.

    In the first, that Spark gets to know the plan may be most of it.
    """
    return math.log(lengths[-1] / lengths[-2]) / math.log(values[-1] / values[-2])


def _compare_lengths(sets: tuple[LengthSet, ...], outcomes: Mapping[str, Outcome]) -> Rows:
    rows = []
    for each in sets:
        moving = each.lengths_s(outcomes, MOVING_STATE)
        track = each.lengths_s(outcomes, PARALLEL_TRACK)
        for value, work_s, track_s in zip(each.streams, moving, track, strict=True):
            what = f"{each.name}, {each.varies} = {value:g} {each.unit}"
            window_s = each.streams[value].window_s
            rows.append((f"{what}: parallel track", f"{track_s:g} s", f"{2 * window_s:g} s"))
            rows.append((f"{what}: moving state, work", f"{1000 * work_s:.0f} ms", "—"))
        power = f"{growth(list(each.streams), [max(0.001, w) for w in moving]):.1f}"
        paper = "increases" if each.varies == "λ_B" else "polynomial"
        rows.append((f"{each.name}: moving state, the power of {each.varies}", power, paper))
        power = f"{growth(list(each.streams), track):.1f}"
        paper = "0" if each.varies == "λ_B" else "1"
        rows.append((f"{each.name}: parallel track, the power of {each.varies}", power, paper))
    silent = sum(outcome.silent_batches for outcome in outcomes.values())
    return [*rows, ("batches without results in all changes", str(silent), "—")]


def _draw_lengths(which: LengthSet, axes: Axes, outcomes: Mapping[str, Outcome]) -> None:
    values = list(which.streams)
    for way in (MOVING_STATE, PARALLEL_TRACK):
        axes.plot(values, which.lengths_s(outcomes, way), ".-", label=way)
    theirs = [2 * streams.window_s for streams in which.streams.values()]
    axes.plot(values, theirs, ":", color="0.5", label="2 W, the paper's parallel track")
    axes.set_ylim(bottom=0)
    axes.set_title(which.name, fontsize=10)
    axes.set_xlabel(f"{which.varies}, {which.unit}")
    axes.set_ylabel("seconds of a change")


def migration_length(sets: tuple[LengthSet, ...]) -> Experiment:
    """Changes of plan in all settings."""
    *_, longest = sets[0].streams.values()
    return Experiment(
        name="migration-length",
        title="How long a change of plan takes",
        source=f"{_SOURCE}, Table 16.1 and Figures 16.1 to 16.4",
        trials=tuple(trial for each in sets for trial in each.trials()),
        compare=partial(_compare_lengths, sets),
        panels=tuple(partial(_draw_lengths, each) for each in sets),
        rehearsal=_rehearsal(longest),
    )


# Figures 16.5 to 16.8.

_PAUSE_MS = 500


def _compare_effects(paper_silence: str, outcomes: Mapping[str, Outcome]) -> Rows:
    old, new = (mean(outcomes[name].joined_rows[-4:]) for name in ("old plan", "new plan"))
    rows = [("rows of joined streams, old : new plan", f"{old / new:.1f}", "above 1")]
    said = {MOVING_STATE: paper_silence, PARALLEL_TRACK: "none"}
    for way, silence in said.items():
        outcome = outcomes[way]
        (change,) = outcome.changes
        left = mean(outcome.joined_rows[-4:]) / new
        most = max(outcome.joined_rows[change.lower : change.upper], default=0) / old
        longest = max(outcome.taken_ms[change.lower : change.upper], default=0)
        usual = usual_ms(outcome, change)
        rows += [
            (f"{way}: batches of the change", str(batches_of_change(outcome)), "—"),
            (f"{way}: batches of it without results", str(outcome.silent_batches), silence),
            (f"{way}: joined rows, at most in the change : old plan", f"{most:.2f}", "—"),
            (f"{way}: joined rows, in the end : new plan", f"{left:.2f}", "1"),
            (f"{way}: longest batch of it, usual ones", f"{longest}, {usual:.0f} ms", "—"),
        ]
    return rows


def migration_effects(
    name: str, figures: str, silence: str, streams: ChainedStreams, at_s: float = 10.0
) -> Experiment:
    """The old plan, the new one, and a change at some moment in each way."""
    pause = f"{_PAUSE_MS} milliseconds"
    return Experiment(
        name=name,
        title=f"What a change of plan does to output and to intermediate rows, {name[10:]}",
        source=f"{_SOURCE}, Figures {figures}",
        trials=(
            Trial("old plan", streams, 2, {"plan": OLD}),
            Trial("new plan", streams, 2, {"plan": NEW}),
            *(
                _changing(way, streams, at_s, way, pause)
                for way in (MOVING_STATE, PARALLEL_TRACK)
            ),
        ),
        compare=partial(_compare_effects, silence),
        panels=(draw_joined_rows, draw_batch_rows, draw_batch_times),
        rehearsal=_rehearsal(streams),
    )


_LOW = ChainedStreams((10,) * 4, (0.1, 0.02, 0.02), 1.0, 20, _BATCH_S)
_HIGH = ChainedStreams((20,) * 4, (0.2, 0.05, 0.05), 2.0, 20, _BATCH_S)

EXPERIMENTS = {
    each.name: each
    for each in (
        migration_length(LENGTH_SETS),
        migration_effects("migration-low", "16.5 and 16.6", "hardly any", _LOW.scaled(4000)),
        migration_effects("migration-high", "16.7 and 16.8", "many", _HIGH.scaled(400)),
    )
}
