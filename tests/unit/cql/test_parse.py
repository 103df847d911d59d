import pytest

from tests.unit.cql.pointing import AB, A, B, C, bound, failing

NOT_YET = {
    # SELECT
    "SELECT a.k, «max(b.v)» AS m {AB}": "an aggregate",
    "SELECT «count(*)», a.k {AB}": "an aggregate",
    "SELECT a.k, «row_number() OVER (ORDER BY a.k)» {AB}": "a window function",
    "SELECT «upper(a.name)» {AB}": "a function",
    "SELECT a.k, «current_date» {AB}": "a function",
    "SELECT «CAST(a.v AS int)» AS q {AB}": "an expression",
    "SELECT «CASE WHEN a.k = 1 THEN 2 END» AS q {AB}": "an expression",
    "SELECT a.k, «-a.v + 1» AS q {AB}": "an expression",
    "SELECT «a.tags[0]» AS q {AB}": "an expression",
    "SELECT a.k, «3» {AB}": "a literal",
    "SELECT «NULL», a.k {AB}": "a literal",
    "SELECT a.k, «'x'» AS y {AB}": "a literal",
    "SELECT a.k, «(SELECT 1)» AS y {AB}": "a subquery",
    "SELECT «a.s.x» {AB}": "a field of a column",
    "SELECT «a.* EXCEPT (k)» {AB}": "a star with more than a stream",
    "SELECT «DISTINCT» a.k {AB}": "DISTINCT",
    "SELECT «/*+ BROADCAST(a) */» a.k {AB}": "a hint",
    "SELECT a.k «INTO» x {AB}": "INTO",
    # FROM
    "SELECT a.k FROM {A} «JOIN» {B} ON a.k = b.k": "JOIN",
    "SELECT a.k FROM {A} «JOIN» {B} WHERE a.k = b.k": "JOIN",
    "SELECT a.k FROM {A} AS x «LEFT OUTER JOIN» {B} ON x.k = b.k": "JOIN",
    "SELECT a.k FROM {A} «CROSS JOIN» {B}": "JOIN",
    "SELECT a.k FROM {A}, {B} «NATURAL JOIN» {C}": "JOIN",
    "SELECT a.k FROM {A}, «(SELECT * FROM {B})» WHERE a.k = b.k": "a subquery",
    "SELECT a.k FROM {A}, «db.b» [RANGE 1 DAY] x": "a stream's name with a dot",
    "SELECT a.k FROM {A}, «f(3)» WHERE a.k = b.k": "a function",
    "SELECT a.k FROM {A}, «UNNEST(x)» WHERE a.k = b.k": "a table made by a function",
    # WHERE
    "SELECT a.k {AB} AND «a.v < b.v»": "a condition other than '='",
    "SELECT a.k {AB} AND «a.v <> b.v»": "a condition other than '='",
    "SELECT a.k {AB} AND «a.v <=> b.v» AND a.j = b.j": "a condition other than '='",
    "SELECT a.k {AB} AND «a.v IS NULL»": "a condition other than '='",
    "SELECT a.k {AB} AND «a.v BETWEEN 1 AND 2»": "a condition other than '='",
    "SELECT a.k {AB} AND «a.v IN (1, 2)»": "a condition other than '='",
    "SELECT a.k {AB} AND «a.name LIKE 'x%'»": "a condition other than '='",
    "SELECT a.k {AB} AND («TRUE»)": "a condition other than '='",
    "SELECT a.k {AB} AND «a.k»": "a condition other than '='",
    "SELECT a.k {AB} AND («a.j = b.j OR a.v = 1»)": "OR",
    "SELECT a.k {AB} AND «NOT a.j = b.j»": "NOT",
    "SELECT a.k {AB} AND «EXISTS (SELECT 1)»": "a subquery",
    "SELECT a.k {AB} AND a.k = «(SELECT 1)»": "a subquery",
    "SELECT a.k {AB} AND a.k = «3»": "a literal",
    "SELECT a.k {AB} AND «abs(a.k)» = b.k": "a function",
    "SELECT a.k {AB} AND a.k = («b.k + 1»)": "an expression",
    "SELECT a.k {AB} AND «a.k = b.k» = b.j": "an expression",
    # after WHERE
    "SELECT a.k {AB} «GROUP BY» a.k HAVING max(a.v) > 1 ORDER BY 1 LIMIT 2": "GROUP BY",
    "SELECT a.k {AB} «HAVING» max(a.v) > 1": "HAVING",
    "SELECT a.k {AB} «ORDER BY» a.k": "ORDER BY",
    "SELECT a.limit AS `limit` {AB} «LIMIT» 2": "LIMIT",
    "SELECT a.k {AB} «OFFSET» 2": "OFFSET",
    "SELECT a.k {AB} «FETCH» FIRST 2 ROWS ONLY": "FETCH",
    "SELECT a.k {AB} «UNION» ALL SELECT a.k {AB}": "UNION",
    "SELECT a.k {AB}; «SELECT a.k {AB}»": "more than one statement",
    # other statements
    "«WITH» x AS (SELECT 1) SELECT a.k {AB}": "WITH",
    "«INSERT» INTO x SELECT a.k {AB}": "INSERT",
    "«CREATE» TABLE x AS SELECT a.k {AB}": "CREATE",
    "«EXPLAIN» SELECT a.k {AB}": "EXPLAIN",
    "«(»SELECT a.k {AB})": "a query in parentheses",
}

