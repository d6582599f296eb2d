"""The syntax tree. Nodes are immutable by convention; a bound tree has no placeholders left in it.

Each node has a hand-written ``__init__``, which mypyc compiles to a few stores. The ``__init__``
that a dataclass generates would stay interpreted, and binding creates several nodes per request.
Nodes with the same fields inherit one ``__init__``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

PathPart = Union[str, int]


@dataclass(slots=True, init=False, unsafe_hash=True)
class Path:
    """A document path: an attribute name, then map keys and list indexes."""

    parts: tuple[PathPart, ...]

    def __init__(self, parts: tuple[PathPart, ...]) -> None:
        self.parts = parts

    def shown(self) -> str:
        """Return the path as AWS prints it in messages: ``[a, b, [0]]``."""
        return "[" + ", ".join(f"[{p}]" if isinstance(p, int) else p for p in self.parts) + "]"


@dataclass(slots=True, init=False, unsafe_hash=True)
class Placeholder:
    """A ``:value`` that is not bound yet."""

    name: str

    def __init__(self, name: str) -> None:
        self.name = name


@dataclass(slots=True, init=False, eq=False)
class Literal:
    """A normalised attribute value."""

    value: dict[str, Any]

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value


@dataclass(slots=True, init=False, unsafe_hash=True)
class Function:
    name: str
    arguments: tuple[Operand, ...]

    def __init__(self, name: str, arguments: tuple[Operand, ...]) -> None:
        self.name = name
        self.arguments = arguments


@dataclass(slots=True, init=False, unsafe_hash=True)
class _BinaryNode:
    operator: str
    left: Operand
    right: Operand

    def __init__(self, operator: str, left: Operand, right: Operand) -> None:
        self.operator = operator
        self.left = left
        self.right = right


@dataclass(slots=True, init=False, unsafe_hash=True)
class Arithmetic(_BinaryNode):
    """``left + right`` or ``left - right`` on the right side of SET."""


Operand = Union[Path, Placeholder, Literal, Function, Arithmetic]


@dataclass(slots=True, init=False, unsafe_hash=True)
class Compare(_BinaryNode):
    """``left operator right``, with one of = <> < <= > >=."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class Between:
    operand: Operand
    low: Operand
    high: Operand

    def __init__(self, operand: Operand, low: Operand, high: Operand) -> None:
        self.operand = operand
        self.low = low
        self.high = high


@dataclass(slots=True, init=False, unsafe_hash=True)
class In:
    operand: Operand
    options: tuple[Operand, ...]

    def __init__(self, operand: Operand, options: tuple[Operand, ...]) -> None:
        self.operand = operand
        self.options = options


@dataclass(slots=True, init=False, unsafe_hash=True)
class Not:
    operand: Condition

    def __init__(self, operand: Condition) -> None:
        self.operand = operand


@dataclass(slots=True, init=False, unsafe_hash=True)
class _Junction:
    operands: tuple[Condition, ...]

    def __init__(self, operands: tuple[Condition, ...]) -> None:
        self.operands = operands


@dataclass(slots=True, init=False, unsafe_hash=True)
class And(_Junction):
    """Holds if every operand holds."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class Or(_Junction):
    """Holds if at least one operand holds."""


Condition = Union[Compare, Between, In, Not, And, Or, Function]


@dataclass(slots=True, init=False, unsafe_hash=True)
class _ValueAction:
    path: Path
    value: Operand

    def __init__(self, path: Path, value: Operand) -> None:
        self.path = path
        self.value = value


@dataclass(slots=True, init=False, unsafe_hash=True)
class SetAction(_ValueAction):
    """``SET path = value``."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class RemoveAction:
    path: Path

    def __init__(self, path: Path) -> None:
        self.path = path


@dataclass(slots=True, init=False, unsafe_hash=True)
class AddAction(_ValueAction):
    """``ADD path value``: add a number to a number, or members to a set."""


@dataclass(slots=True, init=False, unsafe_hash=True)
class DeleteAction(_ValueAction):
    """``DELETE path value``: remove members from a set."""


UpdateAction = Union[SetAction, RemoveAction, AddAction, DeleteAction]


@dataclass(slots=True, init=False, unsafe_hash=True)
class UpdateExpression:
    actions: tuple[UpdateAction, ...]

    def __init__(self, actions: tuple[UpdateAction, ...]) -> None:
        self.actions = actions


@dataclass(slots=True, init=False, unsafe_hash=True)
class ProjectionExpression:
    paths: tuple[Path, ...]

    def __init__(self, paths: tuple[Path, ...]) -> None:
        self.paths = paths


Tree = Union[Condition, UpdateExpression, ProjectionExpression]


def paths_in(node: Any) -> list[Path]:
    """Return every document path in a bound tree, in the order of the text."""
    match node:
        case Path():
            return [node]
        case Function(_, arguments):
            return [path for argument in arguments for path in paths_in(argument)]
        case Arithmetic(_, left, right) | Compare(_, left, right):
            return paths_in(left) + paths_in(right)
        case Between(operand, low, high):
            return paths_in(operand) + paths_in(low) + paths_in(high)
        case In(operand, options):
            return paths_in(operand) + [path for option in options for path in paths_in(option)]
        case Not(operand):
            return paths_in(operand)
        case And(operands) | Or(operands):
            return [path for operand in operands for path in paths_in(operand)]
        case SetAction(path, value) | AddAction(path, value) | DeleteAction(path, value):
            return [path, *paths_in(value)]
        case RemoveAction(path):
            return [path]
        case UpdateExpression(actions):
            return [path for action in actions for path in paths_in(action)]
        case ProjectionExpression(paths):
            return list(paths)
        case _:
            return []


def attribute_names(node: Any) -> set[str]:
    """Return the top-level attributes that a bound tree reads or writes."""
    return {str(path.parts[0]) for path in paths_in(node)}
