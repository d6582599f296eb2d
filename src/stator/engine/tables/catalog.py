"""The catalogue: all tables, in memory and in storage.

m n                     the number of the next table
m t <number>            a table's definition, as JSON
m k <scope> <token>     a transaction's client token (see items/request_tokens.py)
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from stator.engine import keyspace
from stator.engine.tables.table import Table, TableDefinition
from stator.errors import ResourceNotFound
from stator.model.scope import Scope
from stator.storage import Changes, Storage
from stator.storage.protocol import after_prefix

_NEXT = keyspace.META + b"n"
_TABLES = keyspace.META + b"t"


class Catalog:
    """Finds tables by account, region and name, and stores their definitions."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._tables: dict[Scope, dict[str, Table]] = {}
        self._next_number = int(storage.get(_NEXT) or b"1")
        for _, value in storage.scan(_TABLES, after_prefix(_TABLES)):
            table = Table(TableDefinition.from_json(orjson.loads(value)))
            table.load_stats(storage.get(table.stats_key))
            self._tables.setdefault(table.scope, {})[table.name] = table

    def find(self, scope: Scope, name: str) -> Table | None:
        tables = self._tables.get(scope)
        return None if tables is None else tables.get(name)

    def get(self, scope: Scope, name: str) -> Table:
        """Return a table, or raise ResourceNotFound.

        The error's text is the one that AWS uses in operations on whole tables.
        """
        table = self.find(scope, name)
        if table is None:
            raise ResourceNotFound(f"Requested resource not found: Table: {name} not found")
        return table

    def names(self, scope: Scope) -> list[str]:
        return sorted(self._tables.get(scope, ()))

    def all(self) -> Iterator[Table]:
        for tables in self._tables.values():
            yield from tables.values()

    # -- changes: each adds what storage must hold to ``changes``, and applies in memory at once

    def take_number(self, changes: Changes) -> int:
        number = self._next_number
        self._next_number += 1
        changes[_NEXT] = str(self._next_number).encode()
        return number

    def put(self, definition: TableDefinition, changes: Changes) -> Table:
        """Add a table, or replace one whose definition has changed. Return the new table.

        Counts are kept. The table changes in memory at once; the caller writes ``changes``.
        """
        table = Table(definition)
        tables = self._tables.setdefault(table.scope, {})
        previous = tables.get(table.name)
        if previous is not None and previous.definition.number == definition.number:
            table.counts = previous.counts
            table.traffic = previous.traffic
            for index in table.indexes:
                old = previous.index(index.name)
                if old is not None and old.definition.number == index.definition.number:
                    index.counts = old.counts
        tables[table.name] = table
        changes[_definition_key(definition)] = orjson.dumps(definition.to_json())
        changes[table.stats_key] = table.stats_record()
        return table

    def remove(self, table: Table, changes: Changes) -> None:
        del self._tables[table.scope][table.name]
        changes[_definition_key(table.definition)] = None
        changes[table.stats_key] = None


def _definition_key(definition: TableDefinition) -> bytes:
    return _TABLES + definition.number.to_bytes(4, "big")
