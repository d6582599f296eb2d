"""An inference as a Python file that loads and plans, with its guesses listed at the top."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from typing import Any, Final

from stator.design.infer.entity_guess import GuessedEntity
from stator.design.infer.fields import GuessedField
from stator.design.infer.inference import GuessedPattern, GuessedTable, Inference
from stator.design.infer.table_keys import IndexKeys
from stator.design.infer.words import function_name

_STANDARD: Final = {
    "Decimal": "decimal",
    "UUID": "uuid",
    "datetime": "datetime",
    "date": "datetime",
    "Any": "typing",
}
_WIDTH: Final = 100


def design_file(found: Inference) -> str:
    """Return the text of the design file."""
    body = "\n\n\n".join(
        [
            *(_entity(found, table, each) for table in found.tables for each in table.entities),
            *(_pattern(found, each) for each in found.patterns),
        ]
    )
    design = _design(found)
    imports = _imports(found, f"{body}\n{design}")
    return f"{_head(found)}\n{imports}\n\n\n{body}\n\n\n{design}\n"


def _head(found: Inference) -> str:
    tables = ", ".join(each.name for each in found.tables)
    lines = [
        *textwrap.wrap(
            f'"""The design of {tables}, inferred from items by `stator infer`.', _WIDTH - 2
        ),
        "",
        "Review and correct it, then run `stator plan`.",
    ]
    if found.doubts:
        lines += ["", "Guessed:"]
        for doubt in found.doubts:
            safe = _printable(doubt)
            lines += textwrap.wrap(safe, 98, initial_indent="- ", subsequent_indent="  ")
    return "\n".join([*lines, '"""', "", "from __future__ import annotations", ""])


def _printable(text: str) -> str:
    """Return text that can stand in a docstring or a comment."""
    shown = "".join(each if each.isprintable() else " " for each in text)
    return shown.replace("\\", "/").replace('"""', "'''").rstrip('"')


def _imports(found: Inference, body: str) -> str:
    lines: dict[str, set[str]] = {}
    code = re.sub(r'"(\\.|[^"\\])*"|#.*', "", body)
    for name, module in _STANDARD.items():
        if re.search(rf"\b{name}\b", code):
            lines.setdefault(module, set()).add(name)
    ours = {"Design", "Entity"}
    ours |= {f"Bundle{len(each.entities)}" for each in found.patterns if len(each.entities) > 1}
    ours |= {
        name
        for name in (
            "Query",
            "IndexKey",
            "find",
            "ident",
            "read",
            "stored",
            "together",
            "ttl",
            "TableSettings",
        )
        if re.search(rf"\b{name}[(\[]", code)
    }
    text = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(lines.items())
    ]
    line = f"from stator import {', '.join(sorted(ours))}"
    return "\n".join([*text, *([""] if text else []), line])


# --- entities -------------------------------------------------------------------------------------


def _entity(found: Inference, table: GuessedTable, entity: GuessedEntity) -> str:
    arguments = ["Entity"]
    if entity.label is not None and entity.label != entity.name:
        arguments.append(f"name={_shown(entity.label)}")
    if len(found.tables) > 1:
        arguments.append(f"table={_shown(table.name)}")
    if entity.has_versions:
        arguments.append('on_newer="ignore_unknown"')
    if _is_short(table):
        arguments.append(f"key={_shown(entity.key)}")
    else:
        arguments.append(f"key={_shown(dict(zip(table.keys.own, entity.key)))}")
    if entity.indexes:
        indexes = ", ".join(
            f"{_shown(name)}: {_index(table, name, texts)}"
            for name, texts in entity.indexes.items()
        )
        arguments.append(f"index={{{indexes}}}")
    head = f"class {entity.name}({', '.join(arguments)}):"
    if len(head) > _WIDTH:
        head = "\n".join([f"class {entity.name}(", *(f"    {each}," for each in arguments), "):"])
    lines = [head]
    for field in entity.fields:
        lines += _field(field, is_identity=field.name in entity.identity)
    return "\n".join(lines)


def _is_short(table: GuessedTable) -> bool:
    """Whether ``key=`` can be a tuple of templates, without the names of the key attributes.

    It can if the planner would choose the table's attribute names (PK, SK, GSI1PK) itself, and no
    field has one of these names.
    """
    fields = {field.attribute for entity in table.entities for field in entity.fields}
    return table.keys.has_usual_names and not fields & set(table.keys.names)


