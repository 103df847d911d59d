"""What Braid tells people when it cannot go on.

Every error names the thing that is wrong and, where we know it, the cure. Whoever catches a
`BraidError` may show `str(error)` to a user as it is; a stack trace is never an interface.
"""

from __future__ import annotations


class BraidError(Exception):
    """Something outside the engine is wrong, and a person can put it right."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        """Keep the message and the cure apart, so that a view may style them."""
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        """The message, and on a line of its own the cure."""
        return self.message if self.hint is None else f"{self.message}\n  hint: {self.hint}"


class QueryError(BraidError):
    """A query that cannot be run, with the place in its text.

    >>> print(QueryError("unknown stream 'c'", text="SELECT c.x FROM a", lower=7, upper=8))
    unknown stream 'c'
      line 1: SELECT c.x FROM a
                     ^
    """

    def __init__(
        self, message: str, *, text: str, lower: int, upper: int, hint: str | None = None
    ) -> None:
        """Remember the half-open character range `lower:upper` of `text` that is at fault."""
        super().__init__(message, hint=hint)
        self.text = text
        self.lower = lower
        self.upper = upper

    def __str__(self) -> str:
        """The message, the line of the query with carets under the fault, and the cure."""
        before = self.text[: self.lower]
        number = before.count("\n") + 1
        start = before.rfind("\n") + 1
        line = self.text[start:].split("\n", 1)[0]
        label = f"  line {number}: "
        column = self.lower - start
        width = max(1, min(self.upper, start + len(line)) - self.lower)
        parts = [self.message, label + line, " " * (len(label) + column) + "^" * width]
        if self.hint is not None:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)


class PlanTooWide(BraidError):
    """A plan, or several at once, with more kinds of rows than can be told apart."""


class CheckpointError(BraidError):
    """A checkpoint that is foreign, damaged, or in use."""


class DamagedFile(CheckpointError):
    """A file whose bytes are not those that were written."""

    def __init__(self, path: str, finding: str, *, hint: str | None = None) -> None:
        """Name the file and what gave it away."""
        super().__init__(f"damaged file {path}: {finding}", hint=hint)
        self.path = path
        self.finding = finding


class StorageFull(BraidError):
    """A disk or memory tier without room for what must be written."""


def error_of(fault: BaseException) -> Exception:
    """What ended a run, as an error: Python ends threads without a word at a `SystemExit`.

    >>> print(error_of(SystemExit(3)))
    the run was ended by SystemExit(3)
      hint: a callback or a listener has raised it; to end a run, call its stop() elsewhere
    """
    if isinstance(fault, Exception):
        return fault
    return BraidError(
        f"the run was ended by {fault!r}",
        hint="a callback or a listener has raised it; to end a run, call its stop() elsewhere",
    )
