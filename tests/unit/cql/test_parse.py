import pytest

from braid.model.expression import Call
from tests.unit.cql.pointing import AB, A, B, C, bound, failing

OUT_OF_SCOPE = {
    # SELECT
    "SELECT «DISTINCT» a.k {AB}": "DISTINCT",
    "SELECT a.k, «row_number() OVER (ORDER BY a.k)» AS n {AB}": "a window function",
    "SELECT a.k, «sum(a.v) OVER ()» AS n {AB}": "a window function",
    "SELECT a.k, «count(DISTINCT a.v)» {AB} GROUP BY a.k": "DISTINCT in an aggregate",
    "SELECT a.k, «sum(a.v) FILTER (WHERE a.v > 1)» {AB} GROUP BY a.k": "FILTER",
    "SELECT a.k, «collect_list(a.v)» {AB} GROUP BY a.k": "the aggregate collect_list",
    "SELECT a.k, «FIRST(a.v)» {AB} GROUP BY a.k": "the aggregate first",
    "SELECT a.k, «current_date» {AB}": "the function current_date",
    "SELECT a.k, 1 + «now()» {AB}": "the function now",
    "SELECT a.k, «rand()» {AB}": "the function rand",
    "SELECT a.k, «unix_timestamp()» {AB}": "the function unix_timestamp",
    "SELECT «explode(a.tags)» {AB}": "the function explode",
    "SELECT a.k, 1 + «(SELECT 1)» AS y {AB}": "a subquery",
    "SELECT «/*+ BROADCAST(a) */» a.k {AB}": "a hint",
    "SELECT a.k «INTO» x {AB}": "INTO",
    # FROM
    "SELECT a.k FROM {A} AS x «LEFT OUTER JOIN» {B} ON x.k = b.k": "an outer join",
    "SELECT a.k FROM {A} «RIGHT JOIN» {B} ON a.k = b.k": "an outer join",
    "SELECT a.k FROM {A} «FULL JOIN» {B} ON a.k = b.k": "an outer join",
    "SELECT a.k FROM {A} «LEFT SEMI JOIN» {B} ON a.k = b.k": "a semi-join",
    "SELECT a.k FROM {A} «LEFT ANTI JOIN» {B} ON a.k = b.k": "an anti-join",
    "SELECT a.k FROM {A} «SEMI JOIN» {B} ON a.k = b.k": "a semi-join",
    "SELECT a.k FROM {A} «ANTI JOIN» {B} ON a.k = b.k": "an anti-join",
    "SELECT a.k FROM {A}, {B} «NATURAL JOIN» {C}": "a natural join",
    "SELECT a.k FROM {A}, «(SELECT * FROM {B})» WHERE a.k = b.k": "a subquery",
    "SELECT a.k FROM {A}, «f(3)» WHERE a.k = b.k": "a table made by a function",
    "SELECT a.k FROM {A}, «UNNEST(x)» WHERE a.k = b.k": "a table made by a function",
    # WHERE
    "SELECT a.k {AB} AND «EXISTS (SELECT 1)»": "a subquery",
    "SELECT a.k {AB} AND a.k = «(SELECT 1)»": "a subquery",
    "SELECT a.k {AB} AND «a.k IN (SELECT 1)»": "a subquery",
    # after WHERE
    "SELECT a.k {AB} GROUP BY «ROLLUP» (a.k)": "GROUP BY with ROLLUP",
    "SELECT a.k {AB} GROUP BY a.k WITH «CUBE»": "GROUP BY with CUBE",
    "SELECT a.k {AB} GROUP BY «GROUPING SETS» (a.k)": "GROUP BY with GROUPING SETS",
    "SELECT a.k {AB} GROUP BY «ALL»": "GROUP BY with ALL",
    "SELECT a.k {AB} GROUP BY «window»(a.ts, '1 day')": "the function window",
    "SELECT a.k {AB} GROUP BY a.k «ORDER BY» 1 LIMIT 2": "ORDER BY",
    "SELECT a.k {AB} «ORDER BY» a.k": "ORDER BY",
    "SELECT a.limit AS `limit` {AB} «LIMIT» 2": "LIMIT",
    "SELECT a.k {AB} «OFFSET» 2": "OFFSET",
    "SELECT a.k {AB} «FETCH» FIRST 2 ROWS ONLY": "FETCH",
    "SELECT a.k {AB} «UNION» ALL SELECT a.k {AB}": "UNION",
    "SELECT a.k {AB} «EXCEPT» SELECT a.k {AB}": "EXCEPT",
}

