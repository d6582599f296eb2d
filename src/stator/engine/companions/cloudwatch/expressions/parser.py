"""Parses metric math.

From weakest to strongest: OR (``||``), AND (``&&``), comparisons, ``+ -``, ``* /``, the minus sign,
``^``. Operators of one strength group from the left, and ``^`` from the right.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from stator.engine.companions.cloudwatch.expressions.syntax import (
    Array,
    Binary,
    MathCall,
    MathError,
    Name,
    Negation,
    Node,
    Number,
    Text,
)

_TOKEN: Final = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|(?P<name>[A-Za-z_][A-Za-z0-9_]*)"
    r"""|(?P<text>"[^"]*"|'[^']*')|(?P<sign>&&|\|\||==|!=|<=|>=|[-+*/^<>(),\[\]]))"""
)
_SYNONYMS: Final = {"&&": "AND", "||": "OR"}
_COMPARISONS: Final = ("==", "!=", "<=", ">=", "<", ">")
_LEVELS: Final = (("OR",), ("AND",), _COMPARISONS, ("+", "-"), ("*", "/"))
_DEEPEST: Final = 50


@lru_cache(maxsize=512)
def parse_expression(text: str) -> Node:
    """Return the tree of an expression. Raises MathError if it is malformed."""
    parser = _Parser(_tokens(text))
    tree = parser.operation(0)
    if parser.token != ("end", ""):
        raise MathError(f"unexpected {parser.shown} after a complete expression")
    return tree


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            rest = text[at:].strip()
            raise MathError(f"unexpected {rest[0]!r} at character {text.index(rest, at) + 1}")
        kind = match.lastgroup or ""
        value = match[kind]
        if kind == "name" and value.upper() in ("AND", "OR"):
            kind, value = "sign", value.upper()
        found.append((kind, _SYNONYMS.get(value, value)))
        at = match.end()
    return [*found, ("end", "")]


class _Parser:
    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self._depth = 0

    @property
    def token(self) -> tuple[str, str]:
        return self._tokens[self._at]

    @property
    def shown(self) -> str:
        kind, value = self.token
        return "end of the expression" if kind == "end" else repr(value)

    def _take(self) -> tuple[str, str]:
        token = self.token
        self._at += 1
        return token

    def _is(self, *signs: str) -> bool:
        return self.token[0] == "sign" and self.token[1] in signs

    def _expect(self, sign: str) -> None:
        if not self._is(sign):
            raise MathError(f"expected {sign!r}, found {self.shown}")
        self._at += 1

    def operation(self, level: int) -> Node:
        """Parse operators that bind at least as strongly as this level."""
        if level == len(_LEVELS):
            return self._signed()
        left = self.operation(level + 1)
        while self._is(*_LEVELS[level]):
            left = Binary(self._take()[1], left, self.operation(level + 1))
        return left

    def _signed(self) -> Node:
        if self._is("-"):
            self._deeper()
            self._at += 1
            return Negation(self._signed())
        base = self._operand()
        if self._is("^"):
            self._deeper()
            self._at += 1
            return Binary("^", base, self._signed())
        return base

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise MathError(f"more than {_DEEPEST} levels of nesting")

    def _operand(self) -> Node:
        self._deeper()
        kind, value = self.token
        if kind == "number":
            self._at += 1
            return Number(float(value))
        if kind == "text":
            self._at += 1
            return Text(value[1:-1])
        if kind == "name":
            self._at += 1
            if not self._is("("):
                return Name(value)
            self._at += 1
            return MathCall(value.upper(), self._members(")"))
        if self._is("("):
            self._at += 1
            inner = self.operation(0)
            self._expect(")")
            return inner
        if self._is("["):
            self._at += 1
            return Array(self._members("]"))
        raise MathError(f"expected a value, found {self.shown}")

    def _members(self, end: str) -> tuple[Node, ...]:
        members: list[Node] = []
        if not self._is(end):
            members.append(self.operation(0))
            while self._is(","):
                self._at += 1
                members.append(self.operation(0))
        self._expect(end)
        return tuple(members)
