"""Functions of strings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from braid.evaluator.kinds import (
    Value,
    cast,
    is_binary,
    is_integer,
    is_null,
    is_string,
    misfit,
)

if TYPE_CHECKING:
    from collections.abc import Callable


def concat(*values: Value) -> Value:
    """One after the other; integers in decimal digits; null if any is null."""
    for value in values:
        if not (is_string(value.type) or is_integer(value.type) or is_null(value.type)):
            raise misfit(f"cannot concat {value.type}")
    return pc.binary_join_element_wise(*(cast(value, pa.string()) for value in values), "")


def length(value: Value) -> Value:
    """The number of code points of a string, or of bytes of a binary."""
    if is_binary(value.type):
        return pc.binary_length(value)
    return pc.utf8_length(_string("length", value))


def upper(value: Value) -> Value:
    """In capitals, by all of Unicode's rules: `ß` becomes `SS`."""
    return _mapped(pc.ascii_upper, str.upper, _string("upper", value))


def lower(value: Value) -> Value:
    """In small letters, by all of Unicode's rules."""
    return _mapped(pc.ascii_lower, str.lower, _string("lower", value))


def _string(function: str, value: Value) -> Value:
    if not (is_string(value.type) or is_null(value.type)):
        raise misfit(f"cannot compute {function} of {value.type}")
    return cast(value, pa.string())


def _mapped(ascii: Callable[[Value], Value], full: Callable[[str], str], value: Value) -> Value:
    """Arrow maps letters one to one; where that may not do, Python maps each string, once."""
    if pc.all(pc.string_is_ascii(value)).as_py() is not False:
        return ascii(value)
    if isinstance(value, pa.Scalar):
        return pa.scalar(full(value.as_py()))
    once = value.dictionary_encode()
    changed = [full(each) for each in once.dictionary.to_pylist()]
    return pa.array(changed, pa.string()).take(once.indices)
