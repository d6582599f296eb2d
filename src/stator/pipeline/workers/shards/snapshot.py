"""Every item of a table, before its changes: for a group that starts from a snapshot.

The order of three steps makes the snapshot complete. First the group stores that it reads the
stream from this moment on (``Beginning``). Then one worker reads the table, page by page, and hands
every item to the handlers as an insert with ``is_snapshot``. Only then is the stream read. A change
made during the scan may already be in the item; it is then handled again after the item. No change
is missed, and the last state of an item that handlers see is the current one. This holds if the
scan takes less than a stream's retention, a day.

The snapshot has a lease like a shard's, on a shard named SNAPSHOT; its position is the key after
which the next page begins.
"""

from __future__ import annotations

from typing import Any

import orjson

from stator.pipeline.workers.handlers.change import snapshot_record
from stator.pipeline.workers.shards.lease_holder import LeaseHolder
from stator.pipeline.workers.shards.leases import FIRST
from stator.tables.work import Call, Work


class SnapshotConsumer(LeaseHolder):
    def work(self) -> Work[None]:
        table = self.lease.table
        names = self._key_names()
        while not self.is_to_stop:
            position = self.lease.position
            request: dict[str, Any] = {
                "TableName": table,
                "ConsistentRead": True,
                "Limit": self.tools.options.batch_records,
            }
            if position != FIRST:
                request["ExclusiveStartKey"] = orjson.loads(position)
            self.held()
            page = yield Call("Scan", request, "snapshot")
            now = self.context.now()
            records = [
                snapshot_record(table, {name: item[name] for name in names}, item, now)
                for item in page["Items"]
            ]
            self.progress.records += len(records)
            if records:
                self.progress.add_batch((yield from self.delivery.run(records)))
            if "LastEvaluatedKey" not in page:
                yield from self._end()
                return
            yield from self.move(orjson.dumps(page["LastEvaluatedKey"]).decode())
        yield from self.give()

    def _key_names(self) -> tuple[str, ...]:
        place = self.context.schema.place
        if self.lease.table == place.table:
            return place.partition, place.sort
        plan = self.context.schema.tables[self.lease.table]
        return (plan.partition,) if plan.sort is None else (plan.partition, plan.sort)

    def _end(self) -> Work[None]:
        lease = self.held()
        yield from self.tools.leases.mark_ready(lease.table)
        yield from self.tools.leases.end(lease)
