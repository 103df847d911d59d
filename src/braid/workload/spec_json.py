"""Specs as JSON: the fields of `WorkloadSpec` or `NexmarkSpec`, name for name, tuples as lists.

    {"streams": [{"name": "a", "rate": 1000}, {"name": "b"}],
     "partitions": [{"count": 300, "join_rate": 3, "tuple_range": 30000}]}

An error names the field by its path, such as `streams[1].phases[0].rate`. What values are
allowed is decided by the specs themselves.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, asdict, fields
from typing import TYPE_CHECKING, Any

from braid.model.errors import BraidError
from braid.workload.nexmark import NexmarkSpec
from braid.workload.spec import PartitionSpec, Phase, StreamSpec, WorkloadSpec

if TYPE_CHECKING:
    from pathlib import Path

_PARTS: dict[str, type] = {"streams": StreamSpec, "partitions": PartitionSpec, "phases": Phase}
"""The fields that hold a list of further objects."""


def parse_spec(text: str) -> WorkloadSpec:
    """Read a workload from JSON text.

    >>> parse_spec('{"streams": [{"name": "a", "rate": 5}]}').stream("a").rate
    5
    """
    spec: WorkloadSpec = _parse(WorkloadSpec, text)
    return spec


def parse_nexmark_spec(text: str) -> NexmarkSpec:
    """Read a spec of NEXMark's streams from JSON text; what is left out has its default.

    >>> parse_nexmark_spec('{"rate": 500}').seed
    1
    """
    spec: NexmarkSpec = _parse(NexmarkSpec, text)
    return spec


def load_spec(path: Path) -> WorkloadSpec:
    """Read a workload from a JSON file."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BraidError(f"cannot read the workload spec {path}: {error}") from None
    return parse_spec(text)


def dump_spec(spec: WorkloadSpec | NexmarkSpec) -> str:
    """Write a spec as JSON text that its parser reads back."""
    return json.dumps(asdict(spec))


def _parse(kind: type, text: str) -> Any:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BraidError(f"the workload spec is not JSON: {error}") from None
    return _build(kind, "", data)


def _build(kind: type, path: str, data: object) -> Any:
    if not isinstance(data, dict):
        raise BraidError(f"{path or 'the workload spec'} must be an object, not {data!r}")
    _check_names(kind, path, data)
    given = {name: _value(_join(path, name), name, value) for name, value in data.items()}
    try:
        return kind(**given)
    except BraidError as error:
        raise BraidError(_join(path, error.message), hint=error.hint) from None


def _check_names(kind: type, path: str, data: dict[str, object]) -> None:
    known = [field.name for field in fields(kind)]
    for name in data:
        if name not in known:
            hint = f"the fields here are {', '.join(known)}"
            raise BraidError(f"unknown field {_join(path, name)}", hint=hint)
    for field in fields(kind):
        if field.name not in data and field.default is MISSING:
            raise BraidError(f"{_join(path, field.name)} is missing")


def _value(path: str, name: str, value: object) -> object:
    if not isinstance(value, list):
        return value
    if name not in _PARTS:
        return tuple(value)
    return tuple(
        _build(_PARTS[name], f"{path}[{number}]", part) for number, part in enumerate(value)
    )


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
