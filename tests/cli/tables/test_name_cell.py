"""Names in tables break between their words, at any width."""

from __future__ import annotations

import io
import re
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.table import Table

from stator import Design, Entity, Query, creates, find, ident, read, write
from stator.cli.commands.cost import report_view
from stator.cli.plan_view import show
from stator.cli.tables.name_cell import NameCell
from stator.cli.verification_view import show_report
from stator.design.cost.prices import price_file
from stator.verification import verify

NAMES = ["events_of", "autocomplete", "usage_of_day_by_meter", "metering/GSI2", "a", "O.user_id"]


def printed(cell: object, width: int) -> list[str]:
    out = io.StringIO()
    table = Table.grid()
    table.add_row(cell)  # type: ignore[arg-type]
    Console(file=out, width=width).print(table)
    return [line.rstrip() for line in out.getvalue().splitlines()]


@pytest.mark.parametrize("width", [4, 8, 12, 16, 40])
@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_wrapped_between_words_or_ends_with_an_ellipsis(name: str, width: int) -> None:
    lines = printed(NameCell(name), width)
    assert max(map(len, lines)) <= width
    assert all(lines)
    words = {each for each in re.split(r"[_/. ]", name) if each}
    for line in lines:
        for word in filter(None, re.split(r"[_/. ]", line)):
            assert word in words or (word.endswith("…") and len(line) == width), lines
    if max(map(len, words)) < width:
        assert "".join(lines) == name


class Report(Entity):
    report_id: str = ident()
    organisation: str
    text: str


@read(rps=100)
def reports_of_an_organisation_by_month(organisation: str) -> Query[Report]:
    return find(Report).where(Report.organisation == organisation)


@write(rps=10)
def publish_quarterly_report() -> object:
    return creates(Report)


DESIGN = Design(
    "reports",
    [Report],
    [reports_of_an_organisation_by_month, publish_quarterly_report],
    volumes={Report: 10_000},
    sizes={Report: 300},
)


def tables(width: int) -> dict[str, str]:
    found = {}
    plan = DESIGN.plan()
    views: tuple[tuple[str, Callable[[Console], object]], ...] = (
        ("verify", lambda console: show_report(verify(DESIGN, most_items=500), console)),
        ("plan --table", lambda console: show(plan, DESIGN, console, as_table=True)),
        ("cost", lambda console: console.print(report_view(DESIGN.cost(), price_file(), {}))),
    )
    for name, view in views:
        out = io.StringIO()
        view(Console(file=out, width=width))
        found[name] = out.getvalue()
    return found


@pytest.mark.parametrize("width", [80, 100])
def test_tables_never_break_the_words_of_a_name(width: int) -> None:
    for name, text in tables(width).items():
        assert max(map(len, text.splitlines())) <= width, name
        words = {*reports_of_an_organisation_by_month.name.split("_"), "publish", "quarterly"}
        for word in words - {"of", "an", "by", "month"}:
            assert word in text, (name, word, text)
