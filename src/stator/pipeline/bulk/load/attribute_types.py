"""Attribute types of a load without a design: from the table's keys, the caller, or the input.

The table's keys always win. CSV has only text, so the values of the first block decide. A column is
a number if every value is a number whose text would not change (``007`` stays text). It is a
boolean if every value is true or false, and text otherwise. Parquet and Arrow have types of their
own. JSON is typed value by value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stator.errors import ConfigurationError
from stator.formats.dynamodb_json import KINDS
from stator.formats.plain import NUMBER
from stator.pipeline.bulk.load.columns import Column
from stator.pipeline.bulk.load.readers import RawRows

_WORDS = frozenset({"true", "false", "True", "False", "TRUE", "FALSE"})

_HEAD_ROWS = 2_000
"""How many rows at the start of an input decide the type of a CSV column."""


@dataclass(frozen=True, slots=True)
class AttributeType:
    """The name (``target``) and type (``kind``) of the attribute that a column is loaded into.

    ``kind`` is None if each value decides. ``why`` says where the type comes from: ``key`` (the
    table), ``given`` (``--type``), ``column`` (the file) or ``inferred`` (from values of CSV).
    """

    source: str
    target: str
    kind: str | None
    why: str


@dataclass(frozen=True, slots=True)
class TableKey:
    """The key of a table: the names of its attributes, the partition key first, and their types.

    ``kinds`` maps names to types, and includes the key attributes of indexes.
    """

    names: tuple[str, ...]
    kinds: Mapping[str, str]


def table_key(description: Mapping[str, Any]) -> TableKey:
    """Return the key of a table from its description in the reply of DescribeTable."""
    kinds = {
        each["AttributeName"]: each["AttributeType"] for each in description["AttributeDefinitions"]
    }
    schema = sorted(description["KeySchema"], key=lambda each: each["KeyType"] != "HASH")
    return TableKey(tuple(each["AttributeName"] for each in schema), kinds)


def parse_map(options: Sequence[str]) -> dict[str, str]:
    """Return the new name of each field in ``--map`` options; an empty name drops the field.

    An option is ``source=target`` to rename a field, or ``source=`` to drop it: ``["a=b", "c="]``
    -> ``{"a": "b", "c": ""}``. A lone ``=`` drops columns without a name.
    """
    found = {}
    for each in options:
        source, separator, target = each.partition("=")
        if not separator or (not source and target):
            raise ConfigurationError(
                f"--map {each} cannot be parsed",
                hint="write --map source=target to rename, or --map source= to drop",
            )
        if source in found:
            raise ConfigurationError(f"--map names {source} twice", hint="map each field once")
        found[source] = target
    targets = [target for target in found.values() if target]
    if len(set(targets)) != len(targets):
        twice = next(target for target in targets if targets.count(target) > 1)
        raise ConfigurationError(
            f"--map sends two fields to {twice}", hint="map one field to each attribute"
        )
    return found


def parse_types(options: Sequence[str]) -> dict[str, str]:
    """Return the attribute types in ``--type`` options: ``["total=N"]`` -> ``{"total": "N"}``.

    Attributes are named as in the table.
    """
    found = {}
    for each in options:
        name, separator, kind = each.rpartition("=")
        if not separator or kind not in KINDS:
            raise ConfigurationError(
                f"--type {each} cannot be parsed", hint=f"write --type NAME={'|'.join(KINDS)}"
            )
        found[name] = kind
    return found


def check_key_types(key: TableKey, given: Mapping[str, str]) -> None:
    """Raise ConfigurationError if a ``--type`` option gives a key attribute a different type.

    ``given`` holds the options: type by attribute name.
    """
    for name, kind in given.items():
        if key.kinds.get(name, kind) != kind:
            raise ConfigurationError(
                f"--type {name}={kind} contradicts the table, in which {name} is a key of type"
                f" {key.kinds[name]}",
                hint="leave it out: keys have the types of the table",
            )


def column_types(
    rows: RawRows, key: TableKey, renamed: Mapping[str, str], chosen: Mapping[str, str]
) -> tuple[AttributeType, ...]:
    """Return the name and type of the attribute that each column is loaded into.

    ``renamed`` holds the ``--map`` options, ``chosen`` the ``--type`` options. Dropped columns are
    left out. Raises ConfigurationError if a key attribute has no column, or if two columns supply
    the same attribute. Also raises it as ``check_names`` does.
    """
    check_names(rows.names, renamed)
    found = []
    for at, source in enumerate(rows.names):
        target = renamed.get(source, source)
        if target:
            found.append(_typed(source, target, rows, at, key, chosen))
    targets = [each.target for each in found]
    for name in key.names:
        if name not in targets:
            raise ConfigurationError(
                f"the table's key needs {name}, but no column has that name",
                hint=f"map one of the columns {', '.join(rows.names[:8])} to it:"
                f" --map {rows.names[0]}={name}",
            )
    twice = next((name for name in targets if targets.count(name) > 1), None)
    if twice is not None:
        raise ConfigurationError(
            f"two columns become the attribute {twice}", hint=f"drop one with --map {twice}="
        )
    return tuple(found)


def check_names(names: Sequence[str], renamed: Mapping[str, str]) -> None:
    """Raise ConfigurationError if a column has no name, or if a ``--map`` option names no column.

    ``--map =`` drops columns without a name.
    """
    if "" in names and "" not in renamed:
        raise ConfigurationError(
            f"column {names.index('') + 1} has no name",
            hint="name it in the header line, or drop columns without a name with --map =",
        )
    unknown = next((name for name in renamed if name not in names), None)
    if unknown is not None:
        raise ConfigurationError(
            f"--map names {unknown}, but there is no such column",
            hint=f"choose one of {', '.join(names)}",
        )


def _typed(
    source: str, target: str, rows: RawRows, at: int, key: TableKey, chosen: Mapping[str, str]
) -> AttributeType:
    if target in key.kinds:
        return AttributeType(source, target, key.kinds[target], "key")
    if target in chosen:
        return AttributeType(source, target, chosen[target], "given")
    own = rows.kinds[at]
    if own == "csv":
        return AttributeType(source, target, _inferred(rows.columns[at][:_HEAD_ROWS]), "inferred")
    return AttributeType(source, target, None if own == "any" else own, "column")


def _inferred(values: Sequence[str]) -> str:
    present = [value for value in values if value != ""]
    if not present:
        return "S"
    if all(NUMBER.fullmatch(value) and _survives_as_number(value) for value in present):
        return "N"
    return "BOOL" if all(value in _WORDS for value in present) else "S"


def _survives_as_number(number: str) -> bool:
    """Whether the text of a number stays the same when it is stored as a DynamoDB number.

    Text with a leading zero, a plus sign or more than 38 digits would change. Such text, for
    example ``007``, is a code rather than a quantity.
    """
    digits = number.lstrip("-")
    leads = len(digits) > 1 and digits[0] == "0" and digits[1].isdigit()
    return not leads and not number.startswith("+") and len(digits) <= 38


def columns_of(types: Sequence[AttributeType], rows: RawRows) -> tuple[Column, ...]:
    places = {name: at for at, name in enumerate(rows.names)}
    return tuple(
        Column(
            places[each.source],
            each.source,
            each.target,
            each.kind,
            rows.kinds[places[each.source]],
        )
        for each in types
    )
