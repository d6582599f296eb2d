"""The result of planning: tables, entities and patterns, as frozen data.

A plan is complete without the design it came from. It can be written to a lock file and read back.
It builds the CreateTable requests, the key attributes of an item, and the requests of each pattern
with its arguments filled in. It does no I/O.
"""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import product
from typing import Any, Final, Literal, TypeVar

from stator.design.entities.entity import info
from stator.design.plan.demand import Demand
from stator.design.plan.guard_text import guard_partition, owner_key
from stator.design.plan.html_table import html_table
from stator.design.plan.json_data import from_data, to_data
from stator.design.plan.key_sizes import check_size
from stator.design.plan.stored_shape import StoredField, VersionedShape
from stator.design.plan.templates import (
    Filter,
    PlannedKeyAttribute,
    Template,
    filled,
    listed_argument,
)
from stator.design.plan.usage import StoredItems, UnitUse
from stator.errors import DesignError
from stator.model.limits import BATCH_GET_KEYS
from stator.model.quantities import cents, size
from stator.model.values import Item, Value

FORMAT: Final = 7
"""The format of lock files that this version writes. It reads this one and every older one.

Format 1 had no demand; a plan read from it has None there. Formats 1 and 2 had no fields of
entities; a plan read from them has none. Format 4 has orders by several fields, list arguments,
and keys of items that lack a field. Format 5 has parts of fields in keys and filters, sorts
in memory, and orders of mixed directions. Format 6 has filters of fetched items, and format 7
index keys with adaptive shards.
"""

Request = dict[str, Any]
Operation = Literal[
    "GetItem",
    "Query",
    "Scan",
    "BatchGetItem",
    "PutItem",
    "UpdateItem",
    "DeleteItem",
    "TransactWriteItems",
]


# --- tables -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class IndexPlan:
    """An index.

    ``partition`` and ``sort`` have the names of the key attributes. A native key, made of the
    entity's own attributes, may have several in each; other keys have one. ``dollars_per_month`` is
    the cost of writing and storing the index entries. The plan's total already includes it: the
    writes under the write patterns, the storage under the table.
    """

    name: str
    kind: Literal["GSI", "LSI"]
    partition: tuple[str, ...]
    sort: tuple[str, ...]
    projection: Literal["ALL", "INCLUDE", "KEYS_ONLY"]
    included: tuple[str, ...]
    entities: tuple[str, ...]
    patterns: tuple[str, ...]
    native: bool
    dollars_per_month: float
    reason: str = ""

    def request(self) -> Request:
        """Return the index as it stands in a CreateTable request."""
        projection: Request = {"ProjectionType": self.projection}
        if self.projection == "INCLUDE":
            projection["NonKeyAttributes"] = list(self.included)
        return {
            "IndexName": self.name,
            "KeySchema": _schema(self.partition, self.sort),
            "Projection": projection,
        }


@dataclass(frozen=True, slots=True)
class TablePlan:
    """A table.

    ``attributes`` are the names and types of all key attributes, including those of indexes.
    """

    name: str
    partition: str
    sort: str | None
    attributes: tuple[tuple[str, str], ...]
    indexes: tuple[IndexPlan, ...]
    entities: tuple[str, ...]
    storage_dollars_per_month: float = 0.0
    """Storage of the items, of all index entries, and of the guards of unique values."""
    other_dollars_per_month: float = 0.0
    """Costs that belong to no pattern: ``writes=`` and lookups of keys by identity."""
    ttl: str | None = None
    """The attribute that items expire by, from a ``ttl()`` field."""

    def create_request(self) -> Request:
        """Return the CreateTable request of the table."""
        request: Request = {
            "TableName": self.name,
            "KeySchema": _schema((self.partition,), (self.sort,) if self.sort else ()),
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": kind} for name, kind in self.attributes
            ],
            "BillingMode": "PAY_PER_REQUEST",
        }
        for member, kind in (("GlobalSecondaryIndexes", "GSI"), ("LocalSecondaryIndexes", "LSI")):
            indexes = [index.request() for index in self.indexes if index.kind == kind]
            if indexes:
                request[member] = indexes
        return request


