import duckdb
import pytest

from examples.against_duckdb import compare, require

QUESTION = "SELECT n % 3 AS n, n / 7 AS part FROM range(10) AS t(n)"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (f"SELECT part + 1e-9 AS part, n FROM ({QUESTION})", ()),
        (f"{QUESTION} WHERE n > 1", ("2 rows missing",)),
        (f"{QUESTION} UNION ALL {QUESTION}", ("10 rows too many",)),
        (f"SELECT n + 1 AS n, part FROM ({QUESTION})", ("10 rows missing", "10 rows too many")),
        (f"SELECT n FROM ({QUESTION})", ("columns n in place of n, part",)),
    ],
)
def test_results_are_compared_as_sets_with_repetition(tmp_path, given, said):
    (tmp_path / "__batch=0").mkdir()
    with duckdb.connect() as db:
        db.execute(f"COPY ({given}) TO '{tmp_path}/__batch=0/part.parquet'")
        assert compare(db, QUESTION, tmp_path) == said


def test_what_is_not_installed_is_named_with_the_cure():
    require("duckdb")
    with pytest.raises(SystemExit, match=r"(?s)not installed: no_such_package\n.*\[examples\]"):
        require("duckdb", "no_such_package")
