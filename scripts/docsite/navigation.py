"""The order of the site's pages. A page that no section names fails the build and a test."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

from docsite.public_api import PUBLIC_MODULES


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the site: pages by path or pattern, and sections inside it."""

    title: str
    parts: tuple[str | Section, ...]


_PYTHON: Final = tuple(
    Section(module, (f"reference/python/{module}/index.md", f"reference/python/{module}/*.md"))
    for module in PUBLIC_MODULES
)

SECTIONS: Final = (
    Section("Start", ("index.md", "start.md", "examples/index.md", "examples/*.md")),
    Section(
        "Guides",
        (
            "guides/index.md",
            Section(
                "Design tables",
                (
                    "guides/design.md",
                    "guides/one-table-or-several.md",
                    "guides/types.md",
                    "guides/verify.md",
                    "guides/cost.md",
                    "guides/simulate.md",
                    "guides/throttling.md",
                    "guides/evolution.md",
                    "guides/existing-tables.md",
                    "guides/export.md",
                ),
            ),
            Section("Read and write", ("guides/data.md", "guides/unique.md", "guides/testing.md")),
            Section(
                "Move and follow data",
                (
                    "guides/bulk.md",
                    "guides/parquet-round-trip.md",
                    "guides/streams.md",
                    "guides/views.md",
                    "guides/sinks.md",
                    "guides/ingest.md",
                ),
            ),
        ),
    ),
    Section(
        "Patterns",
        (
            "guides/patterns.md",
            "guides/series.md",
            "guides/leaderboard.md",
            "guides/sequence.md",
            "guides/trees.md",
            "guides/links.md",
            "guides/outbox.md",
        ),
    ),
    Section(
        "Operations",
        (
            "guides/serving.md",
            "guides/monitoring.md",
            "guides/capacity.md",
            "guides/monitoring.md",
            "guides/observability.md",
            "guides/recovery.md",
            "guides/operations*.md",
            Section("Runbooks", ("runbooks/*.md",)),
        ),
    ),
    Section("Findings", ("lint/index.md", "lint/*.md")),
    Section(
        "Reference",
        (
            "reference/index.md",
            Section(
                "Python",
                ("reference/python/index.md", *_PYTHON, "reference/python/passed-on.md"),
            ),
            Section("Command line", ("reference/commands/index.md", "reference/commands/*.md")),
            "compatibility.md",
            "glossary.md",
        ),
    ),
    Section(
        "Project",
        (
            Section("Architecture", ("architecture/index.md", "architecture/*.md")),
            Section("Decisions", ("decisions/index.md", "decisions/*.md")),
            "performance.md",
            "stability.md",
            "changelog.md",
            "contributing.md",
            "tour.md",
            "debugging.md",
            "security.md",
        ),
    ),
)


def placed(pages: Iterable[str]) -> tuple[list[Any], list[str]]:
    """The generator's navigation, and the pages that no section names."""
    left = sorted(pages)
    tree = [entry for section in SECTIONS if (entry := _entry(section, left)) is not None]
    return tree, left


def ordered(pages: Iterable[str]) -> list[tuple[str, list[str]]]:
    """The pages of each top section, in the order of the navigation."""
    left = sorted(pages)
    return [(section.title, _flat(_entry(section, left))) for section in SECTIONS]


def _entry(section: Section, left: list[str]) -> dict[str, Any] | None:
    """A section with those of its pages that exist, which are taken from ``left``."""
    entries: list[Any] = []
    for part in section.parts:
        if isinstance(part, Section):
            inner = _entry(part, left)
            entries += [inner] if inner else []
            continue
        found = [page for page in left if fnmatchcase(page, part)]
        entries += found
        left[:] = [page for page in left if page not in found]
    return {section.title: entries} if entries else None


def _flat(entry: Any) -> list[str]:
    if entry is None or isinstance(entry, str):
        return [entry] if entry else []
    if isinstance(entry, dict):
        return [page for part in entry.values() for page in _flat(part)]
    return [page for part in entry for page in _flat(part)]
