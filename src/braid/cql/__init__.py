"""The query language: text to syntax tree to bound `Query`, with errors that point at the text.

The language is CQL, the continuous query language, with Spark's expressions:

    SELECT o.customer, count(*) AS n, sum(o.amount - p.amount) AS due
    FROM orders [RANGE 10 MINUTES SLIDE 1 MINUTE] AS o
    JOIN payments [RANGE 1 HOUR] AS p ON o.id = p.order_id
    WHERE p.at BETWEEN o.at AND o.at + INTERVAL 5 MINUTES
    GROUP BY o.customer

`docs/query-language.md` describes it for users. A text goes this way:

    sql         text to tokens, and tokens to sqlglot's tree (`dialect` says how it reads them)
    window      the windows, cut out of the tokens before that
    parse       the tree to our `syntax`; `refuse` and `functions` name what we lack
    read_term   its expressions to `term`s: words and signs, with smaller terms among them
    bind        the whole to a `Query`:
      scope       names looked up
      condition   WHERE and ON parted into keys (`key`), filters, bounds (`timebound`), the rest
      lower       expressions parted into what one stream can do (`snippet`: text for Spark) and
                  what workers do (`call`, with `sugar` and `constant`)
      group       GROUP BY, HAVING and aggregates
      select      the columns of the result
      stream      windows and slides
      types       types asked for, where someone can tell them
    normal      the bound query to its one text (`spell` writes expressions)

`fluent` makes texts from method calls. How a query is evaluated is not known here.
"""

from braid.cql.bind import bind, check_sources, sources
from braid.cql.columns import columns_of_stream, functions_of
from braid.cql.parse import parse
from braid.cql.types import Typing

__all__ = [
    "Typing",
    "bind",
    "check_sources",
    "columns_of_stream",
    "functions_of",
    "parse",
    "sources",
]