def _schema(partition: Iterable[str], sort: Iterable[str]) -> list[Request]:
    return [{"AttributeName": name, "KeyType": "HASH"} for name in partition] + [
        {"AttributeName": name, "KeyType": "RANGE"} for name in sort
    ]


# --- entities -----------------------------------------------------------------------------------


class Attributes(dict[str, Any]):
    """A dictionary view of an object: a missing key returns the attribute with that name."""

    def __init__(self, of: Any) -> None:
        super().__init__()
        self._of = of

    def __missing__(self, name: str) -> Any:
        return getattr(self._of, name)


@dataclass(frozen=True, slots=True)
class EntityPlan:
    """Where items of an entity are stored, and the key attributes written on them."""

    name: str
    table: str
    identity: tuple[str, ...]
    discriminator: str | None
    keys: tuple[PlannedKeyAttribute, ...]
    shards: int = 1
    items: float = 0.0
    item_bytes: float = 0.0
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    version: int = 1
    """The version of the entity's shape."""
    fields: tuple[StoredField, ...] = ()
    """The stored shape; empty in a plan read from a lock file of format 1 or 2."""
    upcasts: tuple[int, ...] = ()
    """The versions that the upcasts of the entity start from."""
    is_size_guessed: bool = False
    """Whether ``item_bytes`` rests on typical lengths of text, bytes or collections."""

    @property
    def shape(self) -> VersionedShape:
        """The stored names and types of the fields, with the version of the entity."""
        return VersionedShape(self.name, self.version, self.fields, self.upcasts)

    def item_keys(self, entity: Any) -> Item:
        """Return the key attributes of an instance, for the table and for its indexes.

        An index to which the instance does not belong gets no attributes.
        """
        return self._filled(self.keys, Attributes(entity))

    def base_key(self, **values: Any) -> Item:
        """Return the table's key for an item, computed from the values of the fields in the key."""
        try:
            return self._filled([key for key in self.keys if key.index is None], values)
        except KeyError as error:
            raise DesignError(
                f"the key of {self.name} needs {error.args[0]}",
                hint=f"pass {', '.join(self.base_fields)}",
            ) from None

    @property
    def base_fields(self) -> tuple[str, ...]:
        """The fields in the table's key."""
        parts = [part for key in self.keys if key.index is None for part in key.template.parts]
        holes = [part for part in parts if part.kind == "field"] + [
            of for part in parts for of in part.of
        ]
        return tuple(dict.fromkeys(part.value for part in holes))

    @property
    def is_guarded(self) -> bool:
        """Whether the identity needs a guard: the table's key has fields besides the identity."""
        return not set(self.base_fields) <= set(self.identity)

    def item(self, entity: Any) -> Item:
        """Return the whole item as it is stored."""
        item: Item = info(type(entity)).codec.encode(entity) | self.item_keys(entity)
        if self.discriminator is not None:
            item[self.discriminator] = {"S": self.name}
        return item

    def put_request(self, entity: Any) -> Request:
        """Return the PutItem request for an example item of the entity."""
        return {"TableName": self.table, "Item": self.item(entity)}

    def _filled(self, attributes: Iterable[PlannedKeyAttribute], values: Mapping[str, Any]) -> Item:
        found: Item = {}
        for key in attributes:
            value = key.value(values)
            if value is not None:
                check_size(self.name, key, value, values)
                found[key.name] = value
        return found


# --- patterns -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class KeyConditionPart:
    """One comparison of a key attribute, as part of a key condition."""

    attribute: str
    operator: Literal["=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"]
    bounds: tuple[Template, ...]

    def __str__(self) -> str:
        shown = [str(bound) if bound.is_open else f'"{bound}"' for bound in self.bounds]
        return self.written(self.attribute, shown)

    def written(self, name: str, values: list[str]) -> str:
        if self.operator == "BETWEEN":
            return f"{name} BETWEEN {values[0]} AND {values[1]}"
        if self.operator == "begins_with":
            return f"begins_with({name}, {values[0]})"
        return f"{name} {self.operator} {values[0]}"

    def is_empty_range(self, arguments: Mapping[str, Any], shard: int) -> bool:
        """Whether these arguments make a range that ends before it begins."""
        if self.operator != "BETWEEN":
            return False
        low, high = (_ordered(filled(bound, arguments, shard)) for bound in self.bounds)
        return bool(low > high)


