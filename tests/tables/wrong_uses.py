"""A sweep of wrong uses: each argument of each public method gets each of many kinds of values.

``calls`` names a right call of every method. ``wrong_uses`` replaces one argument at a time by each
value of ``VALUES`` and yields the calls. A call may succeed, because the value may be right there.
If it fails, the error must be one of Stator's, and say what to do.
"""

from __future__ import annotations

import enum
import inspect
import itertools
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

from stator import (
    Bundle2,
    Delete,
    Design,
    Entity,
    Get,
    Query,
    TableSettings,
    attr,
    find,
    ident,
    if_not_exists,
    month_of,
    read,
    soft_delete,
    together,
    unique,
    version,
)
from stator.design.entities.symbols import Symbol
from stator.errors import ItemMismatch, ServiceError, StatorError, UnknownOperation
from stator.patterns import (
    Counter,
    Leaderboard,
    Links,
    Lock,
    Once,
    Outbox,
    Rollup,
    Sequence,
    Series,
    Tree,
    UniqueAudit,
)

NOW = datetime(2026, 3, 1, tzinfo=UTC)


class Colour(enum.Enum):
    RED = "red"


@dataclass
class Part:
    name: str
    sizes: list[int] = field(default_factory=list)
    more: dict[str, list[Decimal]] = field(default_factory=dict)


class Wide(Entity, key=("WIDE#{team}", "WIDE#{id}")):
    """An entity with a field of every kind."""

    team: str = ident()
    id: str = ident()
    at: datetime = NOW
    day: date = date(2026, 3, 1)
    clock: time = time(1)
    count: int = 0
    amount: Decimal = Decimal(0)
    ratio: float = 0.0
    flag: bool = False
    raw: bytes = b""
    key: uuid.UUID = uuid.UUID(int=1)
    colour: Colour = Colour.RED
    note: str | None = None
    tags: set[str] = field(default_factory=set)
    numbers: set[int] = field(default_factory=set)
    lines: list[int] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    part: Part = field(default_factory=lambda: Part("p"))
    parts: list[Part] = field(default_factory=list)
    deep: dict[str, list[Part | None]] = field(default_factory=dict)
    anything: Any = None
    revision: int = version()


class Guarded(Entity):
    id: str = ident()
    email: str | None = unique()
    gone_at: datetime | None = soft_delete()


class Reading(Entity):
    sensor: str = ident()
    at: datetime = ident()
    value: float = 0.0


class Stranger(Entity):
    id: str = ident()


class Leaf(Entity):
    """An entity of a tree, which is in no design."""

    id: str = ident()


@read(rps=1)
def of_team(team: str, count: int) -> Query[Wide]:
    return find(Wide).where(Wide.team == team, Wide.count > count)


@read(rps=50)
def within(team: str, start: datetime, end: datetime) -> Query[Wide]:
    return find(Wide).where(Wide.team == team, Wide.at >= start, Wide.at < end)


@read(rps=50)
def after_day(team: str, start: date) -> Query[Wide]:
    return find(Wide).where(Wide.team == team, Wide.day > start)


@read(rps=50)
def before_count(team: str, count: int) -> Query[Wide]:
    return find(Wide).where(Wide.team == team, Wide.count < count).order_by(Wide.count)


@read(rps=1)
def in_month(team: str, month: str) -> Query[Wide]:
    return find(Wide).where(Wide.team == team, month_of(Wide.at) == month)


@read(rps=1)
def among(team: str, colours: list[Colour], most: int) -> Query[Wide]:
    return find(Wide).where(Wide.team == team, attr(Wide.colour).is_in(colours)).limit(most)


@read(rps=1)
def sized(team: str, amount: Decimal, key: uuid.UUID, flag: bool) -> Query[Wide]:
    return (
        find(Wide)
        .where(Wide.team == team)
        .filter(Wide.amount >= amount, Wide.key != key, Wide.flag == flag)
    )


@read(rps=1)
def both(id: str) -> Bundle2[Guarded, Stranger]:
    return together(Guarded, Stranger).where(Guarded.id == id)


PATTERNS: list[Any] = [
    of_team, within, after_day, before_count, in_month, among, sized, both,
]  # fmt: skip
DESIGN = Design("sweep", [Wide, Guarded, Stranger], PATTERNS)
PLAN = DESIGN.plan()


class Outsider(Entity):
    """An entity of no design."""

    id: str = ident()


def wide(**changed: Any) -> Wide:
    made: dict[str, Any] = {"team": "t", "id": "1"} | changed
    return Wide(**made)


