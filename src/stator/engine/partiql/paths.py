"""Translates the names and paths of statements into document paths."""

from __future__ import annotations

from typing import Final

from stator.engine.partiql import syntax
from stator.engine.partiql.syntax import Expression
from stator.engine.partiql.values import EMPTY_NAME
from stator.errors import ValidationFailed
from stator.expr import overlap
from stator.expr.tree import Path, PathPart

_LAST_INDEX: Final = 2**31 - 1


def document_path(reference: syntax.Reference) -> Path:
    parts: list[PathPart] = [reference.name]
    for step in reference.steps:
        match step:
            case syntax.Key(name):
                parts.append(name)
            case syntax.Star(is_unpivot, at):
                form = (
                    "Unpivot path component like a.*.b"
                    if is_unpivot
                    else "Wildcard path component like a[*].b"
                )
                raise ValidationFailed(f"{form} are not supported at {at}")
            case syntax.Subscript(value):
                parts.append(_index(value))
    if "" in parts:
        raise ValidationFailed(EMPTY_NAME)
    return Path(tuple(parts))


def _index(value: Expression) -> int:
    if not (isinstance(value, syntax.Constant) and value.kind == "number"):
        raise unexpected(value)
    try:
        index = int(value.text)
    except ValueError:
        raise unexpected(value) from None
    if not 0 <= index <= _LAST_INDEX:
        raise ValidationFailed(
            f"List index is not within the allowable range; index: [{value.text}] at {value.at}"
        )
    return index


def unexpected(node: Expression) -> ValidationFailed:
    return ValidationFailed(f"Unexpected path component at {node.at}")


def output_name(path: Path) -> str:
    """Return the name that a selected path has in the answer: ``b[1]`` for ``m.a.b[1]``."""
    names = [at for at, part in enumerate(path.parts) if isinstance(part, str)]
    return "".join(
        part if isinstance(part, str) else f"[{part}]" for part in path.parts[names[-1] :]
    )


def selected_paths(projection: tuple[Expression, ...]) -> tuple[Path, ...]:
    paths: list[Path] = []
    for node in projection:
        if not isinstance(node, syntax.Reference):
            raise unexpected(node)
        if node.steps and isinstance(node.steps[-1], syntax.Star):
            raise ValidationFailed("Changing item's hierarchy while reading isn't supported")
        paths.append(document_path(node))
    names = [output_name(path) for path in paths]
    for at, name in enumerate(names):
        if name in names[:at]:
            raise ValidationFailed(f"Duplicate identifiers in select clause: {name}")
    overlap.check(paths)
    return tuple(paths)
