"""A document as one HTML page: no script, no network, nothing beside it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from html import escape

from stator.design.documents.document import (
    Document,
    EntityEntry,
    IndexEntry,
    PatternEntry,
    TableEntry,
)
from stator.design.documents.style import STYLE
from stator.design.documents.svg import svg
from stator.model.wording import amount, dollars, size


def html(document: Document) -> str:
    name = escape(document.name)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{name}: the design</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<header class="top">
<h1>{name}</h1>
<p>{escape(document.summary)}.</p>
</header>
{_facts(document)}
<nav><a href="#patterns">Access patterns</a><a href="#entities">Entities</a><a href="#tables">Tables</a>\
<a href="#items">Example items</a></nav>
{_warnings(document.warnings)}
<h2 id="patterns">Access patterns</h2>
{_patterns("Reads", document.reads, "Key condition", document.total)}
{_patterns("Writes", document.writes, "Changes", document.total)}
<h2 id="entities">Entities</h2>
<div class="drawing">
{svg(document.diagram)}
</div>
<h2 id="tables">Tables</h2>
{"".join(map(_table, document.tables))}
<h2 id="items">Example items</h2>
<div class="cards">
{"".join(map(_entity, document.entities))}
</div>
<footer>Prices: {escape(document.basis)}. Made by <code>stator docs</code>.</footer>
</main>
</body>
</html>
"""


def _facts(document: Document) -> str:
    reads = sum(each.per_second for each in document.reads)
    writes = sum(each.per_second for each in document.writes)
    facts = [
        (dollars(document.total), "a month"),
        (amount(reads, digits=4), "reads a second"),
        (amount(writes, digits=4), "writes a second"),
        (amount(sum(each.items for each in document.entities), digits=4), "items"),
    ]
    shown = "".join(
        f'<div class="fact"><b>{escape(value)}</b><span>{what}</span></div>'
        for value, what in facts
    )
    return f'<div class="facts">{shown}</div>'


def _warnings(warnings: tuple[str, ...]) -> str:
    return "".join(f'<p class="warning">{escape(warning)}</p>\n' for warning in warnings)


def _patterns(title: str, entries: tuple[PatternEntry, ...], condition: str, total: Decimal) -> str:
    if not entries:
        return ""
    header = ("Pattern", "Request", condition, "#A second", "#Units", "#A month")
    rows = [
        (
            _named(each),
            _request(each),
            _condition(each),
            f"#{amount(each.per_second, digits=4)}",
            f"#{each.units:g}",
            f"#{dollars(each.dollars)}{_bar(each.dollars, total)}",
        )
        for each in entries
    ]
    return f"<h3>{title}</h3>\n{_grid(header, rows)}"


def _request(entry: PatternEntry) -> str:
    place = entry.place + (", consistent" if entry.consistent else "")
    return (
        f'<span class="tag">{entry.operation}</span><br><span class="note">{escape(place)}</span>'
    )


def _named(entry: PatternEntry) -> str:
    about = f'<br><span class="note">{escape(entry.summary)}</span>' if entry.summary else ""
    return f'<span class="name">{escape(entry.name)}</span>{about}'


def _condition(entry: PatternEntry) -> str:
    said = [_code(entry.condition)]
    if entry.reasons or entry.example:
        lines = [f"<li>{escape(reason)}</li>" for reason in entry.reasons]
        if entry.example and entry.example != entry.condition:
            lines.insert(0, f"<li>for example {_code(entry.example)}</li>")
        lines.append(f"<li>{escape(entry.latency)}</li>")
        said.append(f"<details><summary>why</summary><ul>{''.join(lines)}</ul></details>")
    return "".join(said)


def _bar(dollars: Decimal, total: Decimal) -> str:
    share = float(dollars / total) if total else 0.0
    return f'<span class="bar" style="width:{max(share * 100, 1):.0f}%"></span>'


def _table(table: TableEntry) -> str:
    key = f"Partition key {_code(table.partition)}" + (
        f", sort key {_code(table.sort)}" if table.sort else ""
    )
    parts = [f"<h3>{escape(table.name)}</h3>\n<p>{key}.</p>"]
    if table.indexes:
        rows = [
            (
                _index(each),
                _code(each.partition),
                _code(each.sort),
                escape(each.projection),
                escape(", ".join(each.patterns)),
                f"#{dollars(each.dollars)}",
            )
            for each in table.indexes
        ]
        parts.append(
            _grid(("Index", "Partition key", "Sort key", "Projection", "Serves", "#A month"), rows)
        )
    keys = [
        (f'<span class="name">{escape(name)}</span>', *map(_code, values))
        for name, values in table.rows
    ]
    parts.append(
        "<p>Keys of an example of each entity:</p>"
        + _grid(("Entity", *table.columns), keys, "keys")
    )
    return "\n".join(parts)


def _index(index: IndexEntry) -> str:
    name = f'<span class="name">{escape(index.name)}</span> <span class="tag">{index.kind}</span>'
    return f'{name}<br><span class="note">{escape(index.reason)}</span>'


def _entity(entity: EntityEntry) -> str:
    facts = f"{amount(entity.items, digits=4)} items of about {size(entity.item_bytes)}, {dollars(entity.dollars)} a month"
    rows = [
        (
            _code(each.name),
            f'<span class="note">{escape(each.kind)}</span>',
            _code(each.value),
            _role(each.role),
        )
        for each in entity.attributes
    ]
    about = f"<p>{escape(entity.summary)}</p>" if entity.summary else ""
    grid = _grid(("Attribute", "Type", "Example", ""), rows)
    return f'<section class="card"><h3>{escape(entity.name)}</h3>{about}<p class="note">{facts}</p>{grid}</section>\n'


def _role(role: str) -> str:
    return f'<span class="note">{escape(role)}</span>'


def _code(text: str) -> str:
    return f"<code>{escape(text)}</code>" if text else ""


def _grid(header: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> str:
    """A table. A cell that begins with # is a number; headers are text, cells are HTML."""
    head = "".join(_cell("th", escape(each)) for each in header)
    body = "\n".join(f"<tr>{''.join(_cell('td', each) for each in row)}</tr>" for row in rows)
    return f'<div class="scroll {kind}"><table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>'


def _cell(tag: str, content: str) -> str:
    if content.startswith("#"):
        return f'<{tag} class="number">{content[1:]}</{tag}>'
    return f"<{tag}>{content}</{tag}>"