def _generated() -> Iterator[Any]:
    yield object()


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "True": lambda: True,
    "0": lambda: 0,
    "5": lambda: 5,
    "-1": lambda: -1,
    "2**70": lambda: 2**70,
    "10**60": lambda: 10**60,
    "1.5": lambda: 1.5,
    "nan": lambda: float("nan"),
    "inf": lambda: float("inf"),
    "1e308": lambda: 1e308,
    "Decimal nan": lambda: Decimal("NaN"),
    "Decimal snan": lambda: Decimal("sNaN"),
    "Decimal huge": lambda: Decimal("1E+400"),
    "complex": lambda: 1j,
    "empty text": lambda: "",
    "text": lambda: "x",
    "a surrogate": lambda: "\ud800",
    "long text": lambda: "x" * 3000,
    "bytes": lambda: b"x",
    "empty list": list,
    "a list of objects": lambda: [object()],
    "a list of lists": lambda: [[1], ["x"]],
    "a list of None": lambda: [None],
    "a list of a surrogate": lambda: ["\ud800"],
    "empty dict": dict,
    "a dict with number keys": lambda: {1: 2},
    "a dict": lambda: {"x": object()},
    "a dict of text": lambda: {"team": "t", "id": 5},
    "a deep dict": lambda: {"x": [{"name": "n", "sizes": ["x"]}, None]},
    "a deep part": lambda: Part("p", more={"a": ["x"]}),  # type: ignore[list-item]
    "parts": lambda: [Part("p"), Part(5)],  # type: ignore[arg-type]
    "a dict of parts": lambda: {"a": [Part("p", sizes=[None])]},  # type: ignore[list-item]
    "a set": lambda: {"x", 5},
    "a tuple": lambda: ("x", 5),
    "object": object,
    "a generator": _generated,
    "a function": lambda: lambda: 5,
    "a failing function": lambda: lambda *_: str([][0]),
    "a class": lambda: Part,
    "an entity class": lambda: Wide,
    "an entity class of no design": lambda: Outsider,
    "an entity": wide,
    "an entity that cannot be stored": lambda: wide(count="x"),
    "an entity of no design": lambda: Outsider(id="1"),
    "a part": lambda: Part("p"),
    "a pattern": lambda: of_team,
    "a query": lambda: of_team("t", 1),
    "an undeclared query": lambda: find(Wide),
    "a field": lambda: Wide.count,
    "a condition": lambda: Wide.count == 5,
    "a strange condition": lambda: Outsider.id == "x",
    "a naive time": lambda: datetime(2026, 3, 1),
    "a time": lambda: NOW,
    "the last time": lambda: datetime.max.replace(tzinfo=UTC),
    "the first time": lambda: datetime.min.replace(tzinfo=UTC),
    "a day": lambda: date(2026, 3, 1),
    "a timedelta": lambda: timedelta(days=-1),
    "the longest timedelta": lambda: timedelta.max,
    "a slice": lambda: slice(0, 1),
    "a namespace": lambda: SimpleNamespace(id="1", team="t", count=1),
    "an enum": lambda: Colour.RED,
    "a uuid": lambda: uuid.UUID(int=1),
    "an error": lambda: ValueError("x"),
}

ID = {"team": "t", "id": "1"}
Made = tuple[list[Any], dict[str, Any]]


def db_calls() -> dict[str, Callable[[], Made]]:
    """A right call of every method of a Db, as its arguments."""
    return {
        "call": lambda: (["DescribeTable", {"TableName": "sweep"}], {"idempotent": True}),
        "ensure": lambda: ([TableSettings()], {}),
        "create": lambda: ([wide(id=str(uuid.uuid4()))], {"when": None, "once": False}),
        "put": lambda: ([wide()], {"when": None, "returns": None, "once": False}),
        "upsert": lambda: ([wide()], {"when": None, "once": False}),
        "get": lambda: ([Wide], ID | {"consistent": True, "include_expired": False}),
        "get_one": lambda: ([Wide], ID | {"include_deleted": False}),
        "get_many": lambda: ([Wide, [ID]], {"consistent": True}),
        "snapshot": lambda: ([Get(Wide, **ID), Get(Wide, **ID)], {"include_expired": False}),
        "exists": lambda: ([Wide], dict(ID)),
        "update": lambda: ([Wide], ID | {"when": None, "or_create": True, "returns": "new"}),
        "patch": lambda: ([Wide, {"count": 1}], ID | {"when": None, "returns": "new"}),
        "delete": lambda: ([Guarded], {"id": "1", "when": None, "purge": True}),
        "restore": lambda: ([Guarded], {"id": "1"}),
        "fetch": lambda: ([of_team("t", 1)], {"limit": 5, "consistent": None}),
        "page": lambda: ([of_team("t", 1)], {"limit": 5, "cursor": None}),
        "first": lambda: ([of_team("t", 1)], {"consistent": None}),
        "first_or_raise": lambda: ([of_team("t", 1)], {"include_expired": True}),
        "all": lambda: ([of_team("t", 1)], {"limit": 5}),
        "grouped": lambda: ([both("1")], {"limit": 5}),
        "count": lambda: ([of_team("t", 1)], {"consistent": None}),
        "explain": lambda: ([of_team("t", 1)], {}),
        "scan": lambda: ([Wide], {"allow": True, "segments": 1, "include_deleted": True}),
        "transaction": lambda: ([], {"token": "t"}),
        "write_many": lambda: ([[wide(), Delete(Wide, **ID)]], {"on_error": "raise"}),
        "delete_many": lambda: ([Wide, [ID]], {"on_error": "raise"}),
        "delete_where": lambda: (
            [of_team("t", 1)], {"dry_run": False, "limit": 5, "parallel": 2, "cursor": None,
                                "max_failures": 5, "on_progress": None}),
        "update_where": lambda: (
            [of_team("t", 1), lambda one: setattr(one, "note", "x")],
            {"dry_run": False, "limit": 5, "parallel": 2, "cursor": None, "on_progress": None}),
        "run": lambda: ([], {}),
        "within": lambda: ([5.0], {}),
    }  # fmt: skip