def _ordered(value: Value) -> Any:
    """Return the content of a key value in a form that compares as DynamoDB compares it."""
    [(kind, content)] = value.items()
    if kind == "N":
        return Decimal(content)
    return b64decode(content) if kind == "B" else content


@dataclass(frozen=True, slots=True)
class GuardLookup:
    """A lookup by the unique ``field``: its guard, in the table of guards, leads to the item."""

    table: str
    field: str
    prefix: str
    """The text that partition keys of the field's guards start with."""


@dataclass(frozen=True, slots=True)
class Step:
    """One request of a pattern, which is repeated for each shard and each of the ``alternatives``.

    The reader merges the results in order, up to the limit.
    """

    operation: Operation
    table: str
    entities: tuple[str, ...]
    index: str | None = None
    key: tuple[KeyConditionPart, ...] = ()
    filter: Filter | None = None
    forward: bool = True
    limit: int | None = None
    limit_param: str | None = None
    consistent: bool = False
    is_count: bool = False
    shards: int = 1
    fetch: tuple[str, ...] = ()
    """The table's key attributes, if the items are fetched with BatchGetItem afterwards."""
    units: float = 0.0
    alternatives: tuple[tuple[KeyConditionPart, ...], ...] = ()
    """Further key conditions, for a field that may have one of several values."""
    order: str | None = None
    """The field that the pattern orders by. The reader merges the answers of requests by it.

    The sort keys of the requests may start with another field.
    """
    then: tuple[str, ...] = ()
    """The fields that order items with the same value of ``order``."""
    lists: tuple[str, ...] = ()
    """The names of the list arguments in the key condition. Each value in a list gets a request."""
    in_memory: bool = False
    """The reader sorts the items after reading them, because the key does not hold the order."""
    descending: tuple[str, ...] = ()
    """The fields of ``order`` and ``then`` that descend.

    It is set only if the reader needs it: for a sort in memory, or if other fields ascend.
    """
    fetched_filter: Filter | None = None
    """Conditions that the reader checks on the fetched items, because the index does not show them.

    Set only with ``fetch``. ``filter`` has the conditions that DynamoDB checks.
    """
    guard: GuardLookup | None = None
    """Set if the step looks up a unique value by its guard.

    Then ``key`` is the key of the guard, which names the item to be fetched from ``table``.
    """

    @property
    def is_adaptive(self) -> bool:
        """Whether a key value may have more shards than ``shards``."""
        parts = (part for test in self.key for bound in test.bounds for part in bound.parts)
        return any(part.kind == "shard" and part.adaptive for part in parts)

    @property
    def is_filtered(self) -> bool:
        """Whether a condition may drop some of the items that a request reads."""
        return self.filter is not None or self.fetched_filter is not None

    @property
    def filters(self) -> tuple[Filter, ...]:
        """The filters of this step: the one in the request, and the one on fetched items."""
        return tuple(each for each in (self.filter, self.fetched_filter) if each is not None)

    @property
    def source(self) -> str:
        """The index, the table of guards, or the table that the request reads."""
        return self.index or (self.table if self.guard is None else self.guard.table)

    @property
    def conditions(self) -> tuple[tuple[KeyConditionPart, ...], ...]:
        return (self.key, *self.alternatives)

    @property
    def key_condition(self) -> str:
        return " or ".join(" AND ".join(map(str, tests)) for tests in self.conditions)

    def spread_values(self, arguments: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the key values that adaptive shards divide, as text up to the shard number."""
        return tuple(
            dict.fromkeys(
                text
                for given in self._one_by_one(arguments)
                for tests in self.conditions
                if (text := _text_before_shard(tests, given)) is not None
            )
        )

    def requests(
        self,
        arguments: Mapping[str, Any],
        *,
        limited: bool = True,
        spread: Mapping[str, int] | None = None,
    ) -> tuple[Request, ...]:
        """Return the requests of this step, with the arguments filled in.

        A reader that limits the number of items itself passes ``limited=False`` to leave ``Limit``
        out. ``spread`` has the numbers of shards of ``spread_values`` that have more than the plan
        says. Requests for these further shards come last, lower numbers first.
        """
        if self.operation == "GetItem":
            return (self._get(arguments),)
        if self.operation not in ("Query", "Scan"):
            raise DesignError(
                f"a {self.operation} request is made from an item, not from arguments",
                hint="use EntityPlan.put_request, or base_key with your own UpdateExpression",
            )
        found: list[Request] = []
        for given in self._one_by_one(arguments):
            for tests in self.conditions:
                for shard in range(self.shards):
                    if any(test.is_empty_range(given, shard) for test in tests):
                        continue  # DynamoDB refuses a range that ends before it begins
                    request = self._read(given, shard, tests, limited)
                    if request not in found:  # two arguments may have the same value
                        found.append(request)
        for shard in range(self.shards, max((spread or {}).values(), default=0)):
            for given in self._one_by_one(arguments):
                for tests in self.conditions:
                    if shard < (spread or {}).get(_text_before_shard(tests, given) or "", 0):
                        request = self._read(given, shard, tests, limited)
                        if request not in found:
                            found.append(request)
        return tuple(found)

    def _one_by_one(self, arguments: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """Yield the arguments of each request, with one member in place of every list argument.

        Each combination of members gets a request. An empty list has no member, so there is no
        request.
        """
        filtered = [name for each in self.filters for name in each.lists]
        members = {
            name: listed_argument(name, arguments[name]) for name in (*self.lists, *filtered)
        }
        if not all(members.values()):
            return
        for chosen in product(*(members[name] for name in self.lists)):
            yield {**arguments, **dict(zip(self.lists, chosen))}

    def fetched_key(self, item: Item) -> Item:
        """Return the table's key of the item to which an index entry or a guard leads."""
        return owner_key(item) if self.guard else {name: item[name] for name in self.fetch}

    def fetch_requests(self, items: Iterable[Item]) -> tuple[Request, ...]:
        """Return the BatchGetItem requests for the items whose keys an index query returned."""
        keys = [self.fetched_key(item) for item in items]
        chunks = [keys[at : at + BATCH_GET_KEYS] for at in range(0, len(keys), BATCH_GET_KEYS)]
        return tuple({"RequestItems": {self.table: {"Keys": chunk}}} for chunk in chunks)

    def _get(self, arguments: Mapping[str, Any]) -> Request:
        key = {test.attribute: filled(test.bounds[0], arguments) for test in self.key}
        request: Request = {"TableName": self.table, "Key": key}
        if self.guard is not None:
            partition = self.key[0].attribute
            text = (key[partition] or {})["S"].removeprefix(self.guard.prefix)
            key[partition] = {"S": guard_partition(self.guard.prefix, text)}
            request["TableName"] = self.guard.table
        return request | ({"ConsistentRead": True} if self.consistent else {})

    def _read(
        self,
        arguments: Mapping[str, Any],
        shard: int,
        tests: tuple[KeyConditionPart, ...],
        limited: bool,
    ) -> Request:
        request: Request = {"TableName": self.table}
        names: dict[str, str] = {}
        values: dict[str, Value] = {}
        if self.index:
            request["IndexName"] = self.index
        if tests:
            request["KeyConditionExpression"] = self._condition(
                tests, arguments, shard, names, values
            )
        if self.filter:
            request["FilterExpression"], filled = self.filter.fill(arguments)
            names |= dict(self.filter.names)
            values |= filled
        if names:
            request["ExpressionAttributeNames"] = names
        if values:
            request["ExpressionAttributeValues"] = values
        if not self.forward:
            request["ScanIndexForward"] = False
        # DynamoDB applies Limit before the filter; with a filter, the reader counts by itself.
        if limited and not self.is_filtered and not self.is_count:
            limit = arguments[self.limit_param] if self.limit_param else self.limit
            if limit is not None:
                request["Limit"] = limit
        if self.consistent:
            request["ConsistentRead"] = True
        if self.is_count and self.fetched_filter is None:
            request["Select"] = "COUNT"
        return request

    def _condition(
        self,
        tests: tuple[KeyConditionPart, ...],
        arguments: Mapping[str, Any],
        shard: int,
        names: dict[str, str],
        values: dict[str, Value],
    ) -> str:
        terms = []
        for at, test in enumerate(tests):
            names[f"#k{at}"] = test.attribute
            shown = []
            for bound in test.bounds:
                placeholder = f":k{len(values)}"
                values[placeholder] = filled(bound, arguments, shard)
                shown.append(placeholder)
            terms.append(test.written(f"#k{at}", shown))
        return " AND ".join(terms)


def _text_before_shard(
    tests: tuple[KeyConditionPart, ...], arguments: Mapping[str, Any]
) -> str | None:
    """Return the text of an adaptive partition key up to the shard number, or None."""
    parts = tests[0].bounds[0].parts if tests else ()
    if not parts or parts[-1].kind != "shard" or not parts[-1].adaptive:
        return None
    return str(filled(Template(parts[:-1]), arguments)["S"])


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """The plan of one pattern. A read usually has one step; a write has one for each change."""

    name: str
    kind: Literal["read", "write"]
    steps: tuple[Step, ...]
    parameters: tuple[str, ...]
    requests_per_second: float
    units_per_call: float
    units_per_month: float
    dollars_per_month: float
    latency: str
    example: str = ""
    transaction: bool = False
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    runner_up: str = ""
    guesses: tuple[str, ...] = ()
    """The guessed numbers behind the units, each with what to declare instead."""

    @property
    def operation(self) -> Operation:
        """The DynamoDB operation of the first step."""
        return "TransactWriteItems" if self.transaction else self.steps[0].operation

    @property
    def table(self) -> str:
        """The table that the first step reads or writes."""
        return self.steps[0].table

    @property
    def index(self) -> str | None:
        """The index that the first step reads, or None for the table itself."""
        return self.steps[0].index

    @property
    def key_condition(self) -> str:
        """The key condition of the first step, with placeholders for arguments."""
        return "; ".join(step.key_condition for step in self.steps)

    @property
    def consistent(self) -> bool:
        """Whether the first step asks for a strongly consistent read."""
        return self.steps[0].consistent

    @property
    def in_memory(self) -> bool:
        """Whether the reader sorts the result, so that it can only be read whole."""
        return any(step.in_memory for step in self.steps)

    def joined(self, other: PatternPlan) -> PatternPlan:
        """Return one plan for a pattern that reads two tables, from its plans for each table."""
        return replace(
            self,
            steps=(*self.steps, *other.steps),
            units_per_call=self.units_per_call + other.units_per_call,
            units_per_month=self.units_per_month + other.units_per_month,
            dollars_per_month=self.dollars_per_month + other.dollars_per_month,
            latency=max(self.latency, other.latency, key=len),
            example=f"{self.example}; {other.example}",
            reasons=(*self.reasons, *other.reasons),
            warnings=(*self.warnings, *other.warnings),
            guesses=tuple(dict.fromkeys((*self.guesses, *other.guesses))),
        )

    def request(self, **arguments: Any) -> Request:
        """Return the only request of a pattern.

        Raises DesignError if the pattern takes several requests.
        """
        found = self.requests(**arguments)
        if len(found) != 1:
            raise DesignError(
                f"{self.name} takes {len(found)} requests, not one",
                hint="call requests(), and merge the answers",
            )
        return found[0]

    def requests(self, **arguments: Any) -> tuple[Request, ...]:
        """Return all requests: one for each shard, each key value and each table."""
        missing = [name for name in self.parameters if name not in arguments]
        if missing:
            raise DesignError(
                f"{self.name} is missing {', '.join(missing)}", hint="pass every argument by name"
            )
        return tuple(request for step in self.steps for request in step.requests(arguments))


# --- the plan -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What the planner chose for a design: tables, indexes, keys and requests."""

    name: str
    layout: str
    tables: tuple[TablePlan, ...]
    entities: tuple[EntityPlan, ...]
    patterns: tuple[PatternPlan, ...]
    dollars_per_month: float
    """All patterns, index writes included, plus storage and other costs of the tables."""
    proven: bool = True
    """Whether the search finished: no cheaper layout exists in its cost model."""
    warnings: tuple[str, ...] = field(default=())
    demand: Demand | None = None
    """The workload; None in a plan read from a lock file of format 1."""
    uses: tuple[UnitUse, ...] = ()
    """The units of writes in each table and index; empty in the plan of an older lock file."""
    stored: tuple[StoredItems, ...] = ()
    """The items and entries stored in each table and index; empty if the lock file is older."""

    def __repr__(self) -> str:
        parts = (
            f"layout {self.layout}",
            _counted(len(self.tables), "table"),
            _counted(len(self.entities), "entity", "entities"),
            _counted(len(self.patterns), "pattern"),
            f"${cents(self.dollars_per_month)} a month",
        )
        return f"<Plan {self.name}: {', '.join(parts)}>"

    def _repr_html_(self) -> str:
        """Return a table of the patterns for a notebook."""
        return html_table(
            repr(self)[1:-1],
            ("pattern", "request", "table or index", "key", "dollars a month"),
            (
                (
                    each.name,
                    each.operation,
                    each.index or each.table,
                    each.key_condition,
                    cents(each.dollars_per_month),
                )
                for each in self.patterns
            ),
        )

    @property
    def guesses(self) -> tuple[str, ...]:
        """The guesses about sizes and the guesses of all patterns, each once."""
        of_patterns = dict.fromkeys(guess for each in self.patterns for guess in each.guesses)
        return (*self._size_guesses(), *of_patterns)

    def _size_guesses(self) -> Iterator[str]:
        guessed = [each for each in self.entities if each.is_size_guessed]
        if guessed:
            sizes = ", ".join(f"{each.name} {size(each.item_bytes)}" for each in guessed)
            declared = ", ".join(f"{each.name}: ..." for each in guessed)
            yield f"sizes of items ({sizes}) are guesses from types; declare sizes={{{declared}}}"

    def table(self, name: str) -> TablePlan:
        """Return the plan of a table. Raises DesignError for an unknown name."""
        return _named(self.tables, name, "table")

    def entity(self, entity: type[Any] | str) -> EntityPlan:
        """Return the plan of an entity. Raises DesignError for an unknown name."""
        name = entity if isinstance(entity, str) else info(entity).name
        return _named(self.entities, name, "entity")

    def pattern(self, name: str) -> PatternPlan:
        """Return the plan of a pattern. Raises DesignError for an unknown name."""
        return _named(self.patterns, name, "pattern")

    def create_table_requests(self) -> list[Request]:
        """Return a CreateTable request for each table."""
        return [table.create_request() for table in self.tables]

    def to_json(self) -> str:
        """Return the text of a lock file. Equal plans return equal bytes."""
        data = {"format": FORMAT, **to_data(self)}
        return json.dumps(data, indent=2, sort_keys=True, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Plan:
        """Read a lock file of this format or an older one.

        Raises DesignError for a newer format.
        """
        data = json.loads(text)
        found = data.pop("format", None)
        if type(found) is not int or found < 1:
            raise DesignError(
                f"the lock file has no valid format number ({found!r})",
                hint="restore it from version control, or write it again: stator plan --write",
            )
        if found > FORMAT:
            raise DesignError(
                f"the lock file has format {found}, and this Stator reads formats 1 to {FORMAT}",
                hint="a newer Stator wrote it: upgrade Stator",
            )
        return from_data(cls, data)


def _counted(count: int, one: str, several: str = "") -> str:
    return f"{count} {one if count == 1 else several or one + 's'}"


_N = TypeVar("_N", TablePlan, EntityPlan, PatternPlan)


def _named(parts: tuple[_N, ...], name: str, kind: str) -> _N:
    for each in parts:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in parts) or "none"
    raise DesignError(f"the plan has no {kind} {name!r}", hint=f"it has {known}")