MALFORMED = {
    "«»": "the query is empty",
    "«»  -- nothing": "the query is empty",
    "«SELEC» a.k {AB}": "a query starts with SELECT, not 'SELEC'",
    "«SELECT»": "the query has no FROM",
    "«SELECT» FROM {A}, {B}": "SELECT has no columns after it",
    "«SELECT a.k»": "the query has no FROM",
    "SELECT a.k «FROM»": "the query breaks off after 'FROM'",
    "SELECT a.k FROM «a» [RANGE 1 DAY]": "a join takes two streams or more",
    "SELECT a.k FROM {A}, {B} «WHERE»": "the query breaks off after 'WHERE'",
    "SELECT a.k {AB} «AND»": "the query breaks off after 'AND'",
    "SELECT a.k {AB} AND a.j «=»": "the query breaks off after '='",
    "SELECT a.k b«.»v {AB}": "cannot read the query from '.' on",
    "SELECT a.k FROM {A}, {B} a«.»k = b.k": "cannot read the query from '.' on",
    "SELECT a.k FROM {A}, {B} WHERE «(»a.k = b.k": "nothing closes this '('",
    "SELECT a.k {AB}«)»": "nothing opens this ')'",
    "SELECT a.k FROM {A}, b (RANGE 1 DAY«]»": "nothing opens this ']'",
    "SELECT a.k«,» {AB}": "nothing follows this ','",
    "SELECT a.k«,», a.j {AB}": "nothing follows this ','",
    "SELECT «,» a.k {AB}": "nothing precedes this ','",
    "SELECT a.k FROM {A}, {B}«,» WHERE a.k = b.k": "nothing follows this ','",
    "SELECT a.k, «'x {AB}»": "nothing ends the quotation or comment that begins here",
    "SELECT /* a */ «`a.k {AB}»": "nothing ends the quotation or comment that begins here",
    "SELECT a.k {AB} «/* and»": "nothing ends the quotation or comment that begins here",
    "SELECT a.k AS «'x'» {AB}": "this is not a name",
    "SELECT a.* AS «x» {AB}": "a star cannot have an alias",
    "SELECT «+»a.k {AB}": "cannot read '+' here",
    "SELECT a.k FROM {A}«*», {B} WHERE a.k = b.k": "cannot read '*' here",
    "SELECT a.k FROM «.»a [RANGE 1 DAY], {B} WHERE a.k = b.k": "cannot read '.' here",
}


def marked(template: str) -> str:
    return template.format(AB=AB, A=A, B=B, C=C)


@pytest.mark.parametrize(("template", "what"), NOT_YET.items())
def test_what_the_language_lacks_is_called_by_name(template, what):
    assert failing(marked(template)).message == f"{what} is not supported yet"


@pytest.mark.parametrize(("template", "message"), MALFORMED.items())
def test_what_is_no_query_is_pointed_at(template, message):
    assert failing(marked(template)).message == message


@pytest.mark.parametrize(
    "text",
    [
        f"select a.k {AB};",
        f"SELECT ALL a.k {AB}",
        f"SELECT (a.k) {AB}",
        f"SELECT a.k k /* the key */ {AB} -- that is all",
        f"SELECT a.k\r\n\tFROM\t{A},\n{B}\nWHERE(a.k)=((b.k))",
        f"SELECT a.k FROM {A}, {B} WHERE ((a.k == b.k))",
    ],
)
def test_spelling_does_not_matter(text):
    assert bound(text) == bound(f"SELECT a.k {AB}")


def test_words_of_sql_are_fine_as_names_of_columns():
    query = bound(f"SELECT a.limit, b.limit AS order, a.k AS range {AB}")
    assert [out.name for out in query.output] == ["limit", "order", "range"]


def test_the_error_shows_the_line_and_carets_under_the_fault():
    error = failing(f"SELECT a.k\nFROM {A},\n     {B}\nWHERE a.k = b.k AND «a.v < b.v»")
    assert str(error).splitlines()[:3] == [
        "a condition other than '=' is not supported yet",
        "  line 4: WHERE a.k = b.k AND a.v < b.v",
        "                              ^^^^^^^^^",
    ]


def test_places_count_characters_not_bytes():
    failing(f"SELECT a.k /* 😀 é */, a.«ü» {AB}")


def test_deep_nesting_is_an_error_and_a_long_conjunction_is_not():
    deep = "(" * 500 + "a.k = b.k" + ")" * 500
    assert "nested too deeply" in failing(f"«SELECT a.k FROM {A}, {B} WHERE {deep}»").message
    long = " AND ".join(["a.k = b.k"] * 2000)
    assert bound(f"SELECT a.k FROM {A}, {B} WHERE {long}") == bound(f"SELECT a.k {AB}")
