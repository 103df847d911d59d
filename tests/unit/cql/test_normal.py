import pytest
from sqlglot.tokens import Tokenizer

from braid.cql.bind import bind
from tests.unit.cql.pointing import SCHEMAS, bound

NORMAL = (
    "SELECT x.k, o.Amount AS paid "
    "FROM a [RANGE 1 MINUTE] AS x, Orders [RANGE 1.500 MILLISECONDS] AS o "
    "WHERE x.k = o.k AND x.j = o.j"
)


@pytest.mark.parametrize(
    "text",
    [
        NORMAL,
        NORMAL.lower(),
        NORMAL.replace("1 MINUTE", "60 seconds").replace("1.500 MILLISECONDS", "0.0015 Second"),
        NORMAL.replace("x.k = o.k", "(o.k = X.K)").replace("o.Amount AS", "Amount"),
        NORMAL.replace("x.k", '"x".`K`').replace("[RANGE 1 MINUTE] AS x", "x [RANGE 1 MINUTE]"),
        NORMAL.replace(" AND ", "\n  AND x.k = o.k AND ").replace(",", " ,\n") + " ;",
    ],
)
def test_all_spellings_of_a_query_have_one_text(text):
    assert bound(text).text == NORMAL


@pytest.mark.parametrize(
    "other",
    [
        NORMAL.replace("1 MINUTE", "2 MINUTES"),
        NORMAL.replace("paid", "due"),
        NORMAL.replace("x.k = o.k AND x.j = o.j", "x.j = o.j AND x.k = o.k"),
        NORMAL.replace("x.k = o.k AND ", ""),
        NORMAL.replace("FROM a", "FROM b"),
    ],
)
def test_queries_that_differ_have_different_texts(other):
    assert bound(other).text != NORMAL


def test_every_word_of_sql_survives_as_a_name():
    words = {word for key in Tokenizer.KEYWORDS for word in key.split() if word.isidentifier()}
    assert len(words) > 200
    for word in sorted(words):
        schema = SCHEMAS["a"].append(SCHEMAS["a"].field("k").with_name(word))
        text = f"SELECT `{word}`.`{word}`, z.k AS z FROM `{word}` [RANGE 1 DAY], "
        text += f"`{word}` [RANGE 1 DAY] AS z WHERE z.k = `{word}`.`{word}`"
        query = bind(text, {word: schema}, event_time="ts")
        assert bind(query.text, {word: schema}, event_time="ts") == query
