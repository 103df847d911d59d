"""Compiling a function, once for all processes where there is a folder to keep it in."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

import numba as nb

if TYPE_CHECKING:
    from collections.abc import Callable

    Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Have numba compile a function, which runs without Python's lock then."""

    def compile_it(function: Function) -> Function:
        try:
            made: Function = nb.njit(cache=True, nogil=True, **options)(function)
        except RuntimeError:  # neither the package's folder nor the user's can be written to
            _say_once()
            made = nb.njit(nogil=True, **options)(function)
        return made

    return compile_it


@cache
def _say_once() -> None:
    warnings.warn(
        "no folder to keep compiled code in: every process compiles it anew, which takes "
        "seconds; set NUMBA_CACHE_DIR to a folder that can be written to",
        stacklevel=4,
    )
