"""Our dialect of SQL, for sqlglot: Spark's expressions, and nothing that Spark does not have.

sqlglot knows many dialects, and reads one function for another where it thinks them equal. Here
it is to say how a text is built, not what it means: functions are names with arguments, and
every node is marked with the tokens that it was made of (`extent`).
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeVar

from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.parsers.spark import SparkParser

_Node = TypeVar("_Node", bound=exp.Expr)

_FIRST, _LAST = "first token", "last token"

_SPECIAL_FUNCTIONS = (
    "CAST",
    "TRY_CAST",
    "EXTRACT",
    "OVERLAY",
    "POSITION",
    "SUBSTR",
    "SUBSTRING",
)
"""Functions with words between their arguments, such as CAST(x AS t)."""


def _only(table: dict[Any, Any], *keys: object) -> dict[Any, Any]:
    return {key: table[key] for key in keys}


class Cql(Spark):
    """Spark's SQL, but that "name" is a name, as in standard SQL, and not a string."""

    IDENTIFIERS_CAN_START_WITH_DIGIT = False
    DPIPE_IS_STRING_CONCAT = False  # it is below, with the precedence that it has in Spark

    class Tokenizer(Spark.Tokenizer):
        """Takes both "name" and `name`; a quote is written twice within its own kind."""

        QUOTES: ClassVar[list[str | tuple[str, str]]] = ["'"]
        IDENTIFIERS: ClassVar[list[str | tuple[str, str]]] = ['"', "`"]
        IDENTIFIER_ESCAPES: ClassVar[list[str]] = []
        STRING_ESCAPES: ClassVar[list[str]] = ["'", "\\"]
        RAW_STRINGS: ClassVar[list[str | tuple[str, str]]] = [("r'", "'"), ("R'", "'")]

    class Parser(SparkParser):
        """Marks every node, and has the operators of Spark with their precedence."""

        FUNCTIONS: ClassVar[dict[str, Any]] = {}
        FUNCTION_PARSERS: ClassVar = _only(
            SparkParser.FUNCTION_PARSERS, *_SPECIAL_FUNCTIONS, "TRIM"
        )
        NO_PAREN_FUNCTION_PARSERS: ClassVar = _only(
            SparkParser.NO_PAREN_FUNCTION_PARSERS, "CASE", "IF"
        )
        ASSIGNMENT: ClassVar[dict[TokenType, type[exp.Expr]]] = {}
        PLACEHOLDER_PARSERS: ClassVar = {}
        EQUALITY: ClassVar = {**SparkParser.EQUALITY, **SparkParser.COMPARISON}
        COMPARISON: ClassVar = {}
        TERM: ClassVar = {
            **_only(SparkParser.TERM, TokenType.DASH, TokenType.PLUS),
            TokenType.DPIPE: exp.DPipe,
        }
        FACTOR: ClassVar = _only(
            SparkParser.FACTOR, TokenType.DIV, TokenType.MOD, TokenType.SLASH, TokenType.STAR
        )
        UNARY_PARSERS: ClassVar = {
            **_only(SparkParser.UNARY_PARSERS, TokenType.NOT, TokenType.TILDE, TokenType.DASH),
            TokenType.PLUS: lambda self: self.expression(exp.Paren(this=self._parse_unary())),
        }
        COLUMN_OPERATORS: ClassVar = _only(
            SparkParser.COLUMN_OPERATORS, TokenType.DOT, TokenType.DCOLON
        )
        RANGE_PARSERS: ClassVar = _only(
            SparkParser.RANGE_PARSERS,
            TokenType.BETWEEN,
            TokenType.ILIKE,
            TokenType.IN,
            TokenType.IS,
            TokenType.LIKE,
            TokenType.RLIKE,
        )

        def expression(
            self, instance: _Node, token: Token | None = None, comments: list[str] | None = None
        ) -> _Node:
            """Finish a node; the token just read is its last, or within it at least."""
            at = self._index - 1
            while token is not None and at >= 0 and self._tokens[at] is not token:
                at -= 1
            return _mark(super().expression(instance, token, comments), at, at)

        def _parse_unary(self) -> exp.Expr | None:
            """Read an operand of any operator."""
            first = self._index
            node = super()._parse_unary()
            return node and _mark(node, first, self._index - 1)

        def _parse_table(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            """Read an entry of FROM."""
            first = self._index
            node = super()._parse_table(*args, **kwargs)
            return node and _mark(node, first, self._index - 1)

        def _parse_function(self, *args: Any, **kwargs: Any) -> exp.Expr | None:
            """Read a function, up to its closing bracket."""
            first = self._index
            node = super()._parse_function(*args, **kwargs)
            return node and _mark(node, first, self._index - 1)

        def _parse_primary(self) -> exp.Expr | None:
            """Read a literal, or something in brackets."""
            first = self._index
            node = super()._parse_primary()
            return node and _mark(node, first, self._index - 1)


def extent(node: exp.Expr) -> tuple[int, int] | None:
    """Numbers of a node's first and last token, once `settle_extents` has been there."""
    return (node.meta[_FIRST], node.meta[_LAST]) if _FIRST in node.meta else None


def settle_extents(root: exp.Expr) -> None:
    """Stretch every node over all nodes below it; the parser marks what it reads bit by bit."""
    for node in reversed(list(root.dfs())):
        for child in node.iter_expressions():
            if _FIRST in child.meta:
                _mark(node, child.meta[_FIRST], child.meta[_LAST])


def _mark(node: _Node, first: int, last: int) -> _Node:
    if first >= 0:
        node.meta[_FIRST] = min(first, node.meta.get(_FIRST, first))
        node.meta[_LAST] = max(last, node.meta.get(_LAST, last))
    return node
