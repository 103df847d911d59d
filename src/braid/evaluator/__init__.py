"""Expressions over several streams' columns, evaluated on whole Arrow arrays.

`walk` evaluates a tree of `braid.model.expression`; `kinds` says which types meet in which;
`arithmetic`, `comparison`, `choice`, `rounding` and `text` hold the functions. They compute
what Spark computes, null for null and NaN for NaN, but that

* division by zero is null, where Spark would end the query;
* integers compute in 64 bits, so fewer sums overflow;
* the quotient of decimals is a double;
* all branches of a `case` are computed, so what overflows does so in one not taken too.

An overflow is an error, as in Spark. `tests/spark/test_expressions.py` asks Spark itself.

A *value* is an Arrow array with one cell per row, or a scalar where all rows agree: constants
are never written out. No function here knows rows, streams or queries.
"""

from braid.evaluator.walk import ValueOverflow, evaluate, holds, type_of

__all__ = ["ValueOverflow", "evaluate", "holds", "type_of"]
