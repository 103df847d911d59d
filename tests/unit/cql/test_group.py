import pytest

from braid.model.expression import GROUPED, Call, Column, Expression, Literal
from braid.model.query import Aggregate, Grouping, Output
from tests.unit.cql.pointing import AB, A, B, bound, failing, grouping_of

AK, AV, BV = Column(0, "k"), Column(0, "v"), Column(1, "v")
END = Column(GROUPED, "window_end")
DAY_US = 86_400_000_000


def key(number: int) -> Column:
    return Column(GROUPED, f"key {number}")


def aggregate(number: int) -> Column:
    return Column(GROUPED, f"aggregate {number}")


def test_a_grouped_query_has_keys_aggregates_and_the_end_of_the_window() -> None:
    query = bound(f"SELECT a.k, count(*) AS n, sum(a.v * b.v) {AB} GROUP BY a.k")
    assert query.grouping == Grouping(
        (AK,),
        (Aggregate("count", None), Aggregate("sum", Call("*", (AV, BV)))),
        DAY_US,
    )
    assert query.output == (
        Output("k", key(0)),
        Output("n", aggregate(0)),
        Output("sum(a.v * b.v)", aggregate(1)),
        Output("window_end", END),
    )


def test_an_aggregate_without_group_by_is_one_group() -> None:
    query = bound(f"SELECT max(a.v) - min(a.v) AS spread {AB}")
    assert query.grouping == Grouping((), (Aggregate("max", AV), Aggregate("min", AV)), DAY_US)
    assert query.output[0].value == Call("-", (aggregate(0), aggregate(1)))


def test_group_by_without_aggregates_lists_the_groups() -> None:
    grouping = grouping_of(f"SELECT a.k, upper(a.name) {AB} GROUP BY 1, upper(a.name)")
    assert grouping == Grouping((AK, Column(0, "upper(`name`)")), (), DAY_US)


@pytest.mark.parametrize(
    "group",
    ["a.k, a.v + b.v", "1, 2", "k, total", "a.k, total", "K, (a.v+b.v), 1, total", "`k`, 2"],
)
def test_keys_are_expressions_names_of_the_result_or_numbers(group: str) -> None:
    text = f"SELECT a.k, a.v + b.v AS total, count(*) AS n {AB} GROUP BY "
    assert bound(text + group) == bound(f"{text}a.k, a.v + b.v")


def test_a_column_of_a_stream_wins_over_a_name_of_the_result() -> None:
    grouping = grouping_of(
        f"SELECT a.v AS Amount, o.Amount AS v2 FROM {A}, Orders [RANGE 1 DAY] o "
        "WHERE a.k = o.k GROUP BY amount, a.v"
    )
    assert grouping.keys == (Column(1, "Amount"), AV)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("a.k + 1", Call("+", (key(0), Literal(1)))),
        (
            "sum(a.v) / count(*) + 1",
            Call("+", (Call("/", (aggregate(0), aggregate(1))), Literal(1))),
        ),
        ("avg(a.v)", Call("/", (aggregate(0), aggregate(1)))),
        ("mean(a.v)", Call("/", (aggregate(0), aggregate(1)))),
        (
            "CASE WHEN count(*) > 3 THEN a.k END",
            Call("case", (Call(">", (aggregate(0), Literal(3))), key(0))),
        ),
        ("upper(a.name)", Call("upper", (key(1),))),
        ("(a.v - b.v) * 2", Call("*", (key(2), Literal(2)))),
        ("window_end", END),
        ("coalesce(window_end, NULL)", Call("coalesce", (END, Literal(None)))),
        ("7", Literal(7)),
    ],
)
def test_columns_of_the_result_are_made_of_keys_and_aggregates(
    item: str, expected: Expression
) -> None:
    query = bound(f"SELECT {item} AS x {AB} GROUP BY a.k, a.name, a.v-b.v")
    assert query.output[0] == Output("x", expected)


