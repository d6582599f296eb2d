"""Opens the tables of an app for a command that looks at it or repairs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from stator.cli.data_folder import check_exists
from stator.errors import ConfigurationError, ResourceNotFound
from stator.pipeline.workers.app import StreamApp
from stator.tables.connection import connect
from stator.tables.db import Db

MISSING_AT: Final = "--at is missing; write --at http://localhost:8000 or aws://region"


@contextmanager
def app_connection(app: StreamApp, address: str, prefix: str) -> Iterator[Db]:
    """Open the tables of an app, which must exist.

    Raises ConfigurationError if the address is a folder that does not exist, or, in the ``with``
    block, if a table is missing.
    """
    check_exists(address)
    with connect(app.design, address, prefix=prefix) as db:
        try:
            yield db
        except ResourceNotFound as error:
            missing = _missing_tables(db)
            if not missing:
                raise
            raise ConfigurationError(
                f"there is no table {missing[0]} at {address}",
                hint="check the address and the prefix, or create the tables with"
                " `stator work --ensure`",
            ) from error


def _missing_tables(db: Db) -> list[str]:
    schema = db.context.schema
    missing = []
    for name in dict.fromkeys((*schema.tables, schema.place.table)):
        try:
            db.call("DescribeTable", {"TableName": name})
        except ResourceNotFound:
            missing.append(name)
    return missing