MALFORMED = {
    "«»": "the query is empty",
    "«»  -- nothing": "the query is empty",
    "«SELEC» a.k {AB}": "a query starts with SELECT, not 'SELEC'",
    "«WITH» x AS (SELECT 1) SELECT a.k {AB}": "WITH is no query",
    "«INSERT» INTO x SELECT a.k {AB}": "INSERT is no query",
    "«EXPLAIN» SELECT a.k {AB}": "EXPLAIN is no query",
    "«(»SELECT a.k {AB})": "a query stands without brackets around it",
    "SELECT a.k {AB}; «SELECT a.k {AB}»": "a query is one statement",
    "«SELECT»": "the query has no FROM",
    "«SELECT» FROM {A}, {B}": "SELECT has no columns after it",
    "«SELECT a.k»": "the query has no FROM",
    "SELECT a.k «FROM»": "the query breaks off after 'FROM'",
    "SELECT a.k FROM «a» [RANGE 1 DAY]": "a join takes two streams or more",
    "SELECT a.k FROM {A}, «db.b» [RANGE 1 DAY] x": "a stream's name has no dot",
    "SELECT a.k FROM {A}, {B} «WHERE»": "the query breaks off after 'WHERE'",
    "SELECT a.k {AB} «AND»": "the query breaks off after 'AND'",
    "SELECT a.k {AB} AND a.j «=»": "the query breaks off after '='",
    "SELECT a.k {AB} «GROUP BY»": "GROUP BY has no columns after it",
    "SELECT a.k b«.»v {AB}": "cannot read the query from '.' on",
    "SELECT a.k FROM {A}, {B} a«.»k = b.k": "cannot read the query from '.' on",
    "SELECT a.k FROM {A}, {B} WHERE «(»a.k = b.k": "nothing closes this '('",
    "SELECT a.k {AB}«)»": "nothing opens this ')'",
    "SELECT a.k FROM {A}, b (RANGE 1 DAY«]»": "nothing opens this ']'",
    "SELECT a.k«,» {AB}": "nothing follows this ','",
    "SELECT a.k«,», a.j {AB}": "nothing follows this ','",
    "SELECT «,» a.k {AB}": "nothing precedes this ','",
    "SELECT a.k FROM {A}, {B}«,» WHERE a.k = b.k": "nothing follows this ','",
    "SELECT a.k {AB} GROUP BY a.k«,» HAVING a.k > 1": "nothing follows this ','",
    "SELECT a.k, «'x {AB}»": "nothing ends the quotation or comment that begins here",
    "SELECT /* a */ «`a.k {AB}»": "nothing ends the quotation or comment that begins here",
    "SELECT a.k {AB} «/* and»": "nothing ends the quotation or comment that begins here",
    "SELECT a.k AS «'x'» {AB}": "this is not a name",
    "SELECT a.* AS «x» {AB}": "a star cannot have an alias",
    "SELECT «a.* EXCEPT (k)» {AB}": "a star stands for all columns of a stream, or of all",
    "SELECT sum(«*») {AB}": "a star stands alone in SELECT, or in count(*)",
    "SELECT («a.k AS x») + 1 {AB}": "AS cannot stand here",
    "SELECT a.k FROM {A}«*», {B} WHERE a.k = b.k": "cannot read '*' here",
    "SELECT a.k FROM «.»a [RANGE 1 DAY], {B} WHERE a.k = b.k": "cannot read '.' here",
    "SELECT a.k {AB} AND «a.k = b.j» = b.k": "one comparison stands within another",
    "SELECT a.k {AB} AND a.k = «b.j IN (1, 2)»": "one comparison stands within another",
    "SELECT a.k {AB} AND a.k = «NOT b.k»": "one comparison stands within another",
    "SELECT a.k {AB} HAVING «a.v > 1»": "HAVING is for groups, and this query has none",
}


