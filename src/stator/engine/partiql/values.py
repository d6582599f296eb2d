"""Turns literals and parameters into normalised attribute values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from stator.engine.partiql import syntax
from stator.engine.partiql.syntax import Expression
from stator.errors import ValidationFailed, ValueFailed
from stator.model import numbers
from stator.model.values import Item, Value, normalise

MISMATCHED_PARAMETERS: Final = "Number of parameters in request and statement don't match."
EMPTY_NAME: Final = "Path component cannot be an empty string"
_INT32 = 2**31
_MIXED_BAG = (
    "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags at "
)


def literal_value(node: Expression, place: str = "root") -> Value:
    """Return the attribute value of a literal.

    ``place`` is the path of the literal inside the outermost literal, for error messages.
    """
    match node:
        case syntax.Constant("text", text):
            return {"S": text}
        case syntax.Constant("number", text):
            return {"N": _number(text, place)}
        case syntax.Constant("true" | "false" as word):
            return {"BOOL": word == "true"}
        case syntax.Constant("null"):
            return {"NULL": True}
        case syntax.SequenceLiteral("bag", members):
            return _set(members)
        case syntax.SequenceLiteral("list", members):
            return {
                "L": [literal_value(member, f"{place}[{at}]") for at, member in enumerate(members)]
            }
        case syntax.Struct():
            return {
                "M": {
                    name: literal_value(value, f"{place}.{name}")
                    for name, value in _members(node, place)
                }
            }
    raise _unsupported(node, place)


def insert_item(node: syntax.Struct, parameters: list[Value]) -> Item:
    """Return the item of an INSERT, whose attributes are literals or parameters.

    In error messages, the path of a literal starts anew at each attribute.
    """
    item: Item = {}
    for name, value in _members(node, "root"):
        if not name:
            raise ValidationFailed(EMPTY_NAME)
        item[name] = (
            parameters[value.number]
            if isinstance(value, syntax.Parameter)
            else literal_value(value)
        )
    return item


def _members(node: syntax.Struct, place: str) -> Iterator[tuple[str, Expression]]:
    """Yield the name and the expression of each member of ``{..}``.

    The names must be distinct string literals.
    """
    seen: set[str] = set()
    for key, value in node.members:
        if not (isinstance(key, syntax.Constant) and key.kind == "text"):
            raise ValidationFailed(
                f"Tuple keys must be of type String. Actual type: {operation_name(key)} "
                f"under {place} at {key.at}"
            )
        if key.text in seen:
            raise ValidationFailed(
                f"Duplicate keys in tuple. Key: {key.text} under {place} at {key.at}"
            )
        seen.add(key.text)
        yield key.text, value


def _number(text: str, place: str) -> str:
    try:
        return numbers.normalise(text)
    except ValidationFailed as error:
        raise ValidationFailed(f"{error.message} under {place}") from None


def _set(members: tuple[Expression, ...]) -> Value:
    if not members:
        raise ValidationFailed("Empty bags are not supported")
    kinds = [member.kind if isinstance(member, syntax.Constant) else "" for member in members]
    for kind, member in zip(kinds, members):
        if kind not in ("text", "number") or kind != kinds[0]:
            raise ValidationFailed(f"{_MIXED_BAG}{member.at}")
    texts = [member.text for member in members if isinstance(member, syntax.Constant)]
    return _checked(
        {"SS": texts} if kinds[0] == "text" else {"NS": [_number(text, "root") for text in texts]}
    )


def _unsupported(node: Expression, place: str) -> ValidationFailed:
    # Here AWS writes a place in a list like a member: root.0, not root[0].
    place = place.replace("[", ".").replace("]", "")
    if isinstance(node, syntax.Constant) and node.kind == "ion":
        return ValidationFailed(
            f"Ion Literals are not supported: SYMBOL under key {place} at {node.at}"
        )
    return ValidationFailed(f"Unsupported data type: {_shown(node)} under key {place} at {node.at}")


def _shown(node: Expression) -> str:
    match node:
        case syntax.Constant("missing"):
            return "MISSING"
        case syntax.Reference(name):
            return name
        case syntax.OperatorExpression(operator):
            return operator
        case syntax.FunctionCall(name):
            return name
        case syntax.Parameter():
            return "Parameter"
    return "UNKNOWN"


def operation_name(node: Expression) -> str:
    """Return the name that AWS's messages use for a kind of expression."""
    match node:
        case syntax.Reference(_, steps):
            return "Path" if steps else "VariableReference"
        case syntax.Constant():
            return "Literal"
        case syntax.Parameter():
            return "Parameter"
        case syntax.IsType():
            return "IsType"
        case syntax.SequenceLiteral():
            return "Seq"
        case syntax.Struct():
            return "Struct"
        case syntax.Unsupported(operation):
            return operation
    return "NAry"


# -- parameters


def check_parameters(parameters: list[Value]) -> None:
    """Check the parameters of a statement, and normalise them in place."""
    for parameter in parameters:
        _checked(parameter)


def _checked(value: Value) -> Value:
    try:
        normalise(value)
    except ValueFailed as error:
        raise ValidationFailed(error.older) from None
    except ValidationFailed as error:
        if error.message in (numbers.OVERFLOW, numbers.UNDERFLOW):
            raise _number_error(value, error) from None
        raise
    return value


def _number_error(value: Value, error: ValidationFailed) -> ValidationFailed:
    """Return AWS's error for a parameter with a number that is out of range.

    AWS reads a number as a Java BigDecimal, whose 32-bit exponent wraps around. Captured from AWS
    (eu-west-2, October 2026): 1e2147483648 cannot be converted, and 1e2147483647 is an underflow.
    """
    for text in _numbers(value):
        try:
            numbers.normalise(text)
        except ValidationFailed:
            mantissa, _, exponent = text.lower().partition("e")
            power = int(exponent or "0")
            # The digits after the point minus the exponent; -2^31 has no positive counterpart in 32
            # bits.
            scale = len(mantissa.partition(".")[2]) - power
            if not (-_INT32 <= power < _INT32 and -_INT32 <= scale < _INT32):
                return ValidationFailed(f"{numbers.NOT_A_NUMBER}: {text}")
            digits = len(mantissa.replace(".", "").lstrip("+-0")) or 1
            return ValidationFailed(numbers.UNDERFLOW) if digits - scale >= _INT32 else error
    return error


def _numbers(value: Value) -> Iterator[str]:
    for kind, content in value.items():
        if kind == "N":
            yield content
        elif kind == "NS":
            yield from content
        elif kind in ("L", "M"):
            for inner in content if kind == "L" else content.values():
                yield from _numbers(inner)
