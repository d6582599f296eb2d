"""The lexer: splits a statement into tokens, each with its position as AWS prints it.

A position is ``line:column:length``, counted from 1.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from stator.engine.partiql.keywords import KEYWORDS
from stator.errors import ValidationFailed

_TOKEN = re.compile(
    r"""
        (?P<space>\s+|--[^\n]*|/\*(?:[^*]|\*(?!/))*\*/)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?![A-Za-z0-9_$]))
      | (?P<word>[A-Za-z_$][A-Za-z0-9_$]*)
      | (?P<quoted>"(?:[^"]|"")*")
      | (?P<text>'(?:[^']|'')*')
      | (?P<ion>`[^`]*`)
      | (?P<symbol><<|>>|<>|!=|<=|>=|\|\||/(?!\*)|[=<>()\[\]{},.:;?*+\-%@])
    """,
    re.VERBOSE,
)
_INT32 = 2**31
END: Final = "end"


class Position(NamedTuple):
    line: int
    column: int
    length: int

    def __str__(self) -> str:
        return f"{self.line}:{self.column}:{self.length}"


class StatementToken(NamedTuple):
    """A token. ``kind`` is keyword, name, quoted, text, number, ion, symbol or end.

    Keywords are lower case.
    """

    kind: str
    text: str
    at: Position


def malformed(detail: str = "") -> ValidationFailed:
    return ValidationFailed(f"Statement wasn't well formed, can't be processed: {detail}")


def tokenize(statement: str) -> list[StatementToken]:
    tokens: list[StatementToken] = []
    place, line, line_start = 0, 1, 0
    while place < len(statement):
        match = _TOKEN.match(statement, place)
        if match is None:
            raise malformed()
        kind, raw = str(match.lastgroup), match[0]
        if kind != "space":
            tokens.append(_token(kind, raw, Position(line, place - line_start + 1, len(raw))))
        if "\n" in raw:
            line += raw.count("\n")
            line_start = place + raw.rindex("\n") + 1
        place = match.end()
    tokens.append(StatementToken(END, "", Position(line, place - line_start + 1, 0)))
    return tokens


def _token(kind: str, raw: str, at: Position) -> StatementToken:
    if kind == "word":
        lowered = raw.lower()
        return (
            StatementToken("keyword", lowered, at)
            if lowered in KEYWORDS
            else StatementToken("name", raw, at)
        )
    if kind == "quoted":
        return StatementToken(kind, raw[1:-1].replace('""', '"'), at)
    if kind == "text":
        return StatementToken(kind, raw[1:-1].replace("''", "'"), at)
    if kind == "number":
        _check_exponent(raw)
    return StatementToken(kind, "<>" if raw == "!=" else raw, at)


def _check_exponent(raw: str) -> None:
    """Check a number by the rule of Java's BigDecimal: exponent and scale are 32-bit integers."""
    mantissa, _, exponent = raw.lower().partition("e")
    if len(exponent) > len("-2147483648"):
        raise malformed()
    power = int(exponent or "0")
    scale = len(mantissa.partition(".")[2]) - power
    if not (-_INT32 <= power < _INT32 and -_INT32 < scale < _INT32):
        raise malformed()
