"""Writes by declared pattern: delete or update every item that a pattern finds.

The pattern is read in windows of some hundred items. The items of a window are written in parallel,
each by the same statements as a single ``db.delete`` or ``db.update``, so unique guards, blobs and
index keys stay right. Then the window's end is reported as a cursor, and the next window is read.

**Conditions.** A write applies only if the stored item still meets the pattern's conditions and
has the version that was read. Otherwise another writer was faster, and the item is skipped.

**Continuing.** A cursor marks the end of a finished window. A call that starts from it reads every
item after that point, so a killed run leaves nothing out. The items of the window in flight are
written again, if they still match. Deletes and absolute changes may be repeated; a relative change
(``+=``) may be applied twice to those items.

**Items that move.** An update may change the key by which the pattern finds its items. An item that
no longer matches leaves the pattern. One that still matches may move ahead of the reader, and be
found again:

- Within one call, the keys of written items are remembered, and each item is written once.
- An ``updated()`` field grows with every write. If it is part of the key that is read, the reader
  goes from the newest to the oldest item. Written items then move to the part that has been read.
- Any other key field is set to a known value, so a second write leaves the item where it is. The
  reader passes it, and the run ends. A relative change would be applied twice to such an item in a
  later call, so it is refused together with ``limit`` or ``cursor``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from types import SimpleNamespace
from typing import Any

from stator.backoff import Backoff
from stator.design.cost.prices import prices
from stator.design.entities.conditions import (
    All,
    Any_,
    Comparison,
    Condition,
    FieldRef,
    Inverse,
)
from stator.design.entities.derived_parts import PartComparison
from stator.design.patterns.condition_contents import references
from stator.design.patterns.param import Param
from stator.design.patterns.query import Question
from stator.design.plan.html_table import html_table
from stator.design.plan.plan import Step
from stator.errors import (
    ConditionFailed,
    ConnectionTrouble,
    ItemNotFound,
    OutcomeUnknown,
    RequestRefused,
    ServiceError,
    StatorError,
    UniqueTaken,
)
from stator.model.values import Item
from stator.tables.codegen.key_writer import fields_of
from stator.tables.context import Context
from stator.tables.observers import MEASURED, units_of
from stator.tables.reads.pattern_read import (
    PatternRead,
    ReadOptions,
    check_declared,
    check_limit,
    check_whole,
)
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.schema import StepRoute
from stator.tables.work import Call, Gather, Pause, Work, gathered
from stator.tables.writes.recorder import Recorder, Recording
from stator.tables.writes.sender import write
from stator.tables.writes.statements import Statement
from stator.tables.writes.update_statement import refuse_fixed
from stator.tables.writes.write_units import units_of_write
from stator.tables.writes.writes import WritePlanner

_WINDOW_ITEMS = 100
_ATTEMPTS = 12
_BACKOFF = Backoff(base_seconds=0.05, cap_seconds=5.0)
_SAMPLE = 10


@dataclass(frozen=True, slots=True)
class FailedItem:
    """An item that could not be written: its entity, its identity and the reason."""

    entity: type[Any]
    identity: Mapping[str, Any]
    error: StatorError


@dataclass(slots=True)
class PatternWriteResult:
    """The result of ``delete_where`` or ``update_where``, and the progress up to a cursor.

    ``found`` counts the items that were read. ``written`` counts items that were deleted or
    updated. An item also counts as written if a delete got no answer, and the repeated delete found
    no item. ``changed`` counts items that no longer matched the pattern or had another version,
    ``gone`` items that another writer deleted. The next call continues at ``cursor``, which is None
    if everything was read.
    """

    found: int = 0
    written: int = 0
    changed: int = 0
    gone: int = 0
    failures: list[FailedItem] = field(default_factory=list)
    cursor: str | None = None

    def _repr_html_(self) -> str:
        """Return the failures for a notebook, below the counts."""
        return html_table(
            f"{self.found:,} found, {self.written:,} written, {self.changed:,} changed, "
            f"{self.gone:,} gone, {len(self.failures)} failed",
            ("entity", "identity", "error"),
            ((each.entity.__name__, dict(each.identity), each.error) for each in self.failures),
        )

    @property
    def ok(self) -> bool:
        """Whether no item failed. Skipped items are not failures."""
        return not self.failures

    @property
    def skipped(self) -> int:
        """The items that another writer changed or deleted between the read and the write."""
        return self.changed + self.gone

    def raise_for_failures(self) -> None:
        """Raise the first failure, if there is one."""
        if self.failures:
            raise self.failures[0].error

    def add(self, other: PatternWriteResult) -> None:
        """Add the counts and failures of another result to this one. The cursor does not change."""
        self.found += other.found
        self.written += other.written
        self.changed += other.changed
        self.gone += other.gone
        self.failures += other.failures


@dataclass(frozen=True, slots=True)
class PatternWritePreview:
    """The result of a dry run: the items that a write by pattern would touch, and its cost.

    ``count`` items match. ``sample`` has the identities of the first items. ``write_units`` is
    computed from the stored items, with their indexes and guards. ``read_units`` is the cost of
    reading the items, which the real run pays again. ``dollars`` is the price of the real run, at
    the on-demand prices of us-east-1. ``cursor`` is None unless a ``limit`` ended the dry run.
    """

    count: int
    sample: tuple[Mapping[str, Any], ...]
    read_units: float
    write_units: int
    cursor: str | None = None

    def _repr_html_(self) -> str:
        """Return the first items for a notebook, below the count and the price."""
        names = list(dict.fromkeys(name for each in self.sample for name in each))
        return html_table(
            f"{self.count:,} items, such as these: {self.read_units:g} RCU, "
            f"{self.write_units:,} WCU, ${self.dollars:,.4f}",
            names,
            ([each.get(name) for name in names] for each in self.sample),
        )

    @property
    def dollars(self) -> Decimal:
        """The price of the call, on demand, in us-east-1."""
        return self.dollars_in("us-east-1")

    def dollars_in(self, region: str) -> Decimal:
        """Return the price of the run in a region, on demand."""
        known = prices(region)
        return (
            Decimal(str(self.read_units)) * known["read_request_unit"]
            + self.write_units * known["write_request_unit"]
        )


@dataclass(frozen=True, slots=True)
class PatternWriteOptions:
    """Options of a write by pattern.

    ``parallel`` is the number of items written at once. The run ends after ``max_failures``.
    ``on_progress`` receives the result so far after each window of items.
    """

    cursor: str | None = None
    limit: int | None = None
    parallel: int = 16
    max_failures: int = 100
    include_expired: bool = False
    on_progress: Callable[[PatternWriteResult], None] | None = None

    def check(self) -> None:
        check_limit(self.limit)
        for name in ("parallel", "max_failures"):
            if getattr(self, name) < 1:
                raise RequestRefused(
                    f"{name}={getattr(self, name)} must be 1 or more", hint="leave it out"
                )


@dataclass(frozen=True, slots=True)
class FoundItem:
    """An item that a pattern found.

    ``entity`` has the item's fields as attributes. For an entity with ``large()`` fields, it is a
    stand-in and not an instance of the class, because the large values are not loaded.
    """

    of: EntityMap
    item: Item
    entity: Any

    @property
    def identity(self) -> dict[str, Any]:
        return {name: getattr(self.entity, name) for name in self.of.identity}

    @property
    def key(self) -> tuple[str, Any]:
        return self.of.table.name, self.of.key_values(self.item)


# --- the two kinds of write -----------------------------------------------------------------------


class PatternDelete:
    """Deletes items one by one."""

    name = "delete_where"
    moving: frozenset[str] = frozenset()

    def __init__(self, context: Context, query: Question, *, keep_blobs: bool) -> None:
        check_declared(query)
        check_whole(query)
        self.query = query
        self._keep_blobs = keep_blobs
        self._planner = WritePlanner(context)

    def label(self, of: EntityMap) -> str:
        return f"delete {of.name}"

    def statements(self, found: FoundItem) -> Work[list[Statement]]:
        of = found.of
        return self._planner.delete(
            of,
            _values(found),
            entity=found.entity,
            when=_if_there(of, bound_condition(self.query, of)),
            keep_blobs=self._keep_blobs,
        )

    def after(self, found: FoundItem, now: float) -> tuple[Item | None, frozenset[str]]:
        return None, frozenset()


class PatternUpdate:
    """Applies one recorded change to items."""

    name = "update_where"

    def __init__(self, context: Context, query: Question, change: Callable[[Any], None]) -> None:
        check_declared(query)
        check_whole(query)
        if len(query.ask.targets) != 1:
            raise RequestRefused(
                f"the pattern finds items of {len(query.ask.targets)} entities, and update_where "
                "takes a pattern over one entity",
                hint="write one pattern for each entity, and call update_where for each",
            )
        self.query = query
        self._change = change
        self._planner = WritePlanner(context)
        self.of = context.schema.of(query.ask.targets[0])
        recording = self.recorded()
        if not recording.actions:
            raise RequestRefused(
                f"the change of update_where changes nothing in {self.of.name}",
                hint="assign to fields of its argument: def change(order): order.status = 'closed'",
            )
        refuse_fixed(self.of, recording)
        self.recording = recording
        stamps = {self.of.updated} if self.of.updated is not None else set()
        self.moving = frozenset(recording.fields | stamps)

    def recorded(self) -> Recording:
        recording = Recording(self.of)
        self._change(Recorder(recording))
        return recording

    def label(self, of: EntityMap) -> str:
        return f"update {of.name}"

    def statements(self, found: FoundItem) -> Work[list[Statement]]:
        condition = bound_condition(self.query, found.of)
        return self._planner.update(
            found.of,
            self.recorded(),
            _values(found),
            entity=found.entity,
            when=[] if condition is None else [condition],
        )

    def after(self, found: FoundItem, now: float) -> tuple[Item | None, frozenset[str]]:
        """Return the item after the update, and the names of attributes that DynamoDB computes.

        The computed attributes still have their old values in the returned item.
        """
        of, known = found.of, self.recording.known()
        if of.updated is not None:
            known[of.updated] = datetime.fromtimestamp(now, UTC)
        after = dict(found.item)
        for name, value in known.items():
            if value is None:
                after.pop(name, None)
            else:
                after[name] = of.codec.encode_field[name](value)
        values = {name: getattr(found.entity, name, None) for name in of.fields} | known
        for key in of.plan.keys:
            if key.index is not None and fields_of(key) & known.keys():
                new, old = of.key_value(key, values), after.pop(key.name, None)
                if new is not None and old is not None and of.is_same_value(key.name, new, old):
                    new = old
                if new is not None:
                    after[key.name] = new
        stamps = {name for name in (of.version, of.write_token) if name is not None}
        return after, frozenset((self.recording.fields - known.keys()) | stamps)

    def may_match_again(self) -> bool:
        """Whether an updated item may still meet the pattern's equality conditions."""
        known = self.recording.known()
        for test in self.query.ask.tests:
            if test.operator in ("=", "in") and test.field.name in known:
                options = [_argument(value, self.query.arguments) for value in test.values]
                if known[test.field.name] not in options:
                    return False
        return True


