"""Reads: by identity, by declared pattern, by an allowed scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from stator.design.patterns.explanation import Explanation
from stator.design.patterns.pattern import Question
from stator.design.plan.plan import IndexPlan, PatternPlan, Step
from stator.errors import BlobMissing, CursorRefused, DesignError, RequestRefused
from stator.model.limits import BATCH_GET_KEYS
from stator.model.values import Item
from stator.tables.blobs.blobs import unpacked
from stator.tables.context import Context
from stator.tables.reads.cursors import Position, make_cursor, read_cursor
from stator.tables.reads.locator import locate
from stator.tables.reads.page_stream import PageStream, comparable
from stator.tables.schema import EntityMap
from stator.tables.work import Call, Gather, Pause, Work, gathered

E = TypeVar("E")
_FETCH_PAGE = 100


@dataclass(frozen=True, slots=True)
class Page(Generic[E]):
    """``cursor`` leads to the next page; None when this was the last."""

    items: list[E]
    cursor: str | None

    def __iter__(self) -> Any:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


# --- by identity --------------------------------------------------------------------------------------------


def get(
    context: Context,
    of: EntityMap,
    values: Mapping[str, Any],
    *,
    consistent: bool = False,
    include_expired: bool = False,
) -> Work[Any]:
    key = of.key_from(values) if of.has_base(values) else (yield from locate(of, values))
    if key is None:
        return None
    request: dict[str, Any] = {"TableName": of.table.name, "Key": key}
    if consistent:
        request["ConsistentRead"] = True
    for is_last in (False, True):
        reply = yield Call("GetItem", request, f"get {of.name}")
        item = reply.get("Item")
        if item is None or (
            not include_expired and of.ttl is not None and of.is_expired(item, context.now())
        ):
            return None
        try:
            [entity] = yield from decoded(context, of, [item])
        except BlobMissing:
            if is_last:
                raise
            continue  # a writer replaced the value between reading the item and reading its blob
        return entity if _has(entity, of.beside_the_key(values)) else None
    return None


def _has(entity: Any, values: Mapping[str, Any]) -> bool:
    return all(getattr(entity, name) == value for name, value in values.items())


def decoded(context: Context, of: EntityMap, items: list[Item]) -> Work[list[Any]]:
    """Entities of items, with large values read from where they are."""
    if of.large:
        items = yield from unpacked(of, items, context.blobs)
    return [of.decode(item) for item in items]


def get_many(
    context: Context,
    of: EntityMap,
    identities: Sequence[Mapping[str, Any]],
    *,
    consistent: bool = False,
    include_expired: bool = False,
) -> Work[list[Any]]:
    """In the order asked for, None for those that are not there. A key asked for twice is read once."""
    keys: list[Item | None] = gathered(
        (yield Gather([locate(of, values) for values in identities]))
    )  # type: ignore[assignment]
    wanted = {_key_text(key): key for key in keys if key is not None}
    found = yield from batch_get(
        context, of.table.name, list(wanted.values()), f"get {of.name}", consistent
    )
    now = context.now()
    found = [item for item in found if include_expired or not of.is_expired(item, now)]
    entities = yield from decoded(context, of, found)
    by_key = {_key_text(of.stored_key(item)): entity for item, entity in zip(found, entities)}
    read = [None if key is None else by_key.get(_key_text(key)) for key in keys]
    return [
        entity if entity is not None and _has(entity, of.beside_the_key(values)) else None
        for entity, values in zip(read, identities)
    ]


def batch_get(
    context: Context, table: str, keys: list[Item], label: str, consistent: bool = False
) -> Work[list[Item]]:
    """The items with these keys, in any order. What DynamoDB leaves for later is asked for again until it comes."""
    chunks = [keys[at : at + BATCH_GET_KEYS] for at in range(0, len(keys), BATCH_GET_KEYS)]
    parts = [_batch_get_chunk(context, table, chunk, label, consistent) for chunk in chunks]
    results = gathered((yield Gather(parts)))
    return [item for part in results for item in part]


def _batch_get_chunk(
    context: Context, table: str, keys: list[Item], label: str, consistent: bool
) -> Work[list[Item]]:
    found: list[Item] = []
    asked: dict[str, Any] = {"Keys": keys}
    if consistent:
        asked["ConsistentRead"] = True
    attempt = 0
    while True:
        reply = yield Call("BatchGetItem", {"RequestItems": {table: asked}}, label)
        got = reply["Responses"].get(table, [])
        found += got
        left = reply.get("UnprocessedKeys") or {}
        if table not in left:
            return found
        asked = left[table]
        attempt = 0 if got else attempt + 1
        yield Pause(context.backoff(attempt))


def _key_text(key: Item) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted((name, comparable(value)) for name, value in key.items()))


# --- by pattern ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadOptions:
    consistent: bool | None = None
    include_expired: bool = False


class PatternRead:
    """One call of a pattern, read from the start or from a cursor."""

    def __init__(
        self, context: Context, query: Question, options: ReadOptions, cursor: str | None = None
    ) -> None:
        if not isinstance(query, Question) or query.pattern is None:
            raise RequestRefused(
                "only declared patterns are read",
                hint="put the query into a function decorated with @read and add it to the design; db.scan() reads everything",
            )
        self.context = context
        self.options = options
        self.plan: PatternPlan = context.schema.pattern(query.pattern.name)
        self.arguments = query.arguments
        self.limit = self._limit()
        self.given = 0
        self.streams = self._streams(cursor)

    def _limit(self) -> int | None:
        step = self.plan.steps[0]
        return self.arguments[step.limit_param] if step.limit_param else step.limit

    def _streams(self, cursor: str | None) -> list[PageStream]:
        requests = [
            (step, request) for step in self.plan.steps for request in step.requests(self.arguments)
        ]
        if cursor is None:
            positions: list[Any] = ["start"] * len(requests)
        else:
            positions, self.given = read_cursor(
                cursor, self.plan.name, self._shown_arguments(), self.context.cursor_key
            )
            if len(positions) != len(requests):
                raise CursorRefused(f"the cursor is of {self.plan.name} as it was planned before")
        return [
            PageStream(
                self.context.schema, step, self._consistent(step, request), self.plan.name, position
            )
            for (step, request), position in zip(requests, positions, strict=True)
        ]

    def _consistent(self, step: Step, request: dict[str, Any]) -> dict[str, Any]:
        wanted = self.options.consistent
        if wanted is None:
            return request
        index = self._index(step)
        if wanted and index is not None and index.kind == "GSI":
            raise RequestRefused(
                f"{self.plan.name} reads {step.index}, a global index, which is never strongly consistent",
                hint="declare the pattern with consistent=True, and the planner finds another way, or read it as it is",
            )
        return {name: value for name, value in request.items() if name != "ConsistentRead"} | (
            {"ConsistentRead": True} if wanted else {}
        )

    def _index(self, step: Step) -> IndexPlan | None:
        indexes = self.context.schema.tables[step.table].indexes
        return next((index for index in indexes if index.name == step.index), None)

    def _is_projected(self, step: Step, attribute: str) -> bool:
        index = self._index(step)
        if index is None or index.projection == "ALL":
            return True
        return attribute in (*index.included, *index.partition, *index.sort)

    def _shown_arguments(self) -> dict[str, str]:
        """What a cursor is bound to."""
        return {name: repr(value) for name, value in self.arguments.items()}

    def cursor(self) -> str | None:
        positions: list[Position] = [stream.position for stream in self.streams]
        if all(position == "end" for position in positions) or self.given == self.limit:
            return None
        return make_cursor(
            positions, self.plan.name, self._shown_arguments(), self.context.cursor_key, self.given
        )

    @property
    def is_done(self) -> bool:
        return all(stream.is_done for stream in self.streams)

    # -- items

    def page(self, limit: int | None) -> Work[list[Any]]:
        """Up to ``limit`` entities, or one page of DynamoDB's when there is none."""
        if self.plan.steps[0].is_count:
            raise RequestRefused(
                f"{self.plan.name} counts, and finds no items", hint="use db.count(...)"
            )
        found: list[Any] = []
        while limit is None or len(found) < limit:
            want = None if limit is None else limit - len(found)
            items = yield from self._some(want)
            if not items:
                break
            found += yield from self._entities(items)
            if limit is None and found:
                break
        for stream in self.streams:
            stream.skip_to_end()
        return found

    def _some(self, want: int | None) -> Work[list[tuple[Step, Item]]]:
        """The items that come next: what is at hand of one stream, or the smallest heads of several."""
        live = [stream for stream in self.streams if not stream.is_done]
        if not live:
            return []
        merged = [stream for stream in live if stream.step is live[0].step]
        if len(merged) == 1:
            return (yield from self._from_one(live[0], want))
        return (yield from self._merged(merged, want))

    def _from_one(self, stream: PageStream, want: int | None) -> Work[list[tuple[Step, Item]]]:
        if (yield from stream.head(want)) is None:
            stream.skip_to_end()
            return (yield from self._some(want))
        taken: list[tuple[Step, Item]] = []
        while stream.buffered() and (want is None or len(taken) < want):
            taken.append((stream.step, stream.take()))
        return taken

    def _merged(self, streams: list[PageStream], want: int | None) -> Work[list[tuple[Step, Item]]]:
        limit = want or _FETCH_PAGE
        taken: list[tuple[Step, Item]] = []
        while len(taken) < limit:
            dry = [stream for stream in streams if not stream.buffered() and not stream.is_done]
            while dry:
                replies = gathered((yield Gather([stream.next_call(want) for stream in dry])))
                for stream, reply in zip(dry, replies):
                    stream.took(reply)
                dry = [stream for stream in dry if not stream.buffered() and not stream.is_done]
            heads = [stream for stream in streams if stream.buffered()]
            if not heads:
                break
            first = self._first(heads)
            taken.append((first.step, first.take()))
        for stream in streams:
            stream.skip_to_end()
        return taken or (yield from self._some(want))

    def _first(self, streams: list[PageStream]) -> PageStream:
        choose = min if streams[0].step.forward else max
        return choose(streams, key=lambda stream: stream.order(stream.peek()))

    def _entities(self, items: list[tuple[Step, Item]]) -> Work[list[Any]]:
        found = []
        now = self.context.now()
        step = items[0][0]
        if step.fetch:
            whole = yield from self._fetched(step, [item for _, item in items])
            items = [(step, item) for item in whole]
        for step, item in items:
            of = self.context.schema.of_item(item, step.table, step.entities)
            if of is None or of.name not in step.entities:
                continue
            if self.options.include_expired or of.ttl is None or not of.is_expired(item, now):
                found += (
                    (yield from decoded(self.context, of, [item]))
                    if of.large
                    else [of.decode(item)]
                )
        return found

    def _fetched(self, step: Step, items: list[Item]) -> Work[list[Item]]:
        """Whole items for those of which an index held only the keys, in the index's order."""
        # An item whose index key changes between two requests is in both answers.
        keys = {
            _key_text(key): key
            for item in items
            if (key := {name: item[name] for name in step.fetch})
        }
        found = yield from batch_get(
            self.context,
            step.table,
            list(keys.values()),
            self.plan.name,
            bool(self.options.consistent),
        )
        by_key = {_key_text({name: item[name] for name in step.fetch}): item for item in found}
        return [by_key[text] for text in keys if text in by_key]

    # -- numbers

    def count(self) -> Work[int]:
        total = 0
        for stream in self.streams:
            while not stream.is_done:
                call = stream.next_call(None)
                if stream.step.operation == "GetItem":
                    stream.took((yield call))
                    total += yield from self._how_many(
                        [(stream.step, item) for item in stream.drained()]
                    )
                    break
                call.request["Select"] = "COUNT"
                self._only_live(stream.step, call)
                reply = yield call
                total += reply["Count"]
                stream.took(
                    {"LastEvaluatedKey": reply.get("LastEvaluatedKey")}
                    if "LastEvaluatedKey" in reply
                    else {}
                )
        return total if self.limit is None else min(total, self.limit)

    def _how_many(self, items: list[tuple[Step, Item]]) -> Work[int]:
        return len((yield from self._entities(items))) if items else 0

    def _only_live(self, step: Step, call: Call) -> None:
        """Nothing comes back that could be looked at: what has expired is left out by a filter, where the index has its time."""
        ttls = {self.context.schema.named(name).ttl for name in step.entities} - {None}
        ttls = {ttl for ttl in ttls if self._is_projected(step, str(ttl))}
        if self.options.include_expired or not ttls:
            return
        request = call.request
        for at, ttl in enumerate(sorted(map(str, ttls))):
            request["ExpressionAttributeNames"] = request.get("ExpressionAttributeNames", {}) | {
                f"#e{at}": ttl
            }
            request["ExpressionAttributeValues"] = request.get("ExpressionAttributeValues", {}) | {
                ":now": {"N": str(int(self.context.now()))}
            }
            live = f"(attribute_not_exists(#e{at}) OR #e{at} > :now)"
            request["FilterExpression"] = (
                f"({request['FilterExpression']}) AND {live}"
                if "FilterExpression" in request
                else live
            )


