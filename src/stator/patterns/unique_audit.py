"""The audit of unique fields: every value must have its guard, and every guard its value.

Guards keep ``unique()`` fields unique. They also keep identities unique if the table's key has
fields besides the identity. A guard is an item of its own, written in the same transaction as the
item that it belongs to (``tables.writes.unique_guards``). Guards and items agree as long as every
write goes through a ``Db``. They disagree after writes that bypass the ``Db``: by an import, by
another program or by restoring a table. They also disagree if a field became unique when data
already existed. A value may then be blocked for no reason, or two items may share one value. The
audit finds:

- ``orphan``: a guard whose item is gone or has another value, or whose field is no longer unique.
  Repair: the guard is deleted.
- ``missing``: an item whose value has no guard. Repair: the guard is written.
- ``foreign``: an item whose value is guarded for another item, which is gone or has another value.
  Repair: the guard is given to the item.
- ``duplicate``: an item whose value is guarded for another item with the same value. There is no
  repair: a person must decide.
- ``expiry``: a guard that does not expire at the same time as its item. Repair: the guard gets the
  item's expiry.

The audit scans the guards and the entity's table page by page and looks up the counterparts in
batches. Writers continue, so a page may be outdated by the time it is judged. Before a mismatch is
reported, its guard and items are therefore read again in one TransactGetItems.

A repair first reads guard and items once more. Each mismatch is then repaired in one transaction,
on condition that guard and items have not changed since. Repairs change only guards, never items.
If another writer interferes, the repair reads again. If a repair run dies half-way, the next run
repairs the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from stator.design.entities.wire import decode_anything
from stator.design.plan.guard_text import GUARD, OWNER
from stator.design.plan.own_table import FIELD
from stator.errors import ConditionFailed, DesignError, TransactionFailed
from stator.model.values import Item
from stator.patterns.consistent_read import read_snapshot
from stator.patterns.explanation import OperationCost, PatternExplanation, item_layout
from stator.patterns.item_pages import ItemPages
from stator.tables.argument_rules import checks_arguments
from stator.tables.operation import D, OnDb, operation
from stator.tables.reads.items import batch_get
from stator.tables.schema.entity_map import EntityMap
from stator.tables.work import Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import items_equal, send_all
from stator.tables.writes.statements import Statement, Terms
from stator.tables.writes.unique_guards import (
    guard_key,
    guard_put,
    owner_of,
    unique_value,
    watched_attributes,
)

Kind = Literal["orphan", "missing", "foreign", "duplicate", "expiry"]
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class UniqueFinding:
    """A mismatch between a guard and an item.

    ``guard`` is the key of the guard, and ``owner`` the key of the item that the guard names.
    ``item`` is the key of the item whose value should be guarded. It is None if the finding is
    about the guard itself (``orphan`` or ``expiry``).
    """

    kind: Kind
    field: str
    guard: Item
    owner: Item | None
    item: Item | None
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


@dataclass(slots=True)
class UniqueAuditReport:
    """The result of an audit; ``items`` and ``guards`` count what was examined."""

    items: int = 0
    guards: int = 0
    findings: list[UniqueFinding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether no guard is missing, wrong or left over."""
        return not self.findings


@dataclass(slots=True)
class UniqueRepairReport:
    """The result of a repair: findings that were ``repaired``, and findings that were ``left``.

    A finding is left if it is a duplicate, which a person must decide, or if other writers changed
    its items during every attempt.
    """

    repaired: list[UniqueFinding] = field(default_factory=list)
    left: list[UniqueFinding] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """A guard, the item it names, and the item under examination, all read at one moment."""

    guard: Item | None
    owner: Item | None
    item: Item | None


