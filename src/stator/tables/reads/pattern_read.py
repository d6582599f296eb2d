"""Reads by declared pattern: everything, page by page with cursors, the first item, or a count."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stator.design.entities.shapes import type_name
from stator.design.entities.wire import REQUIRED, absent_value
from stator.design.patterns.explanation import Explanation, explain_call
from stator.design.patterns.pattern import Pattern
from stator.design.patterns.query import Question
from stator.design.plan.plan import IndexPlan, PatternPlan, Step
from stator.design.plan.projection import projected
from stator.design.plan.templates import wire_value
from stator.errors import CursorRefused, ItemMismatch, RequestRefused
from stator.model.values import Item
from stator.tables.blobs.blobs import unpacked
from stator.tables.context import Context
from stator.tables.reads.adaptive_spread import AdaptiveSpread
from stator.tables.reads.cursors import Position, make_cursor, read_cursor
from stator.tables.reads.item_list import ItemList, items_table
from stator.tables.reads.items import batch_get, decoded, key_text
from stator.tables.reads.page_stream import PageStream, in_order
from stator.tables.schema.entity_map import EntityMap
from stator.tables.schema.schema import StepRoute
from stator.tables.work import Call, Gather, Work, gathered

E = TypeVar("E")
_MERGE_PAGE = 100


@dataclass(frozen=True, slots=True)
class Page(Generic[E]):
    """Some of the items a pattern finds, in the pattern's order.

    ``cursor`` leads to the next page, and is None on the last page. ``previous`` leads to the page
    before, and is None on the first page. A pattern that scans has no ``previous``, because
    DynamoDB cannot scan backward.
    """

    items: list[E]
    cursor: str | None
    previous: str | None = None

    def __iter__(self) -> Iterator[E]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def _repr_html_(self) -> str:
        """Return a table of the items for a notebook: one row each, one column for each field."""
        more = "more follow" if self.cursor is not None else "the last page"
        return items_table("Page: ", self.items, f"; {more}")


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """Options of a read. ``consistent=None`` leaves the choice to the pattern."""

    consistent: bool | None = None
    include_expired: bool = False
    include_deleted: bool = False


def check_declared(query: Any) -> None:
    """Raise RequestRefused unless ``query`` is the result of calling a declared pattern."""
    if isinstance(query, Pattern):
        raise RequestRefused(
            f"the pattern {query.name} was passed without being called",
            hint=f"call it with its arguments: {query.name}(...)",
        )
    if not isinstance(query, Question) or query.pattern is None:
        raise RequestRefused(
            "this query is not part of a declared pattern, and only declared patterns can be run",
            hint="put it into a function decorated with @read and add that to the design; "
            "db.scan() reads everything",
        )


class PatternRead:
    """One call of a pattern, read from the start or from a cursor.

    ``returned`` counts the items before the position, because a pattern may have its own ``limit``.
    A ``backward`` cursor reverses everything: each request, the merge, and the order of the steps.
    """

    def __init__(
        self, context: Context, query: Question, options: ReadOptions, cursor: str | None = None
    ) -> None:
        check_declared(query)
        assert query.pattern is not None
        self.context = context
        self.options = options
        self.plan: PatternPlan = context.schema.pattern(query.pattern.name)
        self.arguments = query.arguments
        self.only = query.ask.only
        self._hidden = context.schema.hidden(query.ask)
        self.limit: int | None = self._declared_limit()
        self.returned = 0
        self.backward = False
        self._spread = AdaptiveSpread.of(context, self.plan, self.arguments)
        self._given = cursor
        self.streams: list[PageStream] = []
        self._is_open = False
        if self._spread is None:
            self._start()

    def _start(self) -> None:
        self._is_open = True
        self.streams = self._streams(self._given)
        self._walk = self.streams[::-1] if self.backward else self.streams

    def open(self) -> Work[None]:
        """Read how many shards an adaptive key value has, if the pattern reads one.

        Every method that reads calls this first. It does nothing the second time.
        """
        if not self._is_open and self._spread is not None:
            yield from self._spread.read(self.plan.name)
            self._start()

    def _declared_limit(self) -> int | None:
        """Return the limit that the pattern declares, or None.

        The limit is that of the first step with a limit. A step that reads a single item has none.
        """
        for step in self.plan.steps:
            if step.limit_param is not None:
                given: int = self.arguments[step.limit_param]
                return given
            if step.limit is not None:
                return step.limit
        return None

    def _streams(self, cursor: str | None) -> list[PageStream]:
        requests = [
            (route, self._projected(route, request))
            for route in self.context.schema.routes(self.plan)
            for request in route.step.requests(
                self.arguments,
                limited=False,
                spread=None if self._spread is None else self._spread.numbers,
            )
        ]
        if cursor is None:
            positions: list[Position] = ["start"] * len(requests)
        else:
            positions, self.returned, self.backward = read_cursor(
                cursor, self.plan.name, self._shown_arguments(), self.context.cursor_key
            )
            if self._spread is not None:
                positions = self._spread.positions(positions, requests, self.backward)
            if len(positions) != len(requests):
                raise CursorRefused(
                    f"the cursor belongs to an earlier plan of {self.plan.name}",
                    hint="start again without a cursor",
                )
        return [
            PageStream(
                route,
                self._directed(route, self._consistent(route, request)),
                self.plan.name,
                position,
                backward=self.backward,
            )
            for (route, request), position in zip(requests, positions)
        ]

    def _directed(self, route: StepRoute, request: dict[str, Any]) -> dict[str, Any]:
        if self.backward and route.step.operation == "Query":
            request["ScanIndexForward"] = not route.step.forward
        return request

    def _projected(self, route: StepRoute, request: dict[str, Any]) -> dict[str, Any]:
        if not self.only:
            return request
        # A deleted item is recognised by its soft_delete() field.
        fields = (*self.only, *sorted(self._hidden))
        return projected(self.context.schema.plan, route.step, request, fields)

    def _consistent(self, route: StepRoute, request: dict[str, Any]) -> dict[str, Any]:
        consistent = self.options.consistent
        if consistent is None:
            return request
        if consistent and route.index is not None and route.index.kind == "GSI":
            raise RequestRefused(
                f"{self.plan.name} reads {route.index.name}, a global index, "
                "which is never strongly consistent",
                hint="declare the pattern with @read(consistent=True), so that the planner finds "
                "another way, or leave consistent=True out",
            )
        request.pop("ConsistentRead", None)
        if consistent:
            request["ConsistentRead"] = True
        return request

    def _shown_arguments(self) -> dict[str, str]:
        """Return the arguments as text. A cursor is valid only for the same arguments."""
        return {name: repr(value) for name, value in self.arguments.items()}

    def cursor(self) -> str | None:
        """Return the cursor of the next page of a forward read, or None at the end."""
        assert self._is_open, "the caller has opened the read"
        return self._forward_cursor([stream.position for stream in self.streams], self.returned)

    def _forward_cursor(self, positions: list[Position], returned: int) -> str | None:
        if all(position == "end" for position in positions) or returned == self.limit:
            return None
        return self._cursor(positions, returned, backward=False)

    def _backward_cursor(self, positions: list[Position], returned: int) -> str | None:
        if all(position == "start" for position in positions) or not self._is_reversible:
            return None
        return self._cursor(positions, returned, backward=True)

    def _cursor(self, positions: list[Position], returned: int, *, backward: bool) -> str:
        if self._spread is not None:
            positions = self._spread.with_frontier(positions, self.streams, backward=backward)
        return make_cursor(
            positions,
            self.plan.name,
            self._shown_arguments(),
            self.context.cursor_key,
            returned,
            backward=backward,
        )

    @property
    def _is_reversible(self) -> bool:
        """Whether the pattern can be read backward. DynamoDB has no backward Scan."""
        return all(step.operation != "Scan" for step in self.plan.steps)

    @property
    def is_done(self) -> bool:
        return self._is_open and all(stream.is_done for stream in self.streams)

    def refuse_part(self, what: str) -> None:
        """Raise RequestRefused if the pattern is sorted in memory.

        ``what`` names a call or option that reads only a part of the result, such as ``page()``. A
        sort in memory needs the whole result.
        """
        if self.plan.in_memory:
            raise RequestRefused(
                f"{what} reads only a part of {self.plan.name}, which is planned to be sorted in "
                "memory: the sort needs the whole result",
                hint="read it with db.all(...), or declare @read(paged=True) or .limit(...) and "
                "plan again, so that a key holds the order",
            )

    # -- items

    def one_page(self, limit: int) -> Work[Page[Any]]:
        """Read a page in the direction of the cursor, and return it in the pattern's order."""
        yield from self.open()
        most = limit
        if self.limit is not None:
            most = min(limit, self.limit if self.backward else self.limit - self.returned)
        items = yield from self.page(most)
        near: list[Position] = [stream.turning_point for stream in self.streams]
        far: list[Position] = [stream.position for stream in self.streams]
        before, after = self._counts(len(items), far)
        if self.backward:
            items.reverse()
            near, far = far, near
        return Page(items, self._forward_cursor(far, after), self._backward_cursor(near, before))

    def _counts(self, found: int, far: list[Position]) -> tuple[int, int]:
        """Return how many items come before this page, and how many up to its end.

        ``found`` is the number of items on the page, ``far`` the positions where the read stopped.
        After a backward read, the numbers are estimates if items were inserted or deleted
        meanwhile. The numbers of the first page are always exact.
        """
        if not self.backward:
            return self.returned, self.returned + found
        if all(position == "start" for position in far):
            return 0, found
        return max(self.returned - found, 0), max(self.returned, found)

    def page(self, limit: int | None) -> Work[list[Any]]:
        """Read up to ``limit`` entities, or one DynamoDB page if there is no limit.

        A backward read returns the last entity first.
        """
        if self.plan.steps[0].is_count:
            raise RequestRefused(
                f"{self.plan.name} counts items and returns none",
                hint=f"call db.count({self.plan.name}(...))",
            )
        found: list[Any] = []
        yield from self.open()
        yield from self._start_steps(limit)
        while limit is None or len(found) < limit:
            live = [stream for stream in self._walk if not stream.is_done]
            if not live:
                break
            want = None if limit is None else limit - len(found)
            group = [stream for stream in live if stream.step is live[0].step]
            step = group[0].step
            if step.fetched_filter is not None:
                items = yield from self._passing(group, want)
            else:
                items = [item for _, item in (yield from self._taken(group, want, want))]
                items = yield from self._whole_items(step, items)
            if items:
                found += yield from self._entities(step, items)
            if limit is None and found:
                break
        return found

    def _taken(
        self, group: list[PageStream], want: int | None, most: int | None
    ) -> Work[list[tuple[PageStream, Item]]]:
        """Read until there are items, and take up to ``most``, paired with their streams.

        ``group`` holds the streams of one step. ``want`` is the number of items to ask DynamoDB
        for. None means a whole DynamoDB page for ``want``, and no limit for ``most``.
        """
        if len(group) == 1:
            [stream] = group
            yield from stream.fill(want)
            return [(stream, item) for item in stream.take_some(most)]
        return (yield from self._merge(group, want, most))

    def _passing(self, group: list[PageStream], want: int | None) -> Work[list[Item]]:
        """Take up to ``want`` items that pass the step's fetched filter.

        The index entries lack the filtered fields. So the items of a page of entries are fetched
        from the table, and filtered here. Entries after the last wanted item go back to their
        streams, which keeps the cursor exact.
        """
        step, before = group[0].step, {id(stream): stream.last for stream in group}
        most = None if want is None else group[0].page_items(want)
        taken = yield from self._taken(group, want, most)
        found = yield from self._whole_items(step, [item for _, item in taken])
        if want is None or len(found) <= want:
            return found
        last = key_text(step.fetched_key(found[want - 1]))
        keys = [key_text(step.fetched_key(item)) for _, item in taken]
        kept = keys.index(last) + 1
        for stream in group:
            own = [item for each, item in taken[:kept] if each is stream]
            rest = [item for each, item in taken[kept:] if each is stream]
            stream.put_back(rest, own[-1] if own else before[id(stream)])
        return found[:want]

    def _start_steps(self, want: int | None) -> Work[None]:
        """Send the first requests of all steps at once, if there are several and none has begun."""
        fresh = [stream for stream in self.streams if stream.is_fresh]
        if len(self.plan.steps) == 1 or len(fresh) < len(self.streams):
            return
        replies = gathered((yield Gather([stream.next_call(want) for stream in fresh])))
        for stream, reply in zip(fresh, replies):
            stream.receive(reply)

    def _merge(
        self, streams: list[PageStream], want: int | None, most: int | None
    ) -> Work[list[tuple[PageStream, Item]]]:
        """Take the next items of several requests, merged in the direction of the read.

        Returns up to ``most`` items, or up to ``_MERGE_PAGE`` without ``most``.
        """
        limit = most or _MERGE_PAGE
        choose = min if streams[0].step.forward is not self.backward else max
        taken: list[tuple[PageStream, Item]] = []
        while len(taken) < limit:
            dry = [stream for stream in streams if not stream.is_buffered and not stream.is_done]
            while dry:
                replies = gathered((yield Gather([stream.next_call(want) for stream in dry])))
                for stream, reply in zip(dry, replies):
                    stream.receive(reply)
                dry = [stream for stream in dry if not stream.is_buffered and not stream.is_done]
            heads = [stream for stream in streams if stream.is_buffered]
            if not heads:
                break
            first = choose(heads, key=lambda stream: stream.order(stream.peek()))
            taken.append((first, first.take()))
        return taken

    def _entities(self, step: Step, items: list[Item]) -> Work[list[Any]]:
        """Decode whole items, except those that ``live_items`` leaves out."""
        live = yield from self._whole_old_items(step, self.live_items(step, items))
        return (yield from self._objects(live))

    def sorted_entities(self) -> Work[list[Any]]:
        """Read the whole result and sort it in memory, however many items there are."""
        live: list[tuple[EntityMap, Item]] = []
        yield from self.open()
        for stream in self.streams:
            while not stream.is_done:
                yield from stream.fill(None)
                items = yield from self._whole_items(stream.step, stream.take_some(None))
                found = self.live_items(stream.step, items)
                live += yield from self._whole_old_items(stream.step, found)
        step = self.plan.steps[0]
        live.sort(key=lambda each: in_order(each[1], step))
        return (yield from self._objects(live))

    def _objects(self, live: list[tuple[EntityMap, Item]]) -> Work[list[Any]]:
        found: list[Any] = []
        for of, item in live:
            if self.only:
                item = of.current_item(item)
                [whole] = yield from unpacked(of, [item], self.context.blobs)
                found.append(tuple(_field(of, name, whole) for name in self.only))
            elif of.large:
                found += yield from decoded(self.context, of, [item])
            else:
                found.append(of.decode(item))
        return found

    def _whole_old_items(
        self, step: Step, live: list[tuple[EntityMap, Item]]
    ) -> Work[list[tuple[EntityMap, Item]]]:
        """Fetch the whole items of an earlier entity version, if the step read some fields only.

        Upcasts need all fields of an item. Items that are gone by now are left out.
        """
        if not self.only or step.fetch:
            return live
        old = {
            key_text(key): key
            for key in (of.stored_key(item) for of, item in live if of.is_old(item))
        }
        if not old:
            return live
        consistent = bool(self.options.consistent or step.consistent)
        fetched = yield from batch_get(
            self.context, step.table, list(old.values()), self.plan.name, consistent
        )
        whole = {
            key_text(of.stored_key(item)): (of, item) for of, item in self.live_items(step, fetched)
        }
        found: list[tuple[EntityMap, Item]] = []
        for of, item in live:
            if not of.is_old(item):
                found.append((of, item))
            elif (pair := whole.get(key_text(of.stored_key(item)))) is not None:
                found.append(pair)
        return found

    def live_items(self, step: Step, items: list[Item]) -> list[tuple[EntityMap, Item]]:
        """Return the items that a step has read, each with its entity: ``[(entity, item)]``.

        Items of entities that the step does not ask for are left out, and so are the expired and
        deleted items that the read hides.
        """
        schema, now = self.context.schema, self.context.now()
        found: list[tuple[EntityMap, Item]] = []
        for item in items:
            of = schema.of_item(item, step.table, step.entities)
            if of is None or of.name not in step.entities:
                continue
            if of.ttl is not None and not self.options.include_expired and of.is_expired(item, now):
                continue
            if of.is_tombstone(item) or (of.deleted in self._hidden and of.is_deleted(item)):
                continue
            found.append((of, item))
        return found

    def _whole_items(self, step: Step, items: list[Item]) -> Work[list[Item]]:
        """Return the whole items of what a step has read, in the same order.

        If the step read guards, or index entries without all fields, the items are fetched from
        the table. Fetched items that fail the step's fetched filter are left out.
        """
        if not step.fetch or not items:
            return items
        # An item whose index key changes between two requests is in both answers.
        keys = {key_text(key): key for item in items if (key := step.fetched_key(item))}
        consistent = self.options.consistent
        found = yield from batch_get(
            self.context,
            step.table,
            list(keys.values()),
            self.plan.name,
            step.consistent and step.guard is not None if consistent is None else consistent,
        )
        if step.guard is not None:
            found = [item for item in found if self._has_value(step, item)]
        by_key = {key_text({name: item[name] for name in step.fetch}): item for item in found}
        whole = [by_key[text] for text in keys if text in by_key]
        if step.fetched_filter is None:
            return whole
        passes = step.fetched_filter.condition(self.arguments)
        return [item for item in whole if passes(item)]

    def _has_value(self, step: Step, item: Item) -> bool:
        """Whether an item still has the unique value that its guard was looked up by."""
        assert step.guard is not None
        part = step.key[0].bounds[0].parts[-1]
        wanted = wire_value(part.encoding, self.arguments[part.value], part.value)
        return bool(item.get(step.guard.field) == wanted)

    # -- numbers

    def count(self) -> Work[int]:
        """Count the items.

        Usually DynamoDB counts them (``Select="COUNT"``). The items are read and counted here if
        only their keys tell apart the entities that a query finds, or if a filter needs whole
        items.
        """
        if self.only:  # DynamoDB refuses to project what it only counts
            self.only = ()
            self.streams = self._streams(None)
        total = 0
        yield from self.open()
        for stream in self.streams:
            while not stream.is_done:
                call = stream.next_call(None)
                if stream.step.operation == "GetItem":
                    stream.receive((yield call))
                    items = stream.take_some(None)
                    items = yield from self._whole_items(stream.step, items)
                    total += len((yield from self._entities(stream.step, items)))
                    break
                if self._are_told_by_keys(stream.step) or stream.step.fetched_filter is not None:
                    call.request.pop("Select", None)
                    reply = yield call
                    items = yield from self._whole_items(stream.step, reply["Items"])
                    total += len(self.live_items(stream.step, items))
                else:
                    call.request["Select"] = "COUNT"
                    self._exclude_expired(stream.route, call)
                    reply = yield call
                    total += reply["Count"]
                stream.receive({"LastEvaluatedKey": reply.get("LastEvaluatedKey")})
        return total if self.limit is None else min(total, self.limit)

    def _are_told_by_keys(self, step: Step) -> bool:
        """Whether a step may find items of other entities that only their keys tell apart."""
        schema = self.context.schema
        return any(schema.named(name).told_by_key is not None for name in step.entities)

    def _exclude_expired(self, route: StepRoute, call: Call) -> None:
        """Add a filter to a count, so that it leaves out expired and deleted items.

        An index that lacks the expiry time, as earlier versions planned it, leaves expired items in
        the count. Raises RequestRefused
        if the index does not show which items are deleted.
        """
        schema = self.context.schema
        request = call.request
        entities = [schema.named(name) for name in route.step.entities]
        for at, name in enumerate(
            sorted({each.deleted for each in entities if each.deleted} & self._hidden)
        ):
            if not _is_projected(route.index, name):
                raise RequestRefused(
                    f"{self.plan.name} cannot count: the index {route.step.index} does not show "
                    "which items are deleted",
                    hint="plan the design again with `stator plan --write`, and run db.ensure()",
                )
            request["ExpressionAttributeNames"] = request.get("ExpressionAttributeNames", {}) | {
                f"#d{at}": name
            }
            _add_filter(request, f"attribute_not_exists(#d{at})")
        if self.options.include_expired:
            return
        found = {schema.named(name).ttl for name in route.step.entities}
        ttls = [ttl for ttl in found if ttl is not None and _is_projected(route.index, ttl)]
        for at, ttl in enumerate(sorted(ttls)):
            request["ExpressionAttributeNames"] = request.get("ExpressionAttributeNames", {}) | {
                f"#e{at}": ttl
            }
            request["ExpressionAttributeValues"] = request.get("ExpressionAttributeValues", {}) | {
                ":now": {"N": str(int(self.context.now()))}
            }
            _add_filter(request, f"(attribute_not_exists(#e{at}) OR #e{at} > :now)")


