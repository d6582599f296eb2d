"""The writes of items as PartiQL's statements mean them: the same, but for the words about a key of the wrong type."""

from __future__ import annotations

from stator.engine.items import actions as item_writes
from stator.engine.partiql.keys import check_key_kinds
from stator.engine.tables.table import Table


class Insert(item_writes.Insert):
    def locate(self, table: Table) -> bytes:
        check_key_kinds(table.schema, self.item)
        return item_writes.Insert.locate(self, table)


class Update(item_writes.UpdateItem):
    def locate(self, table: Table) -> bytes:
        check_key_kinds(table.schema, self.key)
        return item_writes.UpdateItem.locate(self, table)


class Delete(item_writes.Delete):
    def locate(self, table: Table) -> bytes:
        check_key_kinds(table.schema, self.key)
        return item_writes.Delete.locate(self, table)


class Check(item_writes.Check):
    def locate(self, table: Table) -> bytes:
        check_key_kinds(table.schema, self.key)
        return item_writes.Check.locate(self, table)
