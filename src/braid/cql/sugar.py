"""What SQL says in short, at length: `x BETWEEN y AND z` as two comparisons, and the like.

What may be of one stream in the long form and not in the short one belongs here, so that such
parts become columns of their stream like any other; and what says something twice. The other
short forms are in `call`.
"""

from __future__ import annotations

import re

from braid.cql.term import Term, Written, bare, function_call

_CASE_OF = re.compile(r"CASE _( WHEN _ THEN _)+( ELSE _)? END")


def spelled_out(term: Term) -> Term | None:
    """The long form of a term that has one."""
    shape = term.shape
    if shape in ("_ BETWEEN _ AND _", "_ NOT BETWEEN _ AND _"):
        inner, least, most = (_bracketed(each) for each in term.operands)
        above, below = _term(term, inner, ">=", least), _term(term, inner, "<=", most)
        between = _term(term, above, "AND", below)
        return _negated(between) if "NOT" in shape else between
    if shape in ("_ <=> _", "_ IS NOT DISTINCT FROM _", "_ IS DISTINCT FROM _"):
        same = _same(term, *term.operands)
        return _negated(same) if shape == "_ IS DISTINCT FROM _" else same
    if _CASE_OF.fullmatch(shape):
        return _case(term)
    match function_call(term):
        case ("equal_null", (left, right)):
            return _same(term, left, right)
        case ("nullif", (left, right)):
            equal = _term(term, _bracketed(left), "=", _bracketed(right))
            return _term(term, "CASE", "WHEN", equal, "THEN", _null(term), "ELSE", left, "END")
        case ("nvl2", (inner, yes, no)):
            there = _term(term, _bracketed(inner), "IS", "NOT", "NULL")
            return _term(term, "CASE", "WHEN", there, "THEN", yes, "ELSE", no, "END")
    return None


def _term(whole: Term, *pieces: str | Written) -> Term:
    return Term(pieces, whole.place)


def _bracketed(written: Written) -> Written:
    return Term(("(", bare(written), ")"), written.place)


def _null(whole: Term) -> Term:
    return _term(whole, "NULL")


def _negated(term: Term) -> Term:
    return _term(term, "NOT", _bracketed(term))


def _same(whole: Term, left: Written, right: Written) -> Term:
    """Whether two values are equal or both null."""
    one, other = _bracketed(left), _bracketed(right)
    nulls = [_term(whole, each, "IS", "NULL") for each in (one, other)]
    neither = _term(whole, nulls[0], "AND", nulls[1])
    equal = _term(whole, one, "=", other)
    return _term(whole, "coalesce", "(", equal, ",", neither, ")")


def _case(term: Term) -> Term:
    """`CASE x WHEN y …` as `CASE WHEN x = y …`."""
    word, subject, *rest = term.pieces
    pieces: list[str | Written] = [word]
    for before, piece in zip([word, *rest], rest, strict=False):
        if before != "WHEN" or isinstance(piece, str) or isinstance(subject, str):
            pieces.append(piece)
        else:
            pieces.append(_term(term, _bracketed(subject), "=", _bracketed(piece)))
    return _term(term, *pieces)
