"""The syntax tree of a statement as written. Nothing in it has been looked up or checked yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Union

from stator.engine.partiql.lexer import Position


@dataclass(frozen=True, slots=True)
class Key:
    """A step of a path to a member by name: ``.name`` or ``['name']``."""

    name: str
    at: Position


@dataclass(frozen=True, slots=True)
class Subscript:
    """A step of a path to a list element: ``[expression]``.

    The binder accepts only a literal integer. The parser turns a string literal into a ``Key``.
    """

    value: Expression
    at: Position


@dataclass(frozen=True, slots=True)
class Star:
    """A step of a path to all members: ``.*`` (an unpivot) or ``[*]`` (a wildcard)."""

    is_unpivot: bool
    at: Position


Step = Union[Key, Subscript, Star]


@dataclass(frozen=True, slots=True)
class Reference:
    """A name and its steps: ``a``, ``a.b[0]``, ``"table"."index"``."""

    name: str
    steps: tuple[Step, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. ``kind`` is text, number, true, false, null, missing or ion.

    ``text`` is its content.
    """

    kind: str
    text: str
    at: Position


@dataclass(frozen=True, slots=True)
class Parameter:
    number: int
    at: Position


@dataclass(frozen=True, slots=True)
class SequenceLiteral:
    """A list ``[..]``, a bag ``<<..>>`` or a row ``(.., ..)``. ``kind`` is list, bag or row."""

    kind: str
    members: tuple[Expression, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Struct:
    members: tuple[tuple[Expression, Expression], ...]
    at: Position


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A function and its arguments. ``name`` is lower case; ``at`` is the position of the name."""

    name: str
    arguments: tuple[Expression, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class OperatorExpression:
    """An operator and its operands.

    ``not`` and signs have one operand; ``and`` and ``or`` have any number.
    """

    operator: str
    operands: tuple[Expression, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class IsType:
    operand: Expression
    type_name: str
    at: Position


@dataclass(frozen=True, slots=True)
class OrderTerm:
    value: Expression
    descending: bool


@dataclass(frozen=True, slots=True)
class SelectStatement:
    """A SELECT. ``projection`` is empty for ``*``.

    ``refusal`` is AWS's error for a clause that PartiQL has but DynamoDB does not.
    """

    projection: tuple[Expression, ...]
    source: Expression
    where: Expression | None
    order: tuple[OrderTerm, ...]
    refusal: str | None
    at: Position


@dataclass(frozen=True, slots=True)
class InsertStatement:
    table: Reference
    value: Expression
    has_returning: bool
    at: Position


@dataclass(frozen=True, slots=True)
class SetClause:
    target: Reference
    value: Expression


@dataclass(frozen=True, slots=True)
class RemoveClause:
    target: Reference


@dataclass(frozen=True, slots=True)
class UpdateStatement:
    table: Expression
    changes: tuple[SetClause | RemoveClause, ...]
    where: Expression | None
    returning: str | None
    refusal: str | None
    at: Position


@dataclass(frozen=True, slots=True)
class DeleteStatement:
    table: Reference
    where: Expression | None
    returning: str | None
    refusal: str | None
    at: Position


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A statement that PartiQL has and DynamoDB does not, such as CREATE TABLE."""

    operation: str
    at: Position


Expression = Union[
    Reference,
    Constant,
    Parameter,
    SequenceLiteral,
    Struct,
    FunctionCall,
    OperatorExpression,
    IsType,
    SelectStatement,
    InsertStatement,
    UpdateStatement,
    DeleteStatement,
    Unsupported,
]
