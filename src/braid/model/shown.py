"""Short texts about an object: a line at a prompt, and a table in a notebook."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_LINE, _FACT = 180, 80  # characters, at most


class Shown:
    """Has facts, of which there are few, and shows them briefly."""

    __slots__ = ()

    def _facts(self) -> Mapping[str, object]:
        """What a user wants to know of this object, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """One short line."""
        facts = ", ".join(f"{name}: {clipped(v, _FACT)}" for name, v in self._facts().items())
        return f"<{type(self).__name__} {clipped(facts, _LINE)}>"

    def _repr_html_(self) -> str:
        """A table, for notebooks."""
        rows = "".join(
            f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
            for name, value in self._facts().items()
        )
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"


def clipped(value: object, most: int) -> str:
    """A text of one line, cut off where it is too long.

    >>> clipped("SELECT a.k   FROM a, b", 16)
    'SELECT a.k FROM…'
    """
    text = " ".join(str(value).split())
    return text if len(text) <= most else text[: most - 1] + "…"
