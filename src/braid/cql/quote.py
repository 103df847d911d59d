"""Names as SQL has them: in backticks, always or where they would not be read as names."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_RESERVED = re.compile(
    "ALL|ALTER|AND|ANTI|ANY|AS|ASOF|BETWEEN|CASE|CAST|CONNECT_BY_ROOT|CREATE|CROSS|CUBE"
    "|CURRENT_[A-Z]+|DESCRIBE|DISTINCT|DIV|DROP|ELSE|END|ESCAPE|EXCEPT|EXISTS|FALSE|FETCH"
    "|FOR|FROM|FULL|GLOB|GRANT|GROUP|GROUPING|HAVING|IF|ILIKE|IN|INNER|INSERT|INTERSECT"
    "|INTERVAL|INTO|IS|JOIN|LATERAL|LEFT|LIKE|LIMIT|LOCALTIMESTAMP|MINUS|NATURAL|NOT"
    "|NOTNULL|NULL|OFFSET|ON|OR|ORDER|OUTER|PARTITION|PARTITIONED_BY|QUALIFY|RANGE|REGEXP"
    "|RETURNING|REVOKE|RIGHT|RLIKE|ROLLBACK|ROLLUP|ROWS|SELECT|SEMI|SERDEPROPERTIES"
    "|SESSION_USER|SLIDE|TABLESAMPLE|THEN|TRUE|UNBOUNDED|UNCACHE|UNION|USER|USING|VALUES"
    "|WHEN|WHERE|WINDOW|WITH|XOR",
    re.IGNORECASE,
)
"""What sqlglot 30 does not take for a name everywhere. To change it changes fingerprints."""


def quoted(name: str) -> str:
    """A name in backticks.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def spelled(name: str) -> str:
    """A name as people write it: in backticks only where it needs them.

    >>> spelled("k"), spelled("x y"), spelled("select")
    ('k', '`x y`', '`select`')
    """
    if _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name):
        return name
    return quoted(name)