def test_an_average_is_a_sum_by_a_count() -> None:
    query = bound(f"SELECT avg(a.v) {AB} GROUP BY a.k")
    parts = (Aggregate("sum", AV), Aggregate("count", AV))
    assert query.grouping == Grouping((AK,), parts, DAY_US)
    assert query.output[0].name == "avg(a.v)"
    assert query == bound(f"SELECT sum(a.v) / count(a.v) {AB} GROUP BY a.k")


def test_one_aggregate_is_kept_however_often_it_is_used() -> None:
    text = f"SELECT count(*), count(1) + COUNT( * ) AS m {AB} GROUP BY a.k HAVING count(*) > 1"
    assert grouping_of(text).aggregates == (Aggregate("count", None),)


def test_an_aggregate_may_be_of_what_spark_computes() -> None:
    grouping = grouping_of(f"SELECT sum(length(a.name)) {AB}")
    assert grouping.aggregates == (Aggregate("sum", Column(0, "length(`name`)")),)


@pytest.mark.parametrize(
    ("having", "expected"),
    [
        ("count(*) > 3", Call(">", (aggregate(0), Literal(3)))),
        ("n > 3", Call(">", (aggregate(0), Literal(3)))),
        ("n + 1 > a.k", Call(">", (Call("+", (aggregate(0), Literal(1))), key(0)))),
        ("max(b.v) IS NOT NULL", Call("not", (Call("is null", (aggregate(1),)),))),
        ("k = 1 AND window_end IS NULL", None),
    ],
)
def test_having_is_over_groups(having: str, expected: Expression | None) -> None:
    grouping = grouping_of(f"SELECT a.k, count(*) AS n {AB} GROUP BY a.k HAVING {having}")
    assert expected is None or grouping.having == expected


@pytest.mark.parametrize(
    "select", ["window_end, a.k", "a.k, WINDOW_END", "a.k, window_end AS Window_End"]
)
def test_the_end_of_the_window_is_selected_once(select: str) -> None:
    query = bound(f"SELECT {select} {AB} GROUP BY a.k")
    assert [out.value for out in query.output].count(END) == 1


def test_the_end_of_the_window_comes_last_unless_selected() -> None:
    query = bound(f"SELECT window_end AS t, a.k {AB} GROUP BY a.k")
    assert [out.name for out in query.output] == ["t", "k", "window_end"]


@pytest.mark.parametrize(
    ("windows", "slide_us"),
    [
        (("RANGE 30 MINUTES", "RANGE 2 HOURS"), 60_000_000),
        (("RANGE 90 SECONDS", "RANGE 2 HOURS"), 1_000_000),
        (("RANGE 90 SECONDS SLIDE 5 SECONDS", "RANGE 2 HOURS"), 5_000_000),
        (
            ("RANGE 90 SECONDS SLIDE 5 SECONDS", "RANGE 2 HOURS SLIDE 5000 MILLISECONDS"),
            5_000_000,
        ),
        (("UNBOUNDED", "RANGE 2 HOURS"), 3_600_000_000),
        (("UNBOUNDED SLIDE 1 MINUTE", "UNBOUNDED"), 60_000_000),
        (("RANGE UNBOUNDED SLIDE 1 DAY", "UNBOUNDED"), DAY_US),
        (("RANGE 0.5 HOURS", "UNBOUNDED"), 1_800_000_000),
        (("RANGE 0 SECONDS", "UNBOUNDED"), 1_000_000),
    ],
)
def test_groups_are_due_at_every_slide_or_unit(windows: tuple[str, str], slide_us: int) -> None:
    one, other = windows
    text = f"SELECT count(*) FROM a [{one}], b [{other}] WHERE a.k = b.k"
    assert grouping_of(text).slide_us == slide_us


