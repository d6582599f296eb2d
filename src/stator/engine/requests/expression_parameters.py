"""Reads the expression parameters of a request, in AWS's order of checks.

Every operation that takes expressions reads them through ``Placeholders``. A ``Placeholders`` holds
the request's names and values, binds each expression, and at the end refuses names and values that
no expression used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from stator.errors import ValidationFailed, ValueFailed
from stator.expr import legacy
from stator.expr.bind import bind_condition, bind_projection, bind_update
from stator.expr.lexer import ExpressionError
from stator.expr.names import parse_with_names
from stator.expr.parser import Parsed, parse_condition, parse_projection, parse_update
from stator.expr.tree import Condition, Path, ProjectionExpression, UpdateExpression, paths_in
from stator.model.limits import ATTRIBUTE_NAME_BYTES
from stator.model.values import INVALID, NAME_TOO_LARGE, Value, check_name, normalise

_REFERENCE = re.compile(r"[0-9A-Za-z_]+")
_REFERENCE_BYTES = 255

_NO_NAMES: dict[str, str] = {}
_NO_VALUES: dict[str, Value] = {}


def check_mixing(request: dict[str, Any], old: Iterable[str], new: Iterable[str]) -> None:
    """Refuse a request that mixes expressions with the parameters they replaced.

    ``old`` and ``new`` name the legacy and the expression parameters of the operation.
    """
    olds = [name for name in old if request.get(name) is not None]
    if not olds:
        return
    news = [name for name in new if request.get(name) is not None]
    if news:
        raise ValidationFailed(
            "Can not use both expression and non-expression parameters in the same request: "
            f"Non-expression parameters: {{{', '.join(olds)}}} Expression parameters: "
            f"{{{', '.join(news)}}}"
        )


def check_placeholder_use(
    request: dict[str, Any],
    for_names: Iterable[str],
    for_values: Iterable[str],
    *,
    current: bool = True,
) -> None:
    """Refuse names and values if the request has no expression that could use them.

    ``for_names`` are the parameters of this operation whose expressions can use
    ExpressionAttributeNames; ``for_values`` are those that can use ExpressionAttributeValues.

    ``current=False`` selects AWS's older error text, which lists the missing expressions. AWS still
    uses it for Scan.
    """
    if request.get("ExpressionAttributeNames") is not None and not _any(request, for_names):
        raise ValidationFailed(
            "ExpressionAttributeNames can only be specified when using expressions"
        )
    if request.get("ExpressionAttributeValues") is not None and not _any(request, for_values):
        text = "ExpressionAttributeValues can only be specified when using expressions"
        if not current:
            missing = list(for_values)
            text += f": {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} null"
        raise ValidationFailed(text)


def _any(request: dict[str, Any], names: Iterable[str]) -> bool:
    return any(request.get(name) is not None for name in names)


_Bind = Callable[[Parsed, dict[str, str] | None], Any]


class Placeholders:
    """The names and values of one request, or of one action of a transaction."""

    __slots__ = ("_names", "_used_names", "_used_values", "_values", "nested", "values_bytes")

    def __init__(self, request: dict[str, Any], *, wrapped: bool = False) -> None:
        names, values = (
            request.get("ExpressionAttributeNames"),
            request.get("ExpressionAttributeValues"),
        )
        self._names: dict[str, str] = _NO_NAMES if names is None else _checked_names(names)
        self._values: dict[str, Value] = _NO_VALUES if values is None else values
        self.values_bytes = 0 if values is None else _check_values(values, wrapped)
        # Paths that go inside an attribute: none of them may start at a key.
        self.nested: list[Path] = []
        self._used_names: set[str] = set()
        self._used_values: set[str] = set()

    def condition(
        self, text: str | None, parameter: str = "ConditionExpression"
    ) -> Condition | None:
        if text is None:
            return None
        bound: Condition = self._bound(parameter, text, parse_condition, self._bind_condition)
        return bound

    def update(self, text: str | None) -> UpdateExpression | None:
        if text is None:
            return None
        bound: UpdateExpression = self._bound(
            "UpdateExpression", text, parse_update, self._bind_update
        )
        return bound

    def projection(self, text: str | None) -> ProjectionExpression | None:
        if text is None:
            return None
        parameter = "ProjectionExpression"
        bound: ProjectionExpression = self._bound(
            parameter, text, parse_projection, bind_projection
        )
        return bound

    def _bind_condition(self, parsed: Parsed, names: dict[str, str] | None) -> Condition:
        return bind_condition(parsed, names, self._values)

    def _bind_update(self, parsed: Parsed, names: dict[str, str] | None) -> UpdateExpression:
        return bind_update(parsed, names, self._values)

    def _bound(self, parameter: str, text: str, parse: Callable[[str], Parsed], bind: _Bind) -> Any:
        try:
            parsed = parse(text)
            names: dict[str, str] | None = None
            if parsed.names:
                self._used_names |= parsed.names
                names = self._names
                if parsed.names <= names.keys():
                    parsed, names = parse_with_names(parse, text, tuple(names.items())), None
            self._used_values |= parsed.values
            tree = bind(parsed, names)
            if parsed.nested:
                self.nested += [path for path in paths_in(tree) if len(path.parts) > 1]
            return tree
        except ExpressionError as error:
            raise ValidationFailed(f"Invalid {parameter}: {error.message}") from None

    def check_all_used(self) -> None:
        for kind, defined, used in (
            ("Names", self._names, self._used_names),
            ("Values", self._values, self._used_values),
        ):
            if len(defined) != len(used):
                unused = ", ".join(name for name in defined if name not in used)
                raise ValidationFailed(
                    f"Value provided in ExpressionAttribute{kind} unused in expressions: "
                    f"keys: {{{unused}}}"
                )


def _checked_names(names: dict[str, str]) -> dict[str, str]:
    if not names:
        raise ValidationFailed("ExpressionAttributeNames must not be empty")
    for key, name in names.items():
        size = len(key.encode())
        if size > _REFERENCE_BYTES:
            raise ValidationFailed(
                "ExpressionAttributeNames contains invalid key: The expression attribute map "
                f"contains a key that is too long; size of key: {size}"
            )
        if key[:1] != "#" or not _REFERENCE.fullmatch(key, 1):
            raise ValidationFailed(
                f'ExpressionAttributeNames contains invalid key: Syntax error; key: "{key}"'
            )
        if not name:
            raise ValidationFailed(
                "ExpressionAttributeNames contains invalid value: Empty attribute name "
                f"for key {key}"
            )
        if len(name.encode()) > ATTRIBUTE_NAME_BYTES:
            raise ValidationFailed(
                f"ExpressionAttributeNames contains invalid value: {NAME_TOO_LARGE} for key {key}"
            )
    return names


def _check_values(values: dict[str, Value], wrapped: bool) -> int:
    """Check and normalise the values in place, and return their size in bytes.

    With ``wrapped``, the error for a bad value also names the ``:placeholder`` that holds it.
    """
    if not values:
        raise ValidationFailed("ExpressionAttributeValues must not be empty")
    size = 0
    for key, value in values.items():
        if len(key.encode()) > _REFERENCE_BYTES:
            raise ValidationFailed(
                "ExpressionAttributeValues contains invalid key: The expression attribute map "
                "contains a key that is too long;"
            )
        if key[:1] != ":" or not _REFERENCE.fullmatch(key, 1):
            raise ValidationFailed(
                f'ExpressionAttributeValues contains invalid key: Syntax error; key: "{key}"'
            )
        try:
            size += normalise(value)
        except ValidationFailed as error:
            if not wrapped:
                raise
            text = error.older if isinstance(error, ValueFailed) else error.message
            raise ValidationFailed(
                f"ExpressionAttributeValues contains invalid value: {text} for key {key}"
            ) from None
    return size


# -- the parameters from before expressions


def attributes_to_get(names: list[str] | None) -> ProjectionExpression | None:
    """Return AttributesToGet as a projection of whole attributes, or None if it is missing."""
    if names is None:
        return None
    seen: set[str] = set()
    for name in names:
        check_name(name)
        if name in seen:
            raise ValidationFailed(f"{INVALID}Duplicate value in attribute name: {name}")
        seen.add(name)
    return ProjectionExpression(tuple(Path((name,)) for name in names))


def check_conditional_operator(request: dict[str, Any], conditions: dict[str, Any] | None) -> None:
    if request.get("ConditionalOperator") is None:
        return
    if not conditions:
        raise ValidationFailed("ConditionalOperator cannot be used without Filter or Expected")
    if len(conditions) < 2:
        raise ValidationFailed(
            "ConditionalOperator can only be used when Filter or Expected has two or more elements"
        )


def expected(request: dict[str, Any]) -> Condition | None:
    """Return Expected and ConditionalOperator as a condition, or None without Expected."""
    conditions = request.get("Expected")
    check_conditional_operator(request, conditions)
    if not conditions:
        return None
    return legacy.expected_condition(conditions, request.get("ConditionalOperator"))


def legacy_filter(request: dict[str, Any], parameter: str) -> Condition | None:
    """Return QueryFilter or ScanFilter as a condition, or None if it is missing or empty."""
    conditions = request.get(parameter)
    check_conditional_operator(request, conditions)
    if not conditions:
        return None
    return legacy.filter_condition(conditions, request.get("ConditionalOperator"))
