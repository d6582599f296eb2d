"""The audit of unique fields: does every value have its guard, and every guard its value?

``unique()`` fields are kept unique by guards, items of their own that are written in the transaction of the item they belong to (``tables/uniques``).
As long as everything is written through a ``Db`` they agree. They come apart when items are written past it: imports, other programs, restored tables,
a field made unique when there was data already. Then a value is blocked by nobody, or two items have the same. The audit finds:

| kind | what it means | repair |
|---|---|---|
| ``orphan`` | a guard whose item is gone, or has another value, or whose field is not unique any more | the guard is deleted |
| ``missing`` | an item whose value has no guard | the guard is written |
| ``foreign`` | an item whose value is guarded for another, which is gone or has another value | the guard is given to the item |
| ``duplicate`` | an item whose value is guarded for another that has the same value | none: somebody has to decide |
| ``expiry`` | a guard that expires at another time than its item | the guard is written with the item's expiry |

It scans the table of guards and the entity's table, page by page, and looks up what each should belong with in batches. Writers go on meanwhile, and what was read a
moment ago may not be so now; so whatever looks wrong is read again, guard and items in one TransactGetItems, before it is reported.

A repair judges anew and is one transaction on condition that guard and items are as they were judged. It never touches items, only guards; if others write
meanwhile, it looks again. Dying half-way leaves the rest for the next run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from stator.design.plan.own_table import FIELD, GUARD, OWNER
from stator.errors import ConditionFailed, DesignError, TransactionFailed
from stator.model.values import Item
from stator.patterns.consistent_read import read_snapshot
from stator.patterns.explanation import OperationCost, PatternExplanation
from stator.patterns.item_pages import ItemPages
from stator.tables.operation import D, OnDb, operation
from stator.tables.reads.items import batch_get
from stator.tables.schema import EntityMap
from stator.tables.work import Pause, Work
from stator.tables.writes.expressions import Expressions
from stator.tables.writes.sender import items_equal, send_all
from stator.tables.writes.statements import Statement, Terms
from stator.tables.writes.unique_guards import guard_key, guard_put, owner_of, unique_value

Kind = Literal["orphan", "missing", "foreign", "duplicate", "expiry"]
_ATTEMPTS = 10


@dataclass(frozen=True, slots=True)
class UniqueFinding:
    """``guard`` is the guard's key, ``owner`` the key of the item it names, ``item`` that of the item whose value it should guard."""

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
    """``items`` and ``guards`` count what was looked at."""

    items: int = 0
    guards: int = 0
    findings: list[UniqueFinding] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not self.findings


@dataclass(slots=True)
class UniqueRepairReport:
    """``left`` holds what cannot be repaired safely: duplicates, and what others changed faster than it could be judged."""

    repaired: list[UniqueFinding] = field(default_factory=list)
    left: list[UniqueFinding] = field(default_factory=list)


@dataclass(slots=True)
class _Seen:
    """What was read in one moment: a guard, the item it names, and the item that was asked about."""

    guard: Item | None
    owner: Item | None
    item: Item | None