def transaction_calls() -> dict[str, Callable[[], Made]]:
    return {
        "create": lambda: ([wide(id="new")], {"when": None}),
        "put": lambda: ([wide()], {"when": None}),
        "delete": lambda: ([Wide], ID | {"when": None, "must_exist": False, "purge": False}),
        "check": lambda: ([Wide], ID | {"when": None, "must_exist": True}),
        "update": lambda: ([Wide], ID | {"when": None, "or_create": False}),
        "require": lambda: ([Wide.count == 5], {}),
        "include": lambda: ([lambda: iter(())], {}),
    }


MAKERS: dict[str, Callable[[Any], Any]] = {
    "Counter": lambda db: Counter(db, "views", shards=2),
    "Leaderboard": lambda db: Leaderboard(db, "game"),
    "Links": lambda db: Links(db, Guarded, Stranger),
    "Lock": lambda db: Lock(db, str(uuid.uuid4())),
    "Once": lambda db: Once(db, str(uuid.uuid4())),
    "Outbox": lambda db: Outbox(db, "mail", shards=1),
    "Sequence": lambda db: Sequence(db, str(uuid.uuid4())),
    "Series": lambda db: Series(db, Reading, by=Reading.sensor, at=Reading.at, name="plain"),
    "SeriesRollup": lambda db: summed(db).rollup("day", of=Reading.value),
    "Tree": lambda db: Tree(db, Leaf, name="files"),
    "UniqueAudit": lambda db: UniqueAudit(db, Guarded),
}
"""How each pattern object is made. A sweep fails for one that is not here."""


def summed(db: Any) -> Any:
    return Series(
        db, Reading, by="sensor", at="at", name="sums", rollups=[Rollup("day", of=Reading.value)]
    )


RIGHT: dict[str, Callable[[], Any]] = {
    # a right value for each parameter of the methods of pattern objects, by its name
    "amount": lambda: 1, "member": lambda: "m", "n": lambda: 2, "score": lambda: 5,
    "once": lambda: "o", "consistent": lambda: False, "exact": lambda: True,
    "limit": lambda: 5, "cursor": lambda: None, "left": lambda: Guarded(id="1", email=None),
    "right": lambda: Stranger(id="1"), "entity": lambda: Leaf(id=str(uuid.uuid4())),
    "old": lambda: Guarded(id="1", email=None), "new": lambda: Guarded(id="1", email=None),
    "wait_seconds": lambda: 0.0, "lease": lambda: None, "key": lambda: "k",
    "payload": lambda: None, "attempt": lambda: None, "result": lambda: 5,
    "work": lambda: lambda: 5, "message_id": lambda: "m", "tx": lambda: None,
    "topic": lambda: "t", "body": lambda: {"a": 1}, "message": lambda: None,
    "send": lambda: lambda *_: None, "keys": list, "make": lambda: lambda n: wide(id=str(n)),
    "reading": lambda: Reading(sensor="s", at=NOW), "on_error": lambda: "raise",
    "readings": lambda: [Reading(sensor="s", at=NOW)], "updates": lambda: None,
    "batch": lambda: "b", "by": lambda: "s", "start": lambda: NOW, "newest_first": lambda: True,
    "end": lambda: NOW + timedelta(days=2), "moment": lambda: date(2026, 1, 1),
    "confirm": lambda: False, "images": list, "include_expired": lambda: False,
    "period": lambda: "day", "of": lambda: Reading.value, "id": lambda: "a",
    "parent": lambda: None, "levels": lambda: 2, "older_than_seconds": lambda: 5.0,
    "shards": lambda: None,
}  # fmt: skip