@checks_arguments("UniqueAudit")
class UniqueAudit(OnDb[D]):
    """Audits an entity's unique fields: ``UniqueAudit(db, User)``.

    ``audit()`` reports findings; ``repair()`` reports and repairs them.
    """

    def __init__(self, db: D, entity: type[Any]) -> None:
        super().__init__(db)
        self._of: EntityMap = self.context.schema.of(entity)
        self._place = self.context.schema.place
        self._label = f"unique audit {self._of.name}"
        if not self._of.guarded:
            raise DesignError(
                f"{self._of.name} has no guards: no field is unique(), and its key is its identity",
                hint="mark a field with unique()",
            )

    @operation
    def audit(self) -> Work[UniqueAuditReport]:
        """Compare all items with all guards, and report every mismatch. Nothing is changed."""
        report = UniqueAuditReport()
        pages = self._guards()
        while not pages.is_done:
            page = yield from pages.page()
            report.guards += len(page)
            report.findings += yield from self._audit_guards(page)
        pages = self._items()
        while not pages.is_done:
            page = yield from pages.page()
            report.items += len(page)
            report.findings += yield from self._audit_items(page)
        return report

    @operation
    def repair(self) -> Work[UniqueRepairReport]:
        """Audit, then repair each mismatch that is found.

        A mismatch that disappears before its repair is in neither list of the report.
        """
        report = UniqueRepairReport()
        found = (yield from self.audit.work()).findings
        # Items first: a guard that is given to its item is no longer an orphan.
        for finding in sorted(found, key=lambda each: each.item is None):
            done = yield from self._repair(finding)
            if done is not None:
                is_left = done.kind == "duplicate" or done is finding
                (report.left if is_left else report.repaired).append(done)
        return report

    # -- scanning

    def _guards(self) -> ItemPages[Item]:
        written = Expressions()
        prefix = written.value({"S": f"UNIQUE#{self._of.name}#"})
        request = {
            "TableName": self._place.table,
            "ConsistentRead": True,
            "FilterExpression": f"{written.name(self._place.sort)} = {written.value({'S': GUARD})}"
            f" AND begins_with({written.name(self._place.partition)}, {prefix})",
        }
        return ItemPages(written.into(request), self._label, lambda item: item, "Scan")

    def _items(self) -> ItemPages[Item]:
        request: dict[str, Any] = {"TableName": self._of.table.name, "ConsistentRead": True}
        discriminator = self._of.plan.discriminator
        if discriminator is not None:
            written = Expressions()
            request["FilterExpression"] = (
                f"{written.name(discriminator)} = {written.value({'S': self._of.name})}"
            )
            written.into(request)
        return ItemPages(request, self._label, self._own, "Scan")

    def _own(self, item: Item) -> Item | None:
        """Return ``item`` if it is an item of the audited entity, else None.

        The table may also hold guards and items of other entities, which the Scan returns as well.
        """
        if self._of.told_by_key is not None and not self._of.told_by_key(item):
            return None
        return item if all(name in item for name in self._of.identity) else None

    def _audit_guards(self, guards: list[Item]) -> Work[list[UniqueFinding]]:
        owners = yield from self._read_items([_owner_key(guard) for guard in guards])
        found = []
        for guard in guards:
            if self._judge_guard(guard, owners.get(guard[OWNER]["S"])) is not None:
                finding, _ = yield from self._look_at_guard(self._guard_key(guard))
                found += [] if finding is None else [finding]
        return found

    def _audit_items(self, items: list[Item]) -> Work[list[UniqueFinding]]:
        expected = [
            (self._of.stored_key(item), name, guard_key(self._place, self._of, name, value))
            for item in items
            for name in self._of.guarded
            if (value := unique_value(self._of, name, item)) is not None and not self._is_over(item)
        ]
        keys = [key for _, _, key in expected]
        distinct = {_text(key): key for key in keys}
        guards = yield from batch_get(
            self.context, self._place.table, list(distinct.values()), self._label, consistent=True
        )
        by_key = {_text(self._guard_key(guard)): guard for guard in guards}
        found = []
        for item, name, key in expected:
            guard = by_key.get(_text(key))
            if guard is None or self._is_free(guard) or guard[OWNER] != owner_of(item):
                finding, _ = yield from self._look_at_item(item, name)
                found += [] if finding is None else [finding]
        return found

    def _read_items(self, keys: list[Item]) -> Work[dict[str, Item]]:
        distinct = {owner_of(key)["S"]: key for key in keys}
        table = self._of.table.name
        found = yield from batch_get(
            self.context, table, list(distinct.values()), self._label, consistent=True
        )
        return {owner_of(self._of.stored_key(item))["S"]: item for item in found}

    def _look_at_guard(self, key: Item) -> Work[tuple[UniqueFinding | None, _Seen]]:
        seen = yield from self._together(key, None)
        return (None if seen.guard is None else self._judge_guard(seen.guard, seen.owner)), seen

    def _look_at_item(self, key: Item, name: str) -> Work[tuple[UniqueFinding | None, _Seen]]:
        """Read an item and the guard of its unique field ``name``, and compare them.

        Returns the finding, or None if they agree, and what was read: the guard, the item that the
        guard names, and the item itself, all as of one moment. If the item's value changes
        meanwhile, the guard of the new value is read.
        """
        [item] = yield from self._moment([(self._of.table.name, key)])
        for _ in range(_ATTEMPTS):
            value = unique_value(self._of, name, item)
            if value is None:
                break
            seen = yield from self._together(guard_key(self._place, self._of, name, value), key)
            if unique_value(self._of, name, seen.item) == value:
                return self._judge_item(seen, name), seen
            item = seen.item  # the value has changed, and with it the guard to look at
        return None, _Seen(None, None, item)

    def _together(self, guard: Item, item: Item | None) -> Work[_Seen]:
        """Read a guard, the item that it names, and ``item``, in one transaction.

        The guard is first read alone, to learn which item it names. If the guard names another
        item by the time of the transaction, the transaction is repeated with that item.
        """
        [known] = yield from self._moment([(self._place.table, guard)])
        while True:
            owner = None if known is None else _owner_key(known)
            distinct = {owner_of(key)["S"]: key for key in (owner, item) if key is not None}
            tables = [(self._of.table.name, key) for key in distinct.values()]
            known, *found = yield from self._moment([(self._place.table, guard), *tables])
            if owner == (None if known is None else _owner_key(known)):
                break
        by_key = dict(zip(distinct, found))
        of_owner = None if owner is None else by_key[owner_of(owner)["S"]]
        return _Seen(known, of_owner, None if item is None else by_key[owner_of(item)["S"]])

    def _moment(self, keys: list[tuple[str, Item]]) -> Work[list[Item | None]]:
        return read_snapshot(self.context, keys, self._label)

    # -- judging

    def _judge_guard(self, guard: Item, owner: Item | None) -> UniqueFinding | None:
        if self._is_free(guard):
            return None
        name, key = guard[FIELD]["S"], self._guard_key(guard)

        def finding(kind: Kind, reason: str) -> UniqueFinding:
            shown = f"a guard of {self._of.name}.{name} {reason}"
            return UniqueFinding(kind, name, key, _owner_key(guard), None, shown)

        if name not in self._of.guarded:
            return finding("orphan", "is left over: the field is not unique")
        if owner is None or self._is_over(owner):
            return finding("orphan", "belongs to an item that no longer exists")
        value = unique_value(self._of, name, owner)
        if value is None or guard_key(self._place, self._of, name, value) != key:
            return finding("orphan", f"names {self._shown(owner)}, which has another {name}")
        if not _same(guard.get(self._place.ttl), self._expiry(owner)):
            return finding("expiry", f"and {self._shown(owner)} expire at different times")
        return None

    def _judge_item(self, seen: _Seen, name: str) -> UniqueFinding | None:
        item, guard = seen.item, seen.guard
        value = unique_value(self._of, name, item)
        if item is None or value is None or self._is_over(item):
            return None
        key, guarded = self._of.stored_key(item), guard_key(self._place, self._of, name, value)
        shown = f"{self._shown(item)} has a value of {name}"
        if guard is None or self._is_free(guard):
            return UniqueFinding("missing", name, guarded, None, key, f"{shown} without a guard")
        owner = _owner_key(guard)
        if guard[OWNER] == owner_of(key):
            return None
        theirs = None if seen.owner is None or self._is_over(seen.owner) else seen.owner
        if unique_value(self._of, name, theirs) == value:
            return UniqueFinding(
                "duplicate",
                name,
                guarded,
                owner,
                key,
                f"{shown} that {self._shown(theirs)} has",
            )
        return UniqueFinding(
            "foreign",
            name,
            guarded,
            owner,
            key,
            f"{shown} that is guarded for a former owner",
        )

    def _shown(self, item: Item | None) -> str:
        """Return the entity and identity of an item for messages, without its other values."""
        item = item or {}
        known = {name: decode_anything(item[name]) for name in self._of.identity if name in item}
        return self._of.shown(known)

    def _is_over(self, item: Item) -> bool:
        return self._of.is_gone(item, self.context.now())

    def _is_free(self, guard: Item) -> bool:
        expires = guard.get(self._place.ttl)
        return expires is not None and float(expires["N"]) <= self.context.now()

    def _expiry(self, item: Item) -> Any:
        return None if self._of.ttl is None else item.get(self._of.ttl)

    def _guard_key(self, guard: Item) -> Item:
        return {name: guard[name] for name in (self._place.partition, self._place.sort)}

    # -- repairing

    def _repair(self, finding: UniqueFinding) -> Work[UniqueFinding | None]:
        """Check again whether a finding is still right, and repair it. Return what was repaired.

        Returns None if nothing is wrong now, a ``duplicate`` finding if there is no repair, and
        ``finding`` itself if other writers interfered in every attempt.
        """
        for attempt in range(_ATTEMPTS):
            if finding.item is not None:
                now, seen = yield from self._look_at_item(finding.item, finding.field)
            else:
                now, seen = yield from self._look_at_guard(finding.guard)
            if now is None or now.kind == "duplicate":
                return now
            try:
                yield from send_all(self.context, self._statements(now, seen), self._label)
            except TransactionFailed as failed:
                if not all(isinstance(error, ConditionFailed) for _, _, error in failed.failures):
                    raise
                yield Pause(self.context.backoff(attempt))
            else:
                return now
        return finding

    def _statements(self, finding: UniqueFinding, seen: _Seen) -> list[Statement]:
        """Return the statements of the transaction that repairs a finding.

        Their conditions require that the guard and the items have not changed since ``seen`` was
        read.
        """
        checks = []
        if finding.owner is not None:
            checks.append(self._unchanged(finding.owner, seen.owner))
        if finding.item is not None:
            checks.append(self._unchanged(finding.item, seen.item))
        guard = seen.guard or {}
        if finding.kind == "orphan":
            return [self._delete(finding.guard, guard), *checks]
        mine, key = (
            (seen.item, finding.item) if finding.item is not None else (seen.owner, finding.owner)
        )
        assert key is not None
        return [self._write(finding, mine, key, guard), *checks]

    def _write(
        self, finding: UniqueFinding, item: Item | None, key: Item, guard: Item
    ) -> Statement:
        value = unique_value(self._of, finding.field, item)
        expires = None if item is None else self._expiry(item)
        put = guard_put(
            self._place, self._of, finding.field, value, key, expires, self.context.now()
        )
        if finding.kind != "missing":
            written = Expressions()
            put.request = {
                "TableName": self._place.table,
                "Item": put.request["Item"],
                "ConditionExpression": self._owned(written, guard),
            }
            written.into(put.request)
        return put

    def _delete(self, key: Item, guard: Item) -> Statement:
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "Key": key,
            "ConditionExpression": self._owned(written, guard),
        }
        return Statement("Delete", written.into(request), "delete the guard", _changed)

    def _owned(self, written: Expressions, guard: Item) -> str:
        return f"{written.name(OWNER)} = {written.value(guard.get(OWNER, {'NULL': True}))}"

    def _unchanged(self, key: Item, item: Item | None) -> Statement:
        """Return a check that an item's unique fields and expiry are as they were read."""
        terms = Terms(self._of)
        if item is None:
            terms.equal(self._of.table.partition, None)
        else:
            terms.stored(watched_attributes(self._of, item))
            if self._of.ttl is not None:
                terms.equal(self._of.ttl, item.get(self._of.ttl))
        request = terms.into({"TableName": self._of.table.name, "Key": key})
        return Statement("ConditionCheck", request, f"check {self._of.name}", _changed)

    def explain(self) -> PatternExplanation:
        """Return the key of a guard, and the units and cost of an audit and a repair."""
        return PatternExplanation(
            f"unique audit of {self._of.name}: {', '.join(self._of.guarded)}",
            (
                item_layout(
                    self._place, f"UNIQUE#{self._of.name}#<field>#<value>", "GUARD", "owner"
                ),
            ),
            (
                OperationCost(
                    "audit",
                    "Scan of both tables, BatchGetItem",
                    2,
                    note="per item and per guard",
                ),
                OperationCost(
                    "repair",
                    "an audit, and TransactWriteItems per finding",
                    2,
                    4,
                    "per finding",
                ),
            ),
            ("a Scan reads, and is charged for, the whole table",),
        )


def _owner_key(guard: Item) -> Item:
    key: Item = orjson.loads(guard[OWNER]["S"])
    return key


def _text(key: Item) -> str:
    return orjson.dumps(key, option=orjson.OPT_SORT_KEYS).decode()


def _same(left: Any, right: Any) -> bool:
    return items_equal({"at": left or {"NULL": True}}, {"at": right or {"NULL": True}})


def _changed(item: Item | None) -> ConditionFailed:
    return ConditionFailed("the item has changed since it was read", item=item)