def _values(found: FoundItem) -> dict[str, Any]:
    names = {*found.of.identity, *found.of.base_fields}
    return {name: getattr(found.entity, name) for name in names}


# --- the pattern's conditions ---------------------------------------------------------------------


def bound_condition(query: Question, of: EntityMap) -> Condition | None:
    """Return the pattern's conditions on one entity, with the call's arguments filled in.

    A pattern over several entities may compare a field of one entity only. An equality condition
    then applies to fields of the same name in the others. Returns None if there is no condition.
    """
    found: list[Condition] = []
    for test in query.ask.tests:
        if issubclass(of.cls, test.field.owner):
            found.append(test)
        elif test.operator in ("=", "part") and test.field.name in of.fields:
            found.append(replace(test, field=FieldRef(of.cls, test.field.path)))
    found += [
        each
        for each in query.ask.filters
        if all(issubclass(of.cls, one.owner) for one in references(each))
    ]
    if not found:
        return None
    return All(tuple(_bound(each, query.arguments) for each in found))


def _bound(condition: Condition, arguments: Mapping[str, Any]) -> Condition:
    match condition:
        case PartComparison(values=values):
            return replace(condition, values=tuple(_argument(each, arguments) for each in values))
        case Comparison(of, operator, values):
            return Comparison(of, operator, tuple(_argument(each, arguments) for each in values))
        case All(operands):
            return All(tuple(_bound(each, arguments) for each in operands))
        case Any_(operands):
            return Any_(tuple(_bound(each, arguments) for each in operands))
        case Inverse(operand):
            return Inverse(_bound(operand, arguments))
    raise AssertionError(condition)


