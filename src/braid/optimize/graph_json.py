"""Join graphs as JSON, with the names of `JoinGraph` and pairs as lists.

    {"rates": {"a": 20, "b": 20, "c": 50},
     "selectivity": [["a", "b", 0.02], ["b", "c", 0.5]],
     "window": 15}

`window` may be an object with one number per stream. `keys` and `row_bytes` may be left out.
What values are allowed is decided by the graph itself.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from braid.model.errors import BraidError
from braid.model.join_graph import JoinGraph

if TYPE_CHECKING:
    from pathlib import Path

_NEEDED = ("rates", "selectivity", "window")
_KNOWN = (*_NEEDED, "keys", "row_bytes")
_OBJECTS = ("rates", "row_bytes")
_HINT = f"its fields are {', '.join(_NEEDED)}, and perhaps keys and row_bytes"


def load_graph(path: Path) -> JoinGraph:
    """Read a graph from a JSON file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise BraidError(
            f"cannot read the join graph {path}: {why}", hint="name a JSON file"
        ) from None
    return parse_graph(text)


def parse_graph(text: str) -> JoinGraph:
    """Read a graph from JSON text.

    >>> text = '{"rates": {"a": 2, "b": 3}, "selectivity": [["a", "b", 0.5]], "window": 1}'
    >>> parse_graph(text).selectivity
    {('a', 'b'): 0.5}
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BraidError(f"the join graph is not JSON: {error}", hint=_HINT) from None
    if not isinstance(data, dict):
        raise BraidError("the join graph is no JSON object", hint=_HINT)
    _check_names(data)
    return JoinGraph(**data | {"selectivity": _pairs(data["selectivity"])})


def dump_graph(graph: JoinGraph) -> str:
    """Write a graph as JSON text that `parse_graph` reads."""
    data: dict[str, Any] = {
        "rates": dict(graph.rates),
        "selectivity": [[*pair, value] for pair, value in graph.selectivity.items()],
        "window": graph.window if isinstance(graph.window, int | float) else dict(graph.window),
    }
    if graph.keys:
        data["keys"] = [list(key) for key in graph.keys]
    if graph.row_bytes is not None:
        data["row_bytes"] = dict(graph.row_bytes)
    return json.dumps(data)


def _check_names(data: dict[str, Any]) -> None:
    for name in data:
        if name not in _KNOWN:
            raise BraidError(f"the join graph has an unknown field {name!r}", hint=_HINT)
    for name in _NEEDED:
        if name not in data:
            raise BraidError(f"the join graph lacks the field {name!r}", hint=_HINT)
    for name in _OBJECTS:
        if name in data and not isinstance(data[name], dict):
            raise BraidError(
                f"the field {name!r} of the join graph is no object",
                hint='write a number for each stream, as in {"a": 20, "b": 5}',
            )
    keys = data.get("keys", [])
    if not isinstance(keys, list) or not all(_is_texts(key) for key in keys):
        raise BraidError(
            "the field 'keys' of the join graph is no list of lists of streams",
            hint='write the streams of each key, as in [["a", "b", "c"]]',
        )


def _pairs(data: object) -> dict[tuple[str, str], Any]:
    pairs: dict[tuple[str, str], Any] = {}
    for entry in data if isinstance(data, list) else [data]:
        if not isinstance(entry, list) or len(entry) != 3 or not _is_texts(entry[:2]):
            raise BraidError(
                f"{json.dumps(entry)[:100]} is no selectivity of a pair",
                hint='write a list of entries such as ["a", "b", 0.02]',
            )
        one, other, value = entry
        if (one, other) in pairs:
            raise BraidError(
                f"the pair {(one, other)} has two selectivities", hint="give it one"
            )
        pairs[one, other] = value
    return pairs


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
