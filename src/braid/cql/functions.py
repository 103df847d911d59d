"""Functions that mean something to us by their names; all others are for Spark to know."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from braid.cql.place import Place
    from braid.model.errors import QueryError

AGGREGATES = ("count", "sum", "min", "max", "avg", "mean")
"""The aggregates that we have; `mean` is `avg`."""

_OTHER_AGGREGATES = re.compile(
    "any|any_value|approx_count_distinct|approx_percentile|approx_top_k.*|array_agg|bit_and"
    "|bit_or|bit_xor|bool_and|bool_or|collect_.*|corr|count_if|count_min_sketch|covar_pop"
    "|covar_samp|every|first|first_value|grouping|grouping_id|histogram_numeric|kurtosis|last"
    "|last_value|listagg|max_by|measure|median|min_by|mode|percentile|percentile_approx"
    "|percentile_cont|percentile_disc|regr_.*|skewness|some|std|stddev|stddev_pop|stddev_samp"
    "|string_agg|try_avg|try_sum|var_pop|var_samp|variance|vector_avg|vector_sum"
    "|(bitmap|hll|kll|theta|tuple)_.*_agg(_.*)?"
)
"""Spark's other aggregates; those that users make are beyond our knowledge."""

_RANKS = re.compile(
    "counter_diff|cume_dist|dense_rank|lag|lead|nth_value|ntile|percent_rank|rank|row_number"
)

_UNSTEADY = re.compile(
    "aes_encrypt|curdate|current_date|current_time|current_timestamp|input_file_block_length"
    "|input_file_block_start|input_file_name|java_method|localtimestamp"
    "|monotonically_increasing_id|now|rand|randn|random|randstr|reflect|shuffle"
    "|spark_partition_id|try_reflect|uniform|uuid"
)

_MAKING_ROWS = re.compile(
    "explode|explode_outer|inline|inline_outer|json_tuple|posexplode|posexplode_outer|stack"
    "|variant_explode|variant_explode_outer"
)

_TIME_WINDOWS = re.compile("session_window|window|window_time")

_WITH_UNIT = re.compile("(date_?|timestamp)(add|diff)")


def is_aggregate(name: str) -> bool:
    """Whether a function is an aggregate of ours."""
    return name in AGGREGATES


def is_difference(name: str) -> bool:
    """Whether a function tells how far two moments are apart."""
    return _WITH_UNIT.fullmatch(name) is not None and name.endswith("diff")


def takes_unit(name: str, arguments: int) -> bool:
    """Whether a function's first argument is a unit, as in `timestampdiff(MINUTE, x, y)`."""
    return arguments == 3 and _WITH_UNIT.fullmatch(name) is not None


def refuse_function(name: str, arguments: int, place: Place) -> None:
    """Raise if a function cannot take part in a continuous query, with the reason."""
    if _OTHER_AGGREGATES.fullmatch(name):
        raise place.out_of_scope(
            f"the aggregate {name}",
            "groups are kept up to date by adding and taking away rows",
            hint=f"the aggregates are {', '.join(AGGREGATES[:-1])}; "
            "sum(CASE WHEN … THEN 1 END) counts what fulfils a condition",
        )
    if _RANKS.fullmatch(name):
        raise refused_over(place, f"the window function {name}")
    if _UNSTEADY.fullmatch(name) or (name == "unix_timestamp" and not arguments):
        raise place.out_of_scope(
            f"the function {name}",
            "a batch that is evaluated again after a fault must give the same rows",
            hint="put it into a column of the DataFrame, before the query",
        )
    if _MAKING_ROWS.fullmatch(name):
        raise place.out_of_scope(
            f"the function {name}",
            "an expression makes one value of a row, not several rows",
            hint="apply it to the DataFrame, before the query",
        )
    if _TIME_WINDOWS.fullmatch(name):
        raise place.out_of_scope(
            f"the function {name}",
            "windows belong to streams here",
            hint="write [RANGE 10 MINUTES SLIDE 1 MINUTE] after the stream's name, "
            "and select window_end",
        )


def refused_over(place: Place, what: str = "a window function") -> QueryError:
    """The error for OVER and for functions that need it."""
    return place.out_of_scope(
        what,
        "the rows around a row keep changing while the query runs",
        hint="use GROUP BY with an aggregate, or [PARTITION BY k ROWS n] for the newest rows",
    )