def _add_filter(request: dict[str, Any], term: str) -> None:
    """Add a term to a filter, which is one term or several that AND joins."""
    known = request.get("FilterExpression")
    request["FilterExpression"] = term if known is None else f"{known} AND {term}"


def _field(of: EntityMap, name: str, item: Item) -> Any:
    """Return the value of one field of an item.

    A missing attribute gives the field's default. Raises ItemMismatch if there is no default, or if
    the stored value does not fit the field.
    """
    if name in item:
        try:
            return of.codec.decode_field[name](item[name])
        except (KeyError, TypeError, ValueError, ArithmeticError):
            wanted = f"expected {type_name(of.fields[name].shape)}"
            raise ItemMismatch(of.name, name, wanted, item[name]) from None
    default = of.info.default_maker(name) or absent_value(of.fields[name].shape)
    if default is REQUIRED:
        raise ItemMismatch(of.name, name, "the item has no such attribute", sorted(item))
    return default()


def check_whole(query: Question) -> None:
    """Raise RequestRefused if a query has ``.only(...)``, for callers that need whole items."""
    if query.ask.only:
        raise RequestRefused(
            f"this call needs whole items, and the query returns only {', '.join(query.ask.only)}",
            hint="leave out .only(...)",
        )


def _is_projected(index: IndexPlan | None, attribute: str) -> bool:
    if index is None or index.projection == "ALL":
        return True
    return attribute in (*index.included, *index.partition, *index.sort)