class PatternFetch:
    """The pages of ``db.fetch``: everything a pattern finds, up to a limit."""

    def __init__(self, read: PatternRead, limit: int | None) -> None:
        self._read = read
        self._left = fetch_limit(limit, read.limit)
        self._ended = False

    @property
    def is_done(self) -> bool:
        return self._ended or (self._left is not None and self._left <= 0)

    def page(self) -> Work[list[Any]]:
        found = yield from self._read.page(self._left)
        self._ended = not found or self._read.is_done
        if self._left is not None:
            self._left -= len(found)
        return found


def fetch_limit(asked: int | None, declared: int | None) -> int | None:
    """The smaller of two limits."""
    limits = [limit for limit in (asked, declared) if limit is not None]
    return min(limits) if limits else None


def check_limit(limit: int | None) -> None:
    if limit is not None and limit < 1:
        raise RequestRefused(f"a page of {limit} items holds nothing", hint="ask for 1 or more")


# --- everything ---------------------------------------------------------------------------------------------


class EntityScan:
    """A scan of one entity's table, segments side by side."""

    def __init__(
        self, context: Context, of: EntityMap, *, allow: bool, segments: int, options: ReadOptions
    ) -> None:
        if not allow:
            raise RequestRefused(
                f"scanning {of.table.name} reads, and pays for, every item in it",
                hint="declare a pattern for what is asked; if everything is really wanted, say allow=True",
            )
        if not 1 <= segments <= 1_000_000:
            raise DesignError(
                f"a scan has 1 to 1,000,000 segments, not {segments}",
                hint="a few per core are enough",
            )
        self.context = context
        self.of = of
        self.options = options
        self._starts: list[Item | None] = [None] * segments
        self._left = list(range(segments))
        self._segments = segments

    @property
    def is_done(self) -> bool:
        return not self._left

    def page(self) -> Work[list[Any]]:
        """The next page of every segment that is not at its end."""
        replies = gathered((yield Gather([self._call(segment) for segment in self._left])))
        found: list[Any] = []
        for segment, reply in zip(list(self._left), replies):
            self._starts[segment] = reply.get("LastEvaluatedKey")
            if self._starts[segment] is None:
                self._left.remove(segment)
            found += yield from self._entities(reply["Items"])
        return found

    def _call(self, segment: int) -> Call:
        of = self.of
        request: dict[str, Any] = {"TableName": of.table.name}
        if self._segments > 1:
            request |= {"Segment": segment, "TotalSegments": self._segments}
        if self.options.consistent:
            request["ConsistentRead"] = True
        if of.plan.discriminator is not None:
            request["FilterExpression"] = "#t = :t"
            request["ExpressionAttributeNames"] = {"#t": of.plan.discriminator}
            request["ExpressionAttributeValues"] = {":t": {"S": of.name}}
        start = self._starts[segment]
        if start is not None:
            request["ExclusiveStartKey"] = start
        return Call("Scan", request, f"scan {of.name}")

    def _entities(self, items: list[Item]) -> Work[list[Any]]:
        now = self.context.now()
        shown = [
            item
            for item in items
            if self.options.include_expired or not self.of.is_expired(item, now)
        ]
        return (yield from decoded(self.context, self.of, shown))


# --- pages of a pattern -------------------------------------------------------------------------------------


def page(
    context: Context, query: Question, limit: int, cursor: str | None, options: ReadOptions
) -> Work[Page[Any]]:
    check_limit(limit)
    reading = PatternRead(context, query, options, cursor)
    left = None if reading.limit is None else reading.limit - reading.given
    items = yield from reading.page(limit if left is None else min(limit, left))
    reading.given += len(items)
    return Page(items, reading.cursor())


def first(context: Context, query: Question, options: ReadOptions) -> Work[Any]:
    items = yield from PatternRead(context, query, options).page(1)
    return items[0] if items else None


def explained(context: Context, query: Question) -> Explanation:
    if query.pattern is None:
        raise RequestRefused(
            "only declared patterns are explained",
            hint="put the query into a function decorated with @read",
        )
    plan = context.schema.pattern(query.pattern.name)
    return Explanation(plan, plan.requests(**query.arguments))
