"""The search texts of SEARCH: which metrics they name.

``{AWS/DynamoDB,TableName} MetricName="ConsumedReadCapacityUnits" orders`` has a schema in braces
(the namespace, and exactly these dimensions), and terms. A term with a property compares it:
MetricName, Namespace, or a dimension; in quotation marks the whole value, otherwise a part. A term
alone is a part of any name or value. Terms stand side by side or with AND, OR, NOT and parentheses.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from stator.engine.companions.cloudwatch.expressions.syntax import MathError
from stator.engine.companions.metrics.series import Metric

_TOKEN: Final = re.compile(
    r"""\s*(?:(?P<sign>[()])|(?:(?P<key>[\w.:/-]+|"[^"]+")\s*=\s*)?(?P<value>"[^"]*"|[^\s()="{}]+))"""
)
_SCHEMA: Final = re.compile(r"\s*\{([^}]*)\}")
Test = Callable[[Metric], bool]


@dataclass(frozen=True, slots=True)
class _Token:
    sign: str = ""
    key: str = ""
    value: str = ""


@lru_cache(maxsize=128)
def parse_search(text: str) -> Test:
    """Return the test that a search text makes. Raises MathError if it is malformed."""
    tests: list[Test] = []
    schema = _SCHEMA.match(text)
    if schema is not None:
        if not schema[1].strip():
            raise MathError("the braces of the search text name no namespace")
        namespace, *dimensions = (part.strip().strip('"') for part in schema[1].split(","))
        tests.append(_schema_test(namespace, frozenset(dimensions)))
        text = text[schema.end() :]
    tokens = _tokens(text)
    if tokens:
        parser = _Parser(tokens)
        tests.append(parser.any())
        if parser.left:
            raise MathError("the search text has a ')' too many")
    if not tests:
        raise MathError("the search text is empty")
    return lambda metric: all(test(metric) for test in tests)


def _schema_test(namespace: str, dimensions: frozenset[str]) -> Test:
    return lambda metric: (
        metric.namespace == namespace and {name for name, _ in metric.dimensions} == dimensions
    )


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while text[at:].strip():
        match = _TOKEN.match(text, at)
        if match is None:
            raise MathError(f"the search text is wrong at {text[at:].strip()[:20]!r}")
        found.append(
            _Token(match["sign"] or "", (match["key"] or "").strip('"'), match["value"] or "")
        )
        at = match.end()
    return found


class _Parser:
    def __init__(self, tokens: list[_Token]) -> None:
        self.left = list(reversed(tokens))

    def _is_word(self, word: str) -> bool:
        return bool(self.left) and self.left[-1] == _Token(value=word)

    def any(self) -> Test:
        tests = [self._all()]
        while self._is_word("OR"):
            self.left.pop()
            tests.append(self._all())
        return lambda metric: any(test(metric) for test in tests)

    def _all(self) -> Test:
        tests = [self._one()]
        while self.left and self.left[-1].sign != ")" and not self._is_word("OR"):
            if self._is_word("AND"):
                self.left.pop()
            tests.append(self._one())
        return lambda metric: all(test(metric) for test in tests)

    def _one(self) -> Test:
        if not self.left:
            raise MathError("the search text ends where a term should be")
        if self._is_word("NOT"):
            self.left.pop()
            inner = self._one()
            return lambda metric: not inner(metric)
        token = self.left.pop()
        if token.sign == "(":
            inside = self.any()
            if not self.left or self.left.pop().sign != ")":
                raise MathError("the search text lacks a ')'")
            return inside
        if token.sign:
            raise MathError("the search text has a ')' where a term should be")
        return _term(token)


def _term(token: _Token) -> Test:
    whole = token.value.startswith('"')
    wanted = token.value.strip('"')

    def matches(value: str) -> bool:
        return value == wanted if whole else wanted.lower() in value.lower()

    key = token.key
    if not key:
        return lambda metric: any(matches(text) for text in _texts(metric))
    if key == "MetricName":
        return lambda metric: matches(metric.name)
    if key == "Namespace":
        return lambda metric: matches(metric.namespace)
    return lambda metric: any(name == key and matches(value) for name, value in metric.dimensions)


def _texts(metric: Metric) -> list[str]:
    pairs = [text for pair in metric.dimensions for text in pair]
    return [metric.namespace, metric.name, *pairs]