@pytest.mark.parametrize(
    ("marked", "message"),
    [
        (f"SELECT «a.v», count(*) {AB}", "a.v is neither in GROUP BY nor within an aggregate"),
        (f"SELECT a.k, 1 + «b.v» {AB} GROUP BY a.k", "b.v is neither in GROUP BY"),
        (f"SELECT a.k {AB} GROUP BY a.k HAVING «a.v» > 1", "a.v is neither in GROUP BY"),
        (f"SELECT «a.*», count(*) {AB} GROUP BY a.k", "a.j is neither in GROUP BY"),
        (f"SELECT «a.k» {AB} HAVING count(*) > 1", "a.k is neither in GROUP BY"),
        (f"SELECT sum(«max(a.v)») {AB}", "an aggregate cannot stand in an aggregate"),
        (f"SELECT «count(*)» AS n {AB} GROUP BY n", "an aggregate cannot stand in GROUP BY"),
        (f"SELECT a.k {AB} GROUP BY «max(a.k)»", "an aggregate cannot stand in GROUP BY"),
        (f"SELECT «count(a.k, a.v)» {AB}", "count takes one argument"),
        (f"SELECT «sum()» {AB}", "sum takes one argument"),
        (f"SELECT «sum(a.name)» {AB}", "only numbers have a sum, and this is string"),
        (f"SELECT «max(a.tags)» {AB}", "the value of max cannot be of type list"),
        (f"SELECT a.k {AB} GROUP BY «a.s», a.k", "a key of groups cannot be of type struct"),
        (f"SELECT a.k {AB} GROUP BY a.k, «3»", "SELECT has no column number 3"),
        (f"SELECT a.k {AB} GROUP BY «0»", "SELECT has no column number 0"),
        (f"SELECT a.k {AB} GROUP BY «{10**30}»", None),
        (f"SELECT a.k {AB} GROUP BY a.k, «'x'»", "a constant makes no groups"),
        (f"SELECT a.k {AB} GROUP BY a.k, «window_end»", "window_end is no key"),
        (f"SELECT a.k {AB} GROUP BY «zz»", "unknown column 'zz'"),
        (f"SELECT a.k {AB} GROUP BY «v»", "ambiguous column 'v'"),
        (f"SELECT «a.k AS window_end» {AB} GROUP BY a.k", "has a column window_end of its own"),
        (
            f"SELECT a.name, «substring(a.name, 1, 2)» {AB} GROUP BY a.name",
            "the function substring cannot be computed over groups",
        ),
        (
            f"SELECT a.k, «CAST(count(*) AS INT)» {AB} GROUP BY a.k",
            "cast cannot be computed over",
        ),
        (
            f"SELECT a.k FROM a [RANGE 1 DAY «SLIDE 1 HOUR»], {B} WHERE a.k = b.k",
            "SLIDE is for groups",
        ),
        (
            "SELECT count(*) FROM a [RANGE 1 DAY SLIDE 1 HOUR], "
            "b [RANGE 1 DAY «SLIDE 2 HOURS»] WHERE a.k = b.k",
            "two streams have different slides",
        ),
        (
            "SELECT count(*) FROM a «[UNBOUNDED]», b [UNBOUNDED] WHERE a.k = b.k",
            "nothing says how often the groups are due",
        ),
        (
            f"SELECT count(*) FROM {A}, b «[PARTITION BY k ROWS 3]» WHERE a.k = b.k",
            "GROUP BY over a window of ROWS is out of scope",
        ),
    ],
)
def test_what_makes_no_sense_of_groups_is_pointed_at(marked: str, message: str | None) -> None:
    assert message is None or message in failing(marked).message


def test_the_classic_error_comes_with_both_cures() -> None:
    hint = failing(f"SELECT «a.v», count(*) {AB} GROUP BY a.k").hint
    assert hint == "add a.v to GROUP BY, or take one value of each group: max(a.v)"


def test_constants_of_different_types_are_different() -> None:
    grouping = grouping_of(f"SELECT sum(a.k * b.k * 1), sum(a.k * b.k * 1.0) {AB}")
    assert len(grouping.aggregates) == 2