def _argument(value: Any, arguments: Mapping[str, Any]) -> Any:
    return arguments[value.name] if isinstance(value, Param) else value


def _if_there(of: EntityMap, condition: Condition | None) -> Condition | None:
    """Return a condition that holds if there is no item, or if ``condition`` holds for the item.

    A delete that succeeded and is sent again after a lost answer then succeeds again.
    """
    if condition is None:
        return None
    return Any_((Comparison(FieldRef(of.cls, (of.identity[0],)), "not_exists", ()), condition))


# --- reading --------------------------------------------------------------------------------------


class _FoundItems(PatternRead):
    """Reads the items of a pattern as ``FoundItem`` objects, for one kind of write."""

    def __init__(
        self,
        context: Context,
        kind: PatternDelete | PatternUpdate,
        options: PatternWriteOptions,
    ) -> None:
        self._kind = kind
        super().__init__(
            context, kind.query, ReadOptions(None, options.include_expired), options.cursor
        )
        if options.limit is not None:
            self.refuse_part(f"limit={options.limit}")

    def _shown_arguments(self) -> dict[str, str]:
        """Return the arguments as text, with the kind of write and the indexes read backward.

        A cursor is therefore valid only for the same kind of write in the same direction.
        """
        backwards = [stream.step.index or "" for stream in self._routes_backwards()]
        return super()._shown_arguments() | {"#": f"{self._kind.name} {backwards}"}

    def _routes_backwards(self) -> list[StepRoute]:
        return [
            route
            for route in self.context.schema.routes(self.plan)
            if self._forward(route) is False
        ]

    def _consistent(self, route: StepRoute, request: dict[str, Any]) -> dict[str, Any]:
        request = super()._consistent(route, request)
        forward = self._forward(route)
        if forward is not None:
            request["ScanIndexForward"] = forward
        return request

    def _forward(self, route: StepRoute) -> bool | None:
        """Return the read direction in which updated items move behind the reader.

        True is forward, False is backward. None leaves the pattern's own direction: no
        ``updated()`` field is in the sort key, or the pattern has a limit. With a limit, the
        direction decides which items are found, so it must not change.
        """
        if not self._kind.moving or self.plan.steps[0].limit or self.plan.steps[0].limit_param:
            return None
        for name in route.step.entities:
            of = self.context.schema.named(name)
            for key in of.plan.keys:
                if key.index != route.step.index or key.name not in route.sort:
                    continue
                for part in key.template.parts:
                    if part.kind == "field" and part.value == of.updated:
                        return part.inverted
        return None

    def moving_fields(self) -> set[str]:
        """Return the fields that the write changes and that the pattern's index key contains."""
        schema = self.context.schema
        return {
            field
            for route in schema.routes(self.plan)
            if route.step.index is not None
            for name in route.step.entities
            for key in schema.named(name).plan.keys
            if key.index == route.step.index
            for field in fields_of(key) & self._kind.moving
        }

    def _entities(self, step: Step, items: list[Item]) -> Work[list[Any]]:
        yield from ()
        live = self.live_items(step, items)
        return [FoundItem(of, item, _as_read(of, item)) for of, item in live]


