"""A figure of a paper about plans: computed from models alone, without streams and Spark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from braid.experiment.setup import Rows

Found = TypeVar("Found")


@dataclass(frozen=True, slots=True)
class Study(Generic[Found]):
    """What to compute, and the table and picture that are made of it.

    `compute` calls what it is given with the name of each step.
    """

    name: str
    title: str
    source: str
    compute: Callable[[Callable[[str], None]], Found]
    compare: Callable[[Found], Rows]
    draw: Callable[[Found, Path], None]
