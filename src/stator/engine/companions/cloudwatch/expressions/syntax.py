"""The tree of a metric math expression, and the error for one that is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union


class MathError(Exception):
    """An expression of metric math is wrong. The text says what is wrong."""


@dataclass(frozen=True, slots=True)
class Number:
    value: float


@dataclass(frozen=True, slots=True)
class Text:
    value: str


@dataclass(frozen=True, slots=True)
class Name:
    """The id of a query, or a word that a function takes, such as REPEAT."""

    value: str


@dataclass(frozen=True, slots=True)
class Negation:
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: Node
    right: Node


@dataclass(frozen=True, slots=True)
class MathCall:
    function: str
    arguments: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Array:
    members: tuple[Node, ...]


Node = Union[Number, Text, Name, Negation, Binary, MathCall, Array]


def names_in(node: Node) -> set[str]:
    """Return every name in a tree, except those of functions."""
    match node:
        case Name(value):
            return {value}
        case Negation(operand):
            return names_in(operand)
        case Binary(_, left, right):
            return names_in(left) | names_in(right)
        case MathCall(_, members) | Array(members):
            return {name for member in members for name in names_in(member)}
        case _:
            return set()
