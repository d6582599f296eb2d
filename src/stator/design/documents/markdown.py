"""A document as Markdown for a repository: tables in GitHub's form, the diagram as Mermaid."""

from __future__ import annotations

from stator.design.documents.diagram import mermaid
from stator.design.documents.document import Document, EntityEntry, PatternEntry, TableEntry
from stator.design.documents.markdown_parts import code, grid, plain
from stator.model.quantities import amount, dollars, size


def markdown(document: Document) -> str:
    """Return the Markdown text of a document."""
    parts = [
        f"# {document.name}",
        f"{document.summary}. About {dollars(document.total)} a month ({document.basis}).",
        "## Access patterns",
        *_patterns("Reads", document.reads, "Key condition"),
        *_patterns("Writes", document.writes, "Changes"),
        "## Entities",
        f"```mermaid\n{mermaid(document.diagram)}\n```",
        "## Tables",
        *(part for table in document.tables for part in _table(table)),
        "## Example items",
        *(part for entity in document.entities for part in _entity(entity)),
    ]
    if document.warnings:
        parts += ["## Warnings", "\n".join(f"- {plain(warning)}" for warning in document.warnings)]
    return "\n\n".join(parts) + "\n"


def _patterns(title: str, entries: tuple[PatternEntry, ...], condition: str) -> list[str]:
    if not entries:
        return []
    header = ("Pattern", "Operation", "On", condition, "A second", "Units", "A month", "Latency")
    rows = [
        (
            _named(each),
            each.operation + (" (consistent)" if each.consistent else ""),
            code(each.place),
            code(each.condition) + (f"<br>filter {code(each.filter)}" if each.filter else ""),
            amount(each.per_second, digits=4),
            f"{each.units:g}",
            dollars(each.dollars),
            each.latency,
        )
        for each in entries
    ]
    return [f"### {title}", grid(header, rows, right=(4, 5, 6))]


def _named(entry: PatternEntry) -> str:
    return f"**{entry.name}**" + (f"<br>{plain(entry.summary)}" if entry.summary else "")


def _table(table: TableEntry) -> list[str]:
    key = f"partition key `{table.partition}`" + (
        f", sort key `{table.sort}`" if table.sort else ""
    )
    parts = [f"### Table {plain(table.name)}", f"{key[0].upper()}{key[1:]}."]
    if table.indexes:
        header = ("Index", "Kind", "Partition key", "Sort key", "Projection", "Serves", "A month")
        rows = [
            (
                f"**{each.name}**",
                each.kind,
                code(each.partition),
                code(each.sort),
                each.projection,
                ", ".join(each.patterns),
                dollars(each.dollars),
            )
            for each in table.indexes
        ]
        parts.append(grid(header, rows, right=(6,)))
    examples = [(f"**{name}**", *map(code, values)) for name, values in table.rows]
    return [
        *parts,
        "The keys of one example item of each entity:",
        grid(("Entity", *table.columns), examples),
    ]


def _entity(entity: EntityEntry) -> list[str]:
    items = f"{amount(entity.items, digits=4)} items of about {size(entity.item_bytes)}"
    facts = f"{items}, {dollars(entity.dollars)} a month."
    rows = [(code(each.name), each.kind, code(each.value), each.role) for each in entity.attributes]
    about = f"{plain(entity.summary)} " if entity.summary else ""
    return [f"### {entity.name}", about + facts, grid(("Attribute", "Type", "Example", ""), rows)]