def pattern_methods(kind: type[Any]) -> Iterator[tuple[str, inspect.Signature]]:
    """The public methods of a pattern object, with their signatures."""
    for name in dir(kind):
        found = inspect.getattr_static(kind, name)
        plan = getattr(found, "_plan", None) or getattr(found, "_start", None) or found
        # ``relaying`` returns work, which only workers run.
        if not name.startswith("_") and inspect.isfunction(plan) and name != "relaying":
            yield name, inspect.signature(plan)


def pattern_call(signature: inspect.Signature) -> Made:
    """A right call of a method, by the names of its parameters."""
    args: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in list(signature.parameters.items())[1:]:
        if parameter.kind is parameter.VAR_KEYWORD:
            named["since"] = 5
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            args.append(RIGHT[name]())
        else:
            named[name] = RIGHT[name]()
    return args, named


def _changes_of(name: str) -> dict[str, Callable[[Any, Any], Any]]:
    def of(update: Any) -> Any:
        return getattr(update, name)

    return {
        f"{name} =": lambda o, v: setattr(o, name, v),
        f"{name} +": lambda o, v: setattr(o, name, of(o) + v),
        f"{name} -": lambda o, v: setattr(o, name, of(o) - v),
        f"{name} |": lambda o, v: setattr(o, name, of(o) | v),
        f"{name} []": lambda o, v: of(o).__setitem__(v, 1),
        f"del {name} []": lambda o, v: of(o).__delitem__(v),
        f"{name} [x]": lambda o, v: of(o).__setitem__("x", v),
        f"{name} [0]": lambda o, v: of(o).__setitem__(0, v),
        f"{name} if": lambda o, v: setattr(o, name, if_not_exists(of(o), v)),
    }


def _calling(name: str, method: str, *more: Any) -> Callable[[Any, Any], Any]:
    return lambda update, value: getattr(getattr(update, name), method)(value, *more)


def update_changes() -> dict[str, Callable[[Any, Any], Any]]:
    """What may be done with a field inside an update, and a value."""
    made: dict[str, Callable[[Any, Any], Any]] = {}
    names = [name for name in Wide.__dataclass_fields__ if name not in ("team", "id", "revision")]
    for name in names:
        made |= _changes_of(name)
    for name in ("lines", "tags", "numbers", "parts", "count", "counts", "anything"):
        for method in ("append", "extend", "add", "update", "discard", "difference_update"):
            made[f"{name}.{method}"] = _calling(name, method)
        made[f"{name}.insert"] = _calling(name, "insert", 1)
    made["part.sizes"] = lambda o, v: setattr(o.part, "sizes", v)
    made["part.more"] = lambda o, v: setattr(o.part, "more", v)
    made["deep"] = lambda o, v: o.deep["a"].append(v)
    return made


# --- what comes out -------------------------------------------------------------------------------


_SELF_EXPLAINING = (ItemMismatch, ServiceError)
"""The error says what was expected, or what DynamoDB has answered."""


def complaint(call: Callable[[], Any]) -> str | None:
    """Carry out a call. Return what is wrong with the error it raises, or None.

    Only Stator's errors with a hint are right. Errors of the functions and objects that the sweep
    passes are their own matter.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            finish(call())
    except StatorError as error:
        if isinstance(error, UnknownOperation):
            return None  # AWS says no more
        if not error.message or "object at 0x" in error.message or len(error.message) > 1500:
            return f"a message that shows an object, or is long: {error.message[:200]}"
        if error.hint or isinstance(error, _SELF_EXPLAINING):
            return None
        return f"no hint: {type(error).__name__}: {error.message[:200]}"
    except Exception as error:
        if isinstance(error, TypeError) and "; call it as " in str(error):
            return None  # a missing or unknown argument of a pattern, which is documented
        frames = traceback.extract_tb(error.__traceback__)
        if frames[-1].filename == __file__ and len(frames) > 2:
            return None
        where = [f"{frame.filename[-50:]}:{frame.lineno}" for frame in frames[-3:]]
        return f"{type(error).__name__}: {str(error)[:150]} at {' '.join(where)}"
    return None


def finish(result: Any) -> None:
    """Read what a call has returned to its end, and enter and leave what is a block."""
    if hasattr(result, "__enter__"):
        with result as opened:
            if isinstance(opened, Symbol):
                opened.count = 5  # type: ignore[attr-defined]
    elif isinstance(result, Iterator):
        for _ in itertools.islice(result, 20):
            pass


def replaced(right: Callable[[], Made]) -> Iterator[tuple[str, str, Callable[[], Made]]]:
    """Yield the name of each argument with that of each value, and the arguments with it."""
    args, named = right()
    for which in (*range(len(args)), *named):
        for shown, value in VALUES.items():

            def wrong(which: Any = which, value: Callable[[], Any] = value) -> Made:
                args, named = right()
                if isinstance(which, int):
                    args[which] = value()
                else:
                    named[which] = value()
                return args, named

            yield str(which), shown, wrong
