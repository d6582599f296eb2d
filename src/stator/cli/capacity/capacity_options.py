"""Options that ``stator advise`` and ``stator scale`` share, and the tables that they name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from stator.cli.design_file import load_design, plan_of
from stator.cli.live_tables import AwsClients
from stator.design.cost.prices import RegionPrices, price_file
from stator.errors import ConfigurationError
from stator.model.scope import DEFAULT_REGION
from stator.ops.capacity.cloudwatch import CloudWatchMetrics
from stator.ops.capacity.history import kept_history, live_history
from stator.ops.capacity.live_table import LiveTable, describe_live
from stator.ops.capacity.use_series import TableHistory

CapacityAtOption = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="ADDRESS",
        help="Where the tables are: aws://region, or http://host:port for an endpoint that also "
        "answers CloudWatch and Application Auto Scaling.",
        show_default=False,
    ),
]
AddressRegionOption = Annotated[
    str | None,
    typer.Option(
        "--region",
        metavar="REGION",
        help="The region of the prices, and of an http address. By default that of --at, otherwise "
        "us-east-1.",
        show_default=False,
    ),
]
HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        metavar="FILE",
        help="A history as .csv or .parquet. With --at, what it lacks is fetched and added.",
        show_default=False,
        dir_okay=False,
    ),
]
DaysOption = Annotated[
    float,
    typer.Option(
        metavar="N",
        help="Days of history, up to 63. More than 15 days have a point for every 5 minutes.",
    ),
]
TimezoneOption = Annotated[
    str,
    typer.Option(metavar="ZONE", help="The time zone of schedules, for example Europe/Zurich."),
]
RecordsOption = Annotated[
    Path,
    typer.Option(
        "--records",
        metavar="FOLDER",
        help="Where --apply writes what was before, for --undo.",
        file_okay=False,
    ),
]
UndoOption = Annotated[
    Path | None,
    typer.Option(
        "--undo",
        metavar="FILE",
        help="Restore the capacity of a table as a record of --apply has it.",
        show_default=False,
        dir_okay=False,
    ),
]
RECORDS: Final = Path("capacity-changes")


@dataclass(frozen=True, slots=True)
class LiveServices:
    """Clients of DynamoDB, CloudWatch and Application Auto Scaling for one address."""

    clients: AwsClients
    dynamodb: Any
    cloudwatch: Any
    scaling: Any

    @classmethod
    def at(cls, address: str, region: str | None, profile: str | None) -> LiveServices:
        """Connect to an address."""
        clients = AwsClients(address, region=region, profile=profile)
        names = ("dynamodb", "cloudwatch", "application-autoscaling")
        return cls(clients, *(clients.client(name) for name in names))

    def describe(self, names: Sequence[str]) -> list[LiveTable]:
        """Describe tables by their names."""
        return [describe_live(self.dynamodb, name) for name in names]

    def histories(
        self, tables: Sequence[LiveTable], file: Path | None, days: float
    ) -> tuple[TableHistory, ...]:
        """Fetch the histories of tables.

        With a file, add to it what it lacks, and return its rows, too.
        """
        source, now = CloudWatchMetrics(self.cloudwatch), time.time()
        if file is None:
            return tuple(live_history(source, each, now, days) for each in tables)
        return kept_history(file, source, tables, now, days)


def region_prices(
    file: Path | None, region: str | None, services: LiveServices | None
) -> RegionPrices:
    """Return the prices of ``region``, by default the region of the address."""
    there = DEFAULT_REGION if services is None else services.clients.region
    return price_file(file).region(region or there)


def table_names(target: str | None, tables: Sequence[str] | None, prefix: str) -> list[str]:
    """Return the names of the tables: those named by --table, or those of the design."""
    if tables and target is not None:
        raise typer.BadParameter("name a design or tables with --table, not both")
    if tables:
        return list(tables)
    return [f"{prefix}{each.name}" for each in plan_of(load_design(target)).tables]


def chosen_histories(
    histories: Sequence[TableHistory], tables: Sequence[str] | None, file: Path
) -> list[TableHistory]:
    """Return the histories of the named tables, or all histories of the file."""
    if not tables:
        return list(histories)
    known = {each.table: each for each in histories}
    missing = [name for name in tables if name not in known]
    if missing:
        raise ConfigurationError(
            f"{file} has no history of {', '.join(missing)}", hint=f"it has {', '.join(known)}"
        )
    return [known[name] for name in tables]