def _as_read(of: EntityMap, item: Item) -> Any:
    if not of.large:
        return of.as_stored(item)  # without hooks: conditions compare stored values
    values, item = {}, of.current(item)
    for name in of.fields:
        if name in of.large:
            continue
        if name in item:
            values[name] = of.codec.decode_field[name](item[name])
        else:
            default = of.info.default_maker(name)
            values[name] = None if default is None else default()
    return SimpleNamespace(**values)


# --- the run --------------------------------------------------------------------------------------


class PatternWrite:
    """One call of ``delete_where`` or ``update_where``."""

    def __init__(
        self, context: Context, kind: PatternDelete | PatternUpdate, options: PatternWriteOptions
    ) -> None:
        options.check()
        self.context = context
        self.kind = kind
        self.options = options
        self._read = _FoundItems(context, kind, options)
        self._seen: set[tuple[str, Any]] | None = None
        moving = self._read.moving_fields()
        if moving:
            self._seen = set()
            self._refuse_repetition(moving)

    def _refuse_repetition(self, moving: set[str]) -> None:
        kind, options = self.kind, self.options
        if (
            isinstance(kind, PatternUpdate)
            and moving & kind.recording.fields
            and kind.recording.relative
            and kind.may_match_again()
            and (options.limit is not None or options.cursor is not None)
        ):
            raise RequestRefused(
                f"{self._read.plan.name} may find an item again after this update, and a later "
                "call would apply the relative change twice",
                hint="leave out limit= and cursor=, or set values instead of adding to them",
            )

    def run(self) -> Work[PatternWriteResult]:
        result, read, options = PatternWriteResult(), self._read, self.options
        yield from read.open()
        while (position := read.cursor()) is not None:
            result.cursor = position
            window = yield from self._window(result.found)
            done = yield from self._written(window)
            result.add(done)
            if len(result.failures) >= options.max_failures:
                return result  # a later call reads this window again
            result.cursor = read.cursor()
            if options.on_progress is not None:
                options.on_progress(replace(result, failures=list(result.failures)))
            if result.found == options.limit:
                break
        else:
            result.cursor = None
        return result

    def preview(self) -> Work[PatternWritePreview]:
        """Read what the pattern finds, and write nothing."""
        read, options = self._read, self.options
        consumed: list[float] = []
        count = units = 0
        sample: list[Mapping[str, Any]] = []
        place, now = self.context.schema.place, self.context.now()
        yield from read.open()
        while read.cursor() is not None and count != options.limit:
            for found in (yield from _measured(self._window(count), consumed)):
                count += 1
                if len(sample) < _SAMPLE:
                    sample.append(found.identity)
                after, computed = self.kind.after(found, now)
                units += units_of_write(
                    found.of, found.item, after, place=place, now=now, computed=computed
                )
        return PatternWritePreview(count, tuple(sample), sum(consumed), units, read.cursor())

    def _window(self, found_before: int) -> Work[list[FoundItem]]:
        """Read the next items, and leave out items that this call has already written."""
        read, limit = self._read, self.options.limit
        want = max(_WINDOW_ITEMS, 4 * self.options.parallel)
        if limit is not None:
            want = min(want, limit - found_before)
        if read.limit is not None:
            want = min(want, read.limit - read.returned)
        found: list[FoundItem] = yield from read.page(want)
        read.returned += len(found)
        if self._seen is None:
            return found
        fresh = {each.key: each for each in found if each.key not in self._seen}
        self._seen |= fresh.keys()
        return list(fresh.values())

    # -- writing

    def _written(self, window: list[FoundItem]) -> Work[PatternWriteResult]:
        queue = deque(window)
        lanes = [self._lane(queue) for _ in range(min(self.options.parallel, len(window)))]
        result = PatternWriteResult(found=len(window))
        for part in gathered((yield Gather(lanes))):
            result.add(part)
        return result

    def _lane(self, queue: deque[FoundItem]) -> Work[PatternWriteResult]:
        """Write items of the queue, one after the other, until it is empty."""
        result = PatternWriteResult()
        while True:
            try:
                found = queue.popleft()
            except IndexError:
                return result
            try:
                is_there = yield from self._attempts(found)
            except ItemNotFound:
                result.gone += 1
            except ConditionFailed as failed:
                if isinstance(failed, UniqueTaken):
                    result.failures.append(FailedItem(found.of.cls, found.identity, failed))
                elif failed.item:
                    result.changed += 1
                else:
                    result.gone += 1
            except StatorError as error:
                result.failures.append(FailedItem(found.of.cls, found.identity, error))
            else:
                result.written += is_there
                result.gone += not is_there

    def _attempts(self, found: FoundItem) -> Work[bool]:
        """Write one item, and retry after throttling. Return False if a delete found no item.

        A delete is also repeated after a lost answer. If the repeated delete finds no item, or an
        item that is marked as deleted, the first attempt is assumed to have deleted it.
        """
        may_be_done = False
        for attempt in range(_ATTEMPTS):
            try:
                return (yield from self._one(found)) or may_be_done
            except ConnectionTrouble as error:
                may_be_done = may_be_done or error.sent
                may_pass = error.retryable or isinstance(error, OutcomeUnknown)
                if not may_pass or isinstance(self.kind, PatternUpdate) or attempt + 1 == _ATTEMPTS:
                    raise  # a delete can be repeated; the next answer says whether it was done
            except ConditionFailed as failed:
                stored = failed.item
                if may_be_done and (not stored or found.of.is_gone(stored, self.context.now())):
                    return True
                raise
            except ServiceError as error:
                may_be_done = may_be_done or error.sent
                if not error.retryable or attempt + 1 == _ATTEMPTS:
                    raise
            yield Pause(self.context.backoff(attempt, _BACKOFF))
        raise AssertionError("the last attempt returns or raises")

    def _one(self, found: FoundItem) -> Work[bool]:
        is_delete = isinstance(self.kind, PatternDelete)

        def read(statements: list[Statement], item: Item | None) -> Work[bool]:
            yield from ()
            return bool(item) or any(each.old for each in statements[:1]) or not is_delete

        is_there: bool = yield from write(
            self.context,
            partial(self.kind.statements, found),
            self.kind.label(found.of),
            returns="old" if is_delete else None,
            read=read,
        )
        return is_there


def _measured(work: Work[Any], consumed: list[float]) -> Work[Any]:
    """Run work, and add the capacity that its calls consume to ``consumed``."""
    try:
        effect = next(work)
        while True:
            calls = [effect] if isinstance(effect, Call) else getattr(effect, "parts", ())
            for call in calls:
                if isinstance(call, Call) and call.operation in MEASURED:
                    call.request["ReturnConsumedCapacity"] = "TOTAL"
            try:
                answer = yield effect
            except StatorError as error:
                effect = work.throw(error)
                continue
            replies = answer if isinstance(effect, Gather) else [answer]
            consumed += [units_of(reply) for reply in replies if isinstance(reply, dict)]
            effect = work.send(answer)
    except StopIteration as done:
        return done.value
