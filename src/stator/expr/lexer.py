"""The lexer: splits the text of any of the four kinds of expression into tokens."""

from __future__ import annotations

import re
from typing import NamedTuple

from stator.errors import ValidationFailed

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<name>[A-Za-z][A-Za-z0-9_]*)
      | (?P<alias>\#[A-Za-z0-9_]+)
      | (?P<value>:[A-Za-z0-9_]+)
      | (?P<number>0|[1-9][0-9]*)
      | (?P<symbol><>|<=|>=|[=<>()\[\],.+\-])
      | (?P<end>\Z)
      | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)

END = "end"


class Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int


class ExpressionError(ValidationFailed):
    """An expression is wrong. The caller adds the name of the parameter that holds it."""


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        assert match is not None and match.lastgroup is not None
        kind = match.lastgroup
        tokens.append(Token(kind, match[kind], match.start(kind), match.end(kind)))
        if kind == END:
            return tokens
        position = match.end()


def syntax_error(text: str, tokens: list[Token], index: int) -> ExpressionError:
    """Return AWS's syntax error, which quotes the offending token and the text around it."""
    token = tokens[index]
    first = tokens[max(index - 1, 0)]
    last = token if token.kind == END else tokens[index + 1]
    shown = "<EOF>" if token.kind == END else token.text
    near = text[first.start : last.end].strip()
    return ExpressionError(f'Syntax error; token: "{shown}", near: "{near}"')