def marked(template: str) -> str:
    return template.format(AB=AB, A=A, B=B, C=C)


@pytest.mark.parametrize(("template", "what"), OUT_OF_SCOPE.items())
def test_what_the_language_lacks_is_called_by_name_with_the_reason(
    template: str, what: str
) -> None:
    error = failing(marked(template))
    assert error.message.startswith(f"{what} is out of scope: ")
    assert error.hint


@pytest.mark.parametrize(("template", "message"), MALFORMED.items())
def test_what_is_no_query_is_pointed_at(template: str, message: str) -> None:
    assert failing(marked(template)).message == message


@pytest.mark.parametrize(
    "text",
    [
        f"select a.k {AB};",
        f"SELECT ALL a.k {AB}",
        f"SELECT (a.k) {AB}",
        f"SELECT +a.k {AB}",
        f"SELECT a.k k /* the key */ {AB} -- that is all",
        f"SELECT a.k\r\n\tFROM\t{A},\n{B}\nWHERE(a.k)=((b.k))",
        f"SELECT a.k FROM {A}, {B} WHERE ((a.k == b.k))",
    ],
)
def test_spelling_does_not_matter(text: str) -> None:
    assert bound(text) == bound(f"SELECT a.k {AB}")


def test_words_of_sql_are_fine_as_names_of_columns() -> None:
    query = bound(f"SELECT a.limit, b.limit AS order, a.k AS range {AB}")
    assert [out.name for out in query.output] == ["limit", "order", "range"]


def test_the_error_shows_the_line_and_carets_under_the_fault() -> None:
    error = failing(f"SELECT a.k\nFROM {A},\n     {B}\nWHERE a.k = b.k AND a.v < «now()»")
    assert str(error).splitlines()[:3] == [
        "the function now is out of scope: a batch that is evaluated again after a fault must "
        "give the same rows",
        "  line 4: WHERE a.k = b.k AND a.v < now()",
        "                                    ^^^^^",
    ]


def test_places_count_characters_not_bytes() -> None:
    failing(f"SELECT a.k /* 😀 é */, a.«ü» {AB}")


@pytest.mark.parametrize(
    "deep",
    [
        "(" * 500 + "a.k = b.k" + ")" * 500,
        "a.k = b.k AND " + "NOT " * 500 + "a.v > b.v",
        "a.k = b.k AND a.v > " + "- " * 5000 + "1",
        "a.k = b.k AND a.v > " + "abs(" * 300 + "b.v" + ")" * 300,
        "a.k = b.k AND a.v > " + "CASE WHEN " * 400 + "b.v > 1" + " THEN 1 END" * 400,
        "a.k = b.k AND a.v > b.v" + " + b.v" * 500,
        "a.k = b.k AND " + "(a.v > b.v OR " * 90 + "TRUE" + ")" * 90,
    ],
)
def test_deep_nesting_is_an_error_or_a_query_and_never_a_crash(deep: str) -> None:
    text = f"SELECT a.k FROM {A}, {B} WHERE {deep}"
    with pytest.raises(Exception, match="nested too deeply"):
        bound(text)


def test_a_long_conjunction_or_disjunction_is_no_deep_one() -> None:
    long = " AND ".join(["a.k = b.k"] * 2000)
    assert bound(f"SELECT a.k FROM {A}, {B} WHERE {long}") == bound(f"SELECT a.k {AB}")
    either = " OR ".join(f"a.v > b.v + {number}" for number in range(2000))
    query = bound(f"SELECT a.k {AB} AND ({either})")
    condition = query.conditions[0]
    assert isinstance(condition, Call)
    assert len(condition.arguments) == 2000
