"""The query language: text to syntax tree to bound `Query`, with errors that point at the text.

The language is a small part of CQL, the continuous query language:

    SELECT o.id, p.amount AS paid
    FROM orders [RANGE 10 MINUTES] AS o, payments [RANGE 1 HOUR] AS p
    WHERE o.id = p.order_id

A text goes through `sql` (tokens), `window` (brackets cut out), `sql` again (sqlglot's tree),
`parse` (our `syntax`; `refuse` names what we lack), `scope` (names looked up), `key` (the
equalities as a join key) and `bind` (the whole), and ends in its `normal` form. How a query is
evaluated is not known here.
"""

from braid.cql.bind import bind, sources
from braid.cql.parse import parse

__all__ = ["bind", "parse", "sources"]
