"""The syntax tree. Nodes are immutable; a bound tree has no placeholders left in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Union

PathPart = Union[str, int]


@dataclass(frozen=True, slots=True)
class Path:
    """A document path. The first part is an attribute name; later ones are map keys or list indexes."""

    parts: tuple[PathPart, ...]

    def shown(self) -> str:
        """As AWS prints it in messages: ``[a, b, [0]]``."""
        return "[" + ", ".join(f"[{p}]" if isinstance(p, int) else p for p in self.parts) + "]"


@dataclass(frozen=True, slots=True)
class Placeholder:
    """A ``:value`` not bound yet."""

    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """An attribute value, normalised."""

    value: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    arguments: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """``left + right`` or ``left - right`` on the right side of SET."""

    operator: str
    left: Operand
    right: Operand


Operand = Union[Path, Placeholder, Literal, Function, Arithmetic]


@dataclass(frozen=True, slots=True)
class Compare:
    operator: str
    left: Operand
    right: Operand


@dataclass(frozen=True, slots=True)
class Between:
    operand: Operand
    low: Operand
    high: Operand


@dataclass(frozen=True, slots=True)
class In:
    operand: Operand
    options: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Not:
    operand: Condition


@dataclass(frozen=True, slots=True)
class And:
    operands: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Or:
    operands: tuple[Condition, ...]


Condition = Union[Compare, Between, In, Not, And, Or, Function]


@dataclass(frozen=True, slots=True)
class SetAction:
    path: Path
    value: Operand


@dataclass(frozen=True, slots=True)
class RemoveAction:
    path: Path


@dataclass(frozen=True, slots=True)
class AddAction:
    path: Path
    value: Operand


@dataclass(frozen=True, slots=True)
class DeleteAction:
    path: Path
    value: Operand


UpdateAction = Union[SetAction, RemoveAction, AddAction, DeleteAction]


@dataclass(frozen=True, slots=True)
class Update:
    actions: tuple[UpdateAction, ...]


@dataclass(frozen=True, slots=True)
class Projection:
    paths: tuple[Path, ...]


Tree = Union[Condition, Update, Projection]


def paths_in(node: Any) -> list[Path]:
    """Every document path of a bound tree, in the order of the text."""
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
        case Update(actions):
            return [path for action in actions for path in paths_in(action)]
        case Projection(paths):
            return list(paths)
        case _:
            return []


def attribute_names(node: Any) -> set[str]:
    """The top-level attributes a bound tree looks at."""
    return {str(path.parts[0]) for path in paths_in(node)}