class UniqueAudit(OnDb[D]):
    """``UniqueAudit(db, User).audit()`` looks; ``repair()`` looks and repairs."""

    def __init__(self, db: D, entity: type[Any]) -> None:
        super().__init__(db)
        self._of: EntityMap = self.context.schema.of(entity)
        self._place = self.context.schema.place
        self._label = f"unique audit {self._of.name}"
        if not self._of.unique:
            raise DesignError(f"{self._of.name} has no unique field", hint="mark one with unique()")

    @operation
    def audit(self) -> Work[UniqueAuditReport]:
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
        """Audit, and repair what can be. What is found right when it is judged again is neither repaired nor left."""
        report = UniqueRepairReport()
        found = (yield from self.audit.work()).findings
        for finding in sorted(
            found, key=lambda each: each.item is None
        ):  # a guard given to its item is no orphan
            done = yield from self._repair(finding)
            if done is not None:
                (
                    report.left if done.kind == "duplicate" or done is finding else report.repaired
                ).append(done)
        return report

    # -- looking

    def _guards(self) -> ItemPages[Item]:
        written = Expressions()
        request = {
            "TableName": self._place.table,
            "ConsistentRead": True,
            "FilterExpression": f"{written.name(self._place.sort)} = {written.value({'S': GUARD})} AND "
            f"begins_with({written.name(self._place.partition)}, {written.value({'S': f'UNIQUE#{self._of.name}#'})})",
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
        """Guards and other items of patterns may lie in the same table; they have no identity."""
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
        wanted = [
            (self._of.stored_key(item), name, guard_key(self._place, self._of, name, value))
            for item in items
            for name in self._of.unique
            if (value := unique_value(self._of, name, item)) is not None and not self._is_over(item)
        ]
        keys = [key for _, _, key in wanted]
        unlike = {_text(key): key for key in keys}
        guards = yield from batch_get(
            self.context, self._place.table, list(unlike.values()), self._label, consistent=True
        )
        by_key = {_text(self._guard_key(guard)): guard for guard in guards}
        found = []
        for item, name, key in wanted:
            guard = by_key.get(_text(key))
            if guard is None or self._is_free(guard) or guard[OWNER] != owner_of(item):
                finding, _ = yield from self._look_at_item(item, name)
                found += [] if finding is None else [finding]
        return found

    def _read_items(self, keys: list[Item]) -> Work[dict[str, Item]]:
        unlike = {owner_of(key)["S"]: key for key in keys}
        table = self._of.table.name
        found = yield from batch_get(
            self.context, table, list(unlike.values()), self._label, consistent=True
        )
        return {owner_of(self._of.stored_key(item))["S"]: item for item in found}

    def _look_at_guard(self, key: Item) -> Work[tuple[UniqueFinding | None, _Seen]]:
        seen = yield from self._together(key, None)
        return (None if seen.guard is None else self._judge_guard(seen.guard, seen.owner)), seen

    def _look_at_item(self, key: Item, name: str) -> Work[tuple[UniqueFinding | None, _Seen]]:
        """Guard and items as they are in one moment: the value says which guard, the guard says which owner."""
        [item] = yield from self._moment([(self._of.table.name, key)])
        for _ in range(_ATTEMPTS):
            value = unique_value(self._of, name, item)
            if value is None:
                break
            seen = yield from self._together(guard_key(self._place, self._of, name, value), key)
            if unique_value(self._of, name, seen.item) == value:
                return self._judge_item(seen, name), seen
            item = seen.item  # it has got another value meanwhile, which has another guard
        return None, _Seen(None, None, item)

    def _together(self, guard: Item, item: Item | None) -> Work[_Seen]:
        """A guard, its owner and an item, read in one transaction; twice, for the guard has to be known before its owner is."""
        [known] = yield from self._moment([(self._place.table, guard)])
        while True:
            owner = None if known is None else _owner_key(known)
            unlike = {owner_of(key)["S"]: key for key in (owner, item) if key is not None}
            tables = [(self._of.table.name, key) for key in unlike.values()]
            known, *found = yield from self._moment([(self._place.table, guard), *tables])
            if owner == (None if known is None else _owner_key(known)):
                break
        by_key = dict(zip(unlike, found))
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
            shown = f"the guard {key[self._place.partition]['S']} {reason}"
            return UniqueFinding(kind, name, key, _owner_key(guard), None, shown)

        if name not in self._of.unique:
            return finding("orphan", f"is about {self._of.name}.{name}, which is not unique")
        if owner is None or self._is_over(owner):
            return finding("orphan", "belongs to an item that is gone")
        value = unique_value(self._of, name, owner)
        if value is None or guard_key(self._place, self._of, name, value) != key:
            return finding("orphan", f"belongs to an item whose {name} is {value!r}")
        if not _same(guard.get(self._place.ttl), self._expiry(owner)):
            return finding("expiry", "expires at another time than its item")
        return None

    def _judge_item(self, seen: _Seen, name: str) -> UniqueFinding | None:
        item, guard = seen.item, seen.guard
        value = unique_value(self._of, name, item)
        if item is None or value is None or self._is_over(item):
            return None
        key, guarded = self._of.stored_key(item), guard_key(self._place, self._of, name, value)
        shown = f"{self._of.name} {orjson.dumps(key).decode()} has the {name} {value!r}"
        if guard is None or self._is_free(guard):
            return UniqueFinding(
                "missing", name, guarded, None, key, f"{shown}, which no guard keeps for it"
            )
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
                f"{shown}, and so has {orjson.dumps(owner).decode()}",
            )
        return UniqueFinding(
            "foreign",
            name,
            guarded,
            owner,
            key,
            f"{shown}, kept for another item that has it no more",
        )

    def _is_over(self, item: Item) -> bool:
        return self._of.is_expired(item, self.context.now())

    def _is_free(self, guard: Item) -> bool:
        expires = guard.get(self._place.ttl)
        return expires is not None and float(expires["N"]) <= self.context.now()

    def _expiry(self, item: Item) -> Any:
        return None if self._of.ttl is None else item.get(self._of.ttl)

    def _guard_key(self, guard: Item) -> Item:
        return {name: guard[name] for name in (self._place.partition, self._place.sort)}

    # -- repairing

    def _repair(self, finding: UniqueFinding) -> Work[UniqueFinding | None]:
        """What was repaired; the finding itself if it could not be; None if there is nothing wrong any more."""
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
        """The repair, on condition that everything is as it was judged."""
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
        made = guard_put(
            self._place, self._of, finding.field, value, key, expires, self.context.now()
        )
        if finding.kind != "missing":
            written = Expressions()
            made.request = {
                "TableName": self._place.table,
                "Item": made.request["Item"],
                "ConditionExpression": self._owned(written, guard),
            }
            written.into(made.request)
        return made

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
        """An item is as it was read, in all that guards are about."""
        terms = Terms(self._of)
        if item is None:
            terms.equal(self._of.table.partition, None)
        else:
            for name in (*self._of.unique, *((self._of.ttl,) if self._of.ttl is not None else ())):
                terms.equal(name, item.get(name))
        request = terms.into({"TableName": self._of.table.name, "Key": key})
        return Statement("ConditionCheck", request, f"check {self._of.name}", _changed)

    def explain(self) -> PatternExplanation:
        return PatternExplanation(
            f"unique audit of {self._of.name}: {', '.join(self._of.unique)}",
            (
                f"{self._place.partition} UNIQUE#{self._of.name}#<field>#<value>  {self._place.sort} GUARD  owner",
            ),
            (
                OperationCost(
                    "audit",
                    "Scan of both tables, BatchGetItem",
                    2,
                    note="for each item and each guard",
                ),
                OperationCost(
                    "repair",
                    "an audit, and TransactWriteItems for each finding",
                    2,
                    4,
                    "for each finding",
                ),
            ),
            ("a Scan reads, and pays for, everything in the table",),
        )


def _owner_key(guard: Item) -> Item:
    key: Item = orjson.loads(guard[OWNER]["S"])
    return key


def _text(key: Item) -> str:
    return orjson.dumps(key, option=orjson.OPT_SORT_KEYS).decode()


def _same(left: Any, right: Any) -> bool:
    return items_equal({"at": left or {"NULL": True}}, {"at": right or {"NULL": True}})


def _changed(item: Item | None) -> ConditionFailed:
    return ConditionFailed("it changed meanwhile", item=item)
