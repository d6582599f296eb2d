"""An inference as a Python file that loads and plans, with its guesses listed at the top."""

from __future__ import annotations

import keyword
import re
import textwrap

from stator.design.infer.inference import GuessedEntity, GuessedPattern, Inference

_STANDARD = {
    "Decimal": "decimal",
    "UUID": "uuid",
    "datetime": "datetime",
    "date": "datetime",
    "Any": "typing",
    "Literal": "typing",
}


def design_file(found: Inference) -> str:
    """Return the text of the design file."""
    body = "\n\n\n".join(
        [*map(_entity, found.entities), *(_pattern(found, each) for each in found.patterns)]
    )
    return f"{_head(found)}\n{_imports(found, body)}\n\n\n{body}\n\n\n{_design(found)}\n"


def _head(found: Inference) -> str:
    lines = [
        f'"""The design of {found.table}, inferred from its items by `stator infer`.',
        "",
        "Review and correct it, then run `stator plan`.",
    ]
    if found.doubts:
        lines += ["", "Guessed:"]
        for doubt in found.doubts:
            lines += textwrap.wrap(doubt, 98, initial_indent="- ", subsequent_indent="  ")
    return "\n".join([*lines, '"""', "", "from __future__ import annotations", ""])


def _imports(found: Inference, body: str) -> str:
    lines: dict[str, set[str]] = {}
    for name, module in _STANDARD.items():
        if re.search(rf"\b{name}\b", body):
            lines.setdefault(module, set()).add(name)
    ours = {"Design", "Entity", "Query", "find", "ident", "read"}
    ours |= {f"Bundle{len(each.entities)}" for each in found.patterns if len(each.entities) > 1}
    ours |= {name for name in ("together", "ttl") if re.search(rf"\b{name}\(", body)}
    text = [
        f"from {module} import {', '.join(sorted(names))}"
        for module, names in sorted(lines.items())
    ]
    return "\n".join(
        [*text, *([""] if text else []), f"from stator import {', '.join(sorted(ours))}"]
    )


def _entity(entity: GuessedEntity) -> str:
    overrides = "".join(
        f", {name}={_shown(value)}"
        for name, value in (("key", entity.key), ("index", dict(entity.indexes)))
        if value
    )
    lines = [f"class {entity.name}(Entity{overrides}):"]
    for field in entity.fields:
        name = f"{field.name}_" if keyword.iskeyword(field.name) else field.name
        default = field.marker or (
            "ident()" if field.name in entity.identity else ("None" if field.optional else "")
        )
        annotation = field.annotation if field.name not in entity.identity else field.python
        lines.append(f"    {name}: {annotation}" + (f" = {default}" if default else ""))
    return "\n".join(lines)


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        inner = ", ".join(_shown(each) for each in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, dict):
        return (
            "{" + ", ".join(f"{_shown(key)}: {_shown(each)}" for key, each in value.items()) + "}"
        )
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


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
    name = re.sub(r"\W", "_", found.table).strip("_").lower() or "design"
    name = f"design_{name}" if name[0].isdigit() or keyword.iskeyword(name) else name
    volumes = ", ".join(
        f"{each.name}: {max(1, round(found.items * each.share))}" for each in found.entities
    )
    lines = [
        f"{name} = Design(",
        f'    "{found.table}",',
        f"    [{', '.join(each.name for each in found.entities)}],",
        f"    [{', '.join(each.name for each in found.patterns)}],",
        f"    volumes={{{volumes}}},",
    ]
    if found.names:
        lines.append(f"    names={_shown(dict(found.names))},")
    return "\n".join([*lines, ")"])