class PatternFetch:
    """The pages of ``db.fetch``: everything a pattern finds, up to a limit."""

    def __init__(self, read: PatternRead, limit: int | None) -> None:
        self._read = read
        if limit != 0 or type(limit) is not int:  # a limit of 0 reads nothing
            check_limit(limit)
            if limit is not None:
                read.refuse_part(f"limit={limit}")
        limits = [each for each in (limit, read.limit) if each is not None]
        self._left = min(limits) if limits else None

    @property
    def is_done(self) -> bool:
        return self._read.is_done or (self._left is not None and self._left <= 0)

    def page(self) -> Work[list[Any]]:
        if self._read.plan.in_memory:
            return (yield from self._read.sorted_entities())
        found = yield from self._read.page(self._left)
        if self._left is not None:
            self._left -= len(found)
        return found


def page(
    context: Context, query: Question, limit: int, cursor: str | None, options: ReadOptions
) -> Work[Page[Any]]:
    check_limit(limit)
    read = PatternRead(context, query, options, cursor)
    read.refuse_part("page()")
    return (yield from read.one_page(limit))


def check_limit(limit: int | None) -> None:
    if limit is None:
        return
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise RequestRefused(
            f"limit must be a whole number, not {type(limit).__name__}", hint="for example limit=25"
        )
    if limit < 1:
        raise RequestRefused(f"limit={limit} must be 1 or more", hint="for example limit=25")


