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
        made: Any
        try:
            made = nb.njit(cache=True, nogil=True, **options)(function)
            _do_without_if_it_fails(made._cache)
        except RuntimeError:  # neither the package's folder nor the user's can be written to
            _say_once("no folder to keep compiled code in", "that can be written to")
            made = nb.njit(nogil=True, **options)(function)
        compiled_function: Function = made
        return compiled_function

    return compile_it


def _do_without_if_it_fails(kept: Any) -> None:
    """Have numba compile without a folder that it cannot read or write after all."""

    def forgiving(method: Callable[..., Any]) -> Callable[..., Any]:
        def attempt(*arguments: Any) -> Any:
            try:
                return method(*arguments)
            except OSError as error:
                kept.disable()
                why = f"cannot keep compiled code: {error.strerror or error}"
                _say_once(why, "with room")
                return None

        return attempt

    kept.load_overload = forgiving(kept.load_overload)
    kept.save_overload = forgiving(kept.save_overload)


@cache
def _say_once(why: str, which: str) -> None:
    warnings.warn(
        f"{why}: every process compiles it anew, which takes seconds; set NUMBA_CACHE_DIR to a "
        f"folder {which}",
        stacklevel=4,
    )
