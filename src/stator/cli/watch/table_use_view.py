"""The use of a design's tables for ``stator top --tables``: reads it, and shows it as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self
from urllib.parse import urlsplit

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from stator.cli.live_tables import AwsClients
from stator.cli.tables.name_cell import NameCell
from stator.design.cost.prices import prices
from stator.design.design import Design
from stator.design.plan.own_table import own_table
from stator.errors import ConfigurationError
from stator.model.scope import DEFAULT_REGION
from stator.ops.live.hot_keys import HotKeys, HottestKey, KeysNow
from stator.ops.live.table_use import PlaceUse, table_use


@dataclass(frozen=True, slots=True)
class TablesNow:
    """The use of a design's tables now, their hottest keys, and where keys are not counted."""

    places: tuple[PlaceUse, ...]
    hottest: KeysNow


class LiveUse:
    """Reads the use of a design's tables at an address, again and again.

    Raises ConfigurationError for a folder, which has no CloudWatch.
    """

    def __init__(
        self, design: Design, address: str, prefix: str, *, show_keys: bool = False
    ) -> None:
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https", "aws"):
            raise ConfigurationError(
                f"--tables reads CloudWatch, which {address} does not have",
                hint="use an address such as aws://eu-west-1 or http://localhost:8000",
            )
        names = [table.name for table in design.plan().tables]
        self._tables = [prefix + name for name in (*names, own_table(design.name).name)]
        self._prices = prices(parts.netloc if parts.scheme == "aws" else DEFAULT_REGION)
        clients = AwsClients(address)
        self._dynamodb = clients.client("dynamodb")
        self._cloudwatch = clients.client("cloudwatch")
        self._keys = HotKeys(self._dynamodb, self._cloudwatch, show_keys=show_keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._dynamodb.close()
        self._cloudwatch.close()

    def look(self) -> TablesNow:
        """Read the use and the hottest keys now."""
        places = table_use(self._dynamodb, self._cloudwatch, self._tables, self._prices)
        return TablesNow(places, self._keys.look(places))


def shown_tables(found: TablesNow) -> RenderableType:
    """Return the use of tables, their hottest keys, and how to see more of these."""
    parts: list[RenderableType] = [use_table(found.places)]
    hottest = found.hottest
    if hottest.keys:
        parts += ["", key_table(hottest.keys)]
    if hottest.switches:
        names = ", ".join(_name(each.table, each.index) for each in hottest.switches)
        said = f"hottest keys: Contributor Insights (costs extra) is off for {names}. On with:"
        parts += ["", Text(said, "dim"), Text(f"  {hottest.switches[0].command}", "dim")]
    if hottest.problem:
        parts += ["", Text(f"hottest keys cannot be read: {hottest.problem}", "yellow")]
    return Group(*parts)


def key_table(keys: Iterable[HottestKey]) -> Table:
    """Return a table of the hottest keys."""
    table = Table(title="hottest keys", title_justify="left", box=None, pad_edge=False)
    for column in ("table or index", "key", "write units/s", "of a key's limit", "throttled"):
        table.add_column(column, justify="left" if column in ("table or index", "key") else "right")
    for each in keys:
        table.add_row(
            NameCell(_name(each.table, each.index)),
            Text(each.key),
            f"{each.write_units:,.1f}",
            f"{each.limit_share:.0%}",
            f"[red]{each.throttled:,}[/]" if each.throttled else "",
        )
    return table


def _name(table: str, index: str | None) -> str:
    return table if index is None else f"{table}/{index}"


def use_table(places: Iterable[PlaceUse]) -> Table:
    """Return a table of the use of tables and indexes."""
    found = list(places)
    dollars = sum(place.dollars_an_hour for place in found)
    title = f"tables: ${dollars:,.4f} an hour for capacity"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in ("table or index", "reads/s", "writes/s", "throttled", "$/hour"):
        table.add_column(
            column, justify="left" if column in ("table or index", "throttled") else "right"
        )
    for place in found:
        throttled = ", ".join(f"{count:,} {reason}" for reason, count in place.throttles.items())
        table.add_row(
            NameCell(_name(place.table, place.index)),
            _against(place.read_units, place.read_capacity),
            _against(place.write_units, place.write_capacity),
            f"[red]{throttled}[/]" if throttled else "",
            f"{place.dollars_an_hour:,.4f}",
        )
    return table


def _against(units: float, capacity: int | None) -> str:
    return f"{units:,.1f}" if capacity is None else f"{units:,.1f} of {capacity:,}"