def first(context: Context, query: Question, options: ReadOptions) -> Work[Any]:
    read = PatternRead(context, query, options)
    read.refuse_part("first()")
    items = yield from read.page(1)
    return items[0] if items else None


def by_entity(context: Context, query: Question, found: list[Any]) -> tuple[list[Any], ...]:
    """Return one list for each entity of a ``together`` pattern, in the order of its entities."""
    targets = query.ask.targets
    if len(targets) < 2:
        raise RequestRefused(
            f"{shown(query)} finds items of one entity, so there is nothing to group",
            hint="call db.all(...), which returns a list",
        )
    schema = context.schema
    at = {schema.of(target).name: place for place, target in enumerate(targets)}
    groups: tuple[list[Any], ...] = tuple(ItemList() for _ in targets)
    for each in found:
        groups[at[schema.of_object(each).name]].append(each)
    return groups


def shown(query: Question) -> str:
    """Return a call of a pattern for messages: ``orders_of_user(user_id='u1')``."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in query.arguments.items())
    return f"{'this query' if query.pattern is None else query.pattern.name}({arguments})"


def explained(context: Context, query: Question) -> Explanation:
    if not isinstance(query, Question):
        raise RequestRefused(
            f"{type(query).__name__} is not a query", hint="call a pattern with its arguments"
        )
    if query.pattern is None:
        raise RequestRefused(
            "this query is not part of a declared pattern, and only declared patterns can be "
            "explained",
            hint="put it into a function decorated with @read",
        )
    context.schema.pattern(query.pattern.name)  # raises if the plan lacks it
    return explain_call(context.schema.plan, query.pattern.name, query.arguments, query.ask.only)
