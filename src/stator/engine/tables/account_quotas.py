"""Account quotas: tables per region, units per table and index, units per account."""

from __future__ import annotations

from stator.engine.tables import throughput
from stator.engine.tables.catalog import Catalog
from stator.engine.tables.table import IndexDefinition, TableDefinition
from stator.errors import LimitExceeded
from stator.model.limits import ACCOUNT_READ_UNITS, ACCOUNT_WRITE_UNITS, TABLES_PER_REGION
from stator.model.scope import Scope


def check_table_count(catalog: Catalog, scope: Scope) -> None:
    if len(catalog.names(scope)) >= TABLES_PER_REGION:
        raise LimitExceeded(
            f"Subscriber limit exceeded: There is a limit of {TABLES_PER_REGION} tables "
            "per subscriber"
        )


def check_throughput_quotas(definition: TableDefinition) -> None:
    _check_holder(definition, throughput.TABLE, definition.region)
    for index in definition.indexes:
        _check_holder(index, throughput.Subject(index.name), definition.region)


def _check_holder(
    holder: TableDefinition | IndexDefinition, subject: throughput.Subject, region: str
) -> None:
    throughput.check_quota(holder, subject, region)
    throughput.check_maxima_quota(holder.on_demand, subject, region)
    throughput.check_warm_quota(holder.warm, subject, region)


def check_account_quota(catalog: Catalog, definition: TableDefinition) -> None:
    """Check that this definition keeps the account within its quota of units in the region.

    A change that adds no units to the table always passes.
    """
    reserved = [0, 0]
    before = [0, 0]
    for table in catalog.all():
        other = table.definition
        if (other.account, other.region) != (definition.account, definition.region):
            continue
        totals = before if other.number == definition.number else reserved
        read, write = _provisioned(other)
        totals[0] += read
        totals[1] += write
    limits = (ACCOUNT_READ_UNITS, ACCOUNT_WRITE_UNITS)
    for at, (requested, limit) in enumerate(zip(_provisioned(definition), limits, strict=True)):
        if requested > before[at] and reserved[at] + requested > limit:
            member = ("ReadCapacityUnits", "WriteCapacityUnits")[at]
            raise LimitExceeded(
                f"This request would have caused the {member} limit to be exceeded for the "
                f"account in {definition.region}. Current {member} reserved by the account: "
                f"{reserved[at] + before[at]}. Limit: {limit}. Requested: {requested}. "
                f"{throughput.REFER}"
            )


def _provisioned(definition: TableDefinition) -> tuple[int, int]:
    indexes = [index for index in definition.indexes if index.is_global]
    read = definition.read_units + sum(index.read_units for index in indexes)
    return read, definition.write_units + sum(index.write_units for index in indexes)
