"""The same state for another number of workers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from braid.plan.placement import ByHash
from braid.state.groups import ranges_of
from braid.state.runs import Section, SortedRun, sections_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from braid.record.commit import Commit
    from braid.record.generation import Generation
    from braid.record.move import Waiting
    from braid.state.runs import Ladder


def reshared(commit: Commit, spaces: Sequence[int], workers: int) -> Commit:
    """The same state for another number of workers; `spaces` are those of the states.

    Nothing may move then. Every worker gets a copy of every run, without a file: it is made
    from the log when first opened, and then holds only the rows of the worker's own groups.
    """
    if workers == commit.workers:
        return commit
    placements = [ByHash.equal_shares(each.groups, workers) for each in commit.placements]
    assignments = tuple(each.owners for each in placements)
    return replace(
        commit,
        assignments=assignments,
        ladders=(tuple(_pooled(commit, s, space) for s, space in enumerate(spaces)),) * workers,
        generations=tuple(
            tuple(_reshared_generations(commit, placements, worker))
            for worker in range(workers)
        ),
        waiting=(tuple(_pooled_waiting(commit)),) * workers,
    )


def _reshared_generations(
    commit: Commit, placements: Sequence[ByHash], worker: int
) -> Iterator[Generation]:
    """What of all generations becomes a worker's, oldest first; without files, like runs."""
    all_of_them = (each for of_one in commit.generations for each in of_one)
    for each in sorted(all_of_them, key=lambda each: each.born):
        owned = placements[each.space].of(worker)
        mine = each.marks(len(owned)) & owned
        if mine.any():
            runs = {
                state: replace(run, file=f"{run.file}-{worker}")
                for state, run in each.runs.items()
            }
            yield replace(each, groups=ranges_of(mine), runs=runs)


def _pooled(commit: Commit, state: int, space: int) -> Ladder:
    """One state's runs of all workers, oldest first.

    After an earlier change of workers several of them share a section, each for its own groups.
    Their runs become one, or the section's rows would come back once for each.
    """
    own = (sections_of([ladders[state]]) for ladders in commit.ladders)
    counting = _counting(commit, space, own)
    pools: list[tuple[set[Section], list[SortedRun]]] = []
    for run in commit.runs_of(state):
        sections, runs = {_bare(section) for section in run.backing}, [run]
        for kin in [pool for pool in pools if pool[0] & sections]:
            pools.remove(kin)
            sections, runs = sections | kin[0], kin[1] + runs
        pools.append((sections, runs))
    whole = (_as_one(runs, counting) for _, runs in pools)
    return tuple(sorted((run for run in whole if run.backing), key=lambda run: run.oldest_us))


def _pooled_waiting(commit: Commit) -> Iterator[Waiting]:
    """What waits at all workers, each section once."""
    everywhere = [each for own in commit.waiting for each in own]
    counting = {
        space: _counting(
            commit,
            space,
            ([each.section for each in own if each.space == space] for own in commit.waiting),
        )
        for space in {each.space for each in everywhere}
    }
    for each in dict.fromkeys(replace(w, section=_bare(w.section)) for w in everywhere):
        counts = counting[each.space][each.section]
        if counts.any():
            yield replace(each, section=replace(each.section, without=ranges_of(~counts)))


def _counting(
    commit: Commit, space: int, sections: Iterable[Iterable[Section]]
) -> dict[Section, NDArray[np.bool_]]:
    """For each section the groups whose rows in it count: their owner has it, and with them.

    `sections` are by worker.
    """
    counting: dict[Section, NDArray[np.bool_]] = {}
    for worker, own in enumerate(sections):
        owned = commit.placement(space).of(worker)
        for section in own:
            mine = section.counting(owned)
            counting[_bare(section)] = counting.get(_bare(section), False) | mine
    return counting


def _as_one(
    runs: Sequence[SortedRun], counting: Mapping[Section, NDArray[np.bool_]]
) -> SortedRun:
    """A run without a file in place of several."""
    sections = dict.fromkeys(_bare(section) for run in runs for section in run.backing)
    return SortedRun(
        file=runs[0].file,
        tier="",
        length=0,
        checksum="",
        rows=sum(run.rows for run in runs),
        oldest_us=min(run.oldest_us for run in runs),
        newest_us=max(run.newest_us for run in runs),
        backing=tuple(
            replace(section, without=ranges_of(~counting[section]))
            for section in sections
            if counting[section].any()
        ),
        until_us=_latest_deadlines(runs),
    )


def _latest_deadlines(runs: Sequence[SortedRun]) -> tuple[int, ...]:
    """Deadlines that no run's are behind; none if one of the runs does not know its own."""
    known = [run.until_us for run in runs]
    return tuple(map(max, zip(*known, strict=True))) if all(known) else ()


def _bare(section: Section) -> Section:
    """The section's bytes, whoever's rows in them count."""
    return replace(section, without=())
