"""Spark SQL that random queries use over one stream's columns, and what it means in Python.

The columns are those of `tests.oracle.queries`: v bigint, w double, s string, d decimal, and
keys k0, k1, …
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

Row = Mapping[str, Any]
Meaning = Callable[[Row], Any]


def _of(name: str, function: Callable[[Any], Any]) -> Meaning:
    """A function of one column that is null where the column is."""
    return lambda row: None if row[name] is None else function(row[name])


def _below(value: float, bound: float) -> bool:
    return not math.isnan(value) and value < bound


INTEGERS: dict[str, Meaning] = {
    "`v` % 3": _of("v", lambda v: int(math.fmod(v, 3))),
    "`v` * `v` + 1": _of("v", lambda v: v * v + 1),
    "coalesce(`v`, -1)": lambda row: -1 if row["v"] is None else row["v"],
    "CASE WHEN `s` = 'a' THEN 1 ELSE 2 END": lambda row: 1 if row["s"] == "a" else 2,
}
FLOATS: dict[str, Meaning] = {
    "`w` * 2": _of("w", lambda w: w * 2),
    "abs(`w`)": _of("w", abs),
}
STRINGS: dict[str, Meaning] = {
    "upper(`s`)": _of("s", str.upper),
    "coalesce(`s`, 'none')": lambda row: "none" if row["s"] is None else row["s"],
}
DECIMALS: dict[str, Meaning] = {
    "`d` + 1": _of("d", lambda d: d + 1),
}

FILTERS: dict[str, Meaning] = {
    "`v` % 3 = 0": _of("v", lambda v: v % 3 == 0),
    "`v` IS NOT NULL": lambda row: row["v"] is not None,
    "NOT `v` = 2": _of("v", lambda v: v != 2),
    "`w` < 3": _of("w", lambda w: _below(w, 3)),
    "`s` IN ('a', 'b') OR `s` IS NULL": lambda row: row["s"] in ("a", "b", None),
    "upper(`s`) <> 'B'": _of("s", lambda s: s.upper() != "B"),
    "`d` >= 0 AND coalesce(`v`, 1) > 0": lambda row: (
        row["d"] is not None and row["d"] >= 0 and (1 if row["v"] is None else row["v"]) > 0
    ),
}


MOST_KEYS = 8


def key_texts(name: str) -> dict[str, tuple[str, Meaning]]:
    """For some types of keys, an expression that keys are now and then made of."""
    return {
        "bigint": (
            f"coalesce(`{name}`, 7)",
            lambda row: 7 if row[name] is None else row[name],
        ),
        "string": (f"lower(`{name}`)", _of(name, str.lower)),
    }


_KEYS = [key_texts(f"k{number}") for number in range(MOST_KEYS)]
MEANING: dict[str, Meaning] = {
    **INTEGERS,
    **FLOATS,
    **STRINGS,
    **DECIMALS,
    **FILTERS,
    **{text: meaning for texts in _KEYS for text, meaning in texts.values()},
}
"""What each text means."""