def _index(table: GuessedTable, name: str, texts: tuple[str, ...]) -> str:
    if _is_short(table):
        return _shown(texts)
    index: IndexKeys = table.keys.indexes[name]
    size = len(index.partition)
    sides = [dict(zip(index.partition, texts[:size])), dict(zip(index.sort, texts[size:]))]
    if size == 1 and len(index.sort) <= 1:
        key = _shown(sides[0] | sides[1])
    else:
        key = _shown(tuple(side for side in sides if side))
    options = ["local=True"] if index.local else []
    if index.projection == "INCLUDE":
        options.append(f"projection={_shown(index.included)}")
    elif index.projection != "ALL":
        options.append(f"projection={_shown(index.projection)}")
    return f"IndexKey({', '.join([key, *options])})" if options else key


def _field(field: GuessedField, *, is_identity: bool) -> list[str]:
    stored = f"stored={_shown(field.stored)}" if field.stored else ""
    if field.marker:
        default = f"{field.marker}({', '.join(filter(None, ['default=None', stored]))})"
    elif is_identity:
        default = f"ident({stored})"
    elif field.stored:
        more = ", default=None" if field.optional else ""
        default = f"stored({_shown(field.stored)}{more})"
    else:
        default = "None" if field.optional else ""
    annotation = field.python if is_identity else field.annotation
    comment = textwrap.wrap(_printable(field.doubt), 90) if field.doubt else []
    line = f"    {field.name}: {annotation}" + (f" = {default}" if default else "")
    return [*(f"    # {each}" for each in comment), line]


def _shown(value: Any) -> str:
    """Return a value as Python source, with double quotes."""
    if isinstance(value, tuple):
        inner = ", ".join(_shown(each) for each in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_shown(key)}: {_shown(each)}" for key, each in value.items()) + "}"
        )
    text = str(value)
    if not text.isprintable() or "\\" in text:
        return repr(text)
    return '"' + text.replace('"', '\\"') + '"'


# --- patterns and the design ----------------------------------------------------------------------


def _pattern(found: Inference, pattern: GuessedPattern) -> str:
    first = next(each for each in found.entities if each.name == pattern.entities[0])
    types = {field.name: field.python for field in first.fields}
    parameters = ", ".join(f"{name}: {types[name]}" for name in pattern.equal)
    tests = ", ".join(f"{first.name}.{name} == {name}" for name in pattern.equal)
    returns = f", returns={pattern.returns:g}" if pattern.returns > 1 else ""
    names = ", ".join(pattern.entities)
    kind = (
        f"Query[{names}]"
        if len(pattern.entities) == 1
        else f"Bundle{len(pattern.entities)}[{names}]"
    )
    start = f"find({names})" if len(pattern.entities) == 1 else f"together({names})"
    order = f".order_by({first.name}.{pattern.order})" if pattern.order else ""
    return (
        f"@read(rps=1{returns})\n"
        f"def {pattern.name}({parameters}) -> {kind}:\n"
        f"    return {start}.where({tests}){order}"
    )


def _design(found: Inference) -> str:
    taken = {*(each.name for each in found.patterns), *(each.name for each in found.entities)}
    name = function_name(found.name, taken)
    volumes = ", ".join(
        f"{each.name}: {max(1, round(table.items * each.share))}"
        for table in found.tables
        for each in table.entities
    )
    lines = [
        f"{name} = Design(",
        f"    {_shown(found.name)},",
        f"    [{', '.join(each.name for each in found.entities)}],",
        f"    [{', '.join(each.name for each in found.patterns)}],",
        f"    volumes={{{volumes}}},",
    ]
    names = {
        f"{table.name}/_type": table.type_name
        for table in found.tables
        if table.type_name is not None
    }
    if len(found.tables) == 1:
        names = {name.rpartition("/")[2]: each for name, each in names.items() if each != "_type"}
    if names:
        lines.append(f"    names={_shown(names)},")
    recovers = {table.recovers for table in found.tables}
    if False in recovers and True not in recovers:
        lines.append("    settings=TableSettings(point_in_time_recovery=False),")
    return "\n".join([*lines, ")"])
