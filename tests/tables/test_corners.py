"""Corners where a data layer goes wrong quietly: each of these once did."""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import socket
import threading
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest

from stator import (
    Design,
    Entity,
    Query,
    TableSettings,
    adapt,
    connect,
    connect_async,
    created,
    encrypted,
    find,
    ident,
    if_not_exists,
    large,
    read,
    ttl,
    unique,
    updated,
    updates,
    version,
    write,
)
from stator.addresses import EngineTransport
from stator.clock import VirtualClock
from stator.engine import Engine
from stator.errors import (
    ConditionFailed,
    DeadlineExceeded,
    DesignError,
    IdempotentParameterMismatch,
    ReplyLost,
    ServiceError,
    Throttled,
    TransactionFailed,
    UniqueTaken,
    UpdateRefused,
)
from stator.tables.blobs.stores import FolderStore
from stator.tables.db import Db
from stator.tables.runner import Runner
from tests.targets import Target

from .shop import (
    T0,
    Order,
    Product,
    Session,
    Status,
    User,
    order,
    orders_in_status,
    orders_of_user,
    shop,
    user,
)


class Account(Entity):
    number: str = ident()
    balance: int = 0
    limit: int = 0
    state: str = "open"
    moves: list[str] | None = None


class Member(Entity):
    member_id: str = ident()
    email: str | None = unique(default=None)
    score: int = 0
    expires: datetime | None = ttl(hours=1, default=None)
    rev: int = version()


class Note(Entity):
    note_id: str = ident()
    topic: str
    text: str = ""
    written: datetime = created()
    changed: datetime = updated()


@read(rps=50)
def accounts_in(state: str) -> Query[Account]:
    return find(Account).where(Account.state == state)


@read(rps=500)
def account(number: str) -> Query[Account]:
    return find(Account).where(Account.number == number)


@write(rps=5)
def close_account() -> object:
    return updates(Account.state, Account.balance)


@read(rps=50)
def member(member_id: str) -> Query[Member]:
    return find(Member).where(Member.member_id == member_id)


@read(rps=50)
def newest_notes(topic: str) -> Query[Note]:
    return find(Note).where(Note.topic == topic).newest_first(Note.written)


@read(rps=50)
def three_notes(topic: str) -> Query[Note]:
    return find(Note).where(Note.topic == topic).newest_first(Note.written).limit(3)


DESIGN = Design(
    "corners",
    [Account, Member, Note],
    [accounts_in, account, close_account, member, newest_notes, three_notes],
)


# --- conditions ---------------------------------------------------------------------------------------------


def test_all_conditions_of_an_update_hold(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Account(number="a", balance=5, limit=9))
    with (
        pytest.raises(TransactionFailed),
        db.transaction() as tx,
        tx.update(Account, number="a") as a,
    ):
        a.balance -= 30
        tx.require(Account.balance >= 30)
        tx.require(Account.limit >= 1)
    change = db.update(Account, number="a", when=Account.balance >= 30)
    with pytest.raises(ConditionFailed), change as a:
        a.balance -= 30
        change.require(Account.limit >= 1)
    assert db.get(Account, number="a", consistent=True) == Account(number="a", balance=5, limit=9)


def test_fields_beside_the_key_must_be_so(target: Target) -> None:
    db = target.connect(DESIGN)
    db.create(Account(number="a", balance=5))
    assert db.get(Account, number="a", balance=5) is not None
    assert db.get(Account, number="a", balance=6) is None
    with pytest.raises(ConditionFailed):
        db.delete(Account, number="a", balance=6)
    with pytest.raises(ConditionFailed), db.update(Account, number="a", state="closed") as a:
        a.balance = 0
    db.delete(Account, number="a", balance=5)
    db.delete(Account, number="a", balance=5)


# --- unique -------------------------------------------------------------------------------------------------


def test_a_unique_value_is_never_computed_by_the_service() -> None:
    db = connect(DESIGN)
    db.create(Member(member_id="m1"))
    with pytest.raises(UpdateRefused, match="unique"), db.update(Member, member_id="m1") as m:
        m.email = if_not_exists(m.email, "same@example.com")


def test_guards_stay_where_they_are_when_the_design_grows() -> None:
    engine = Engine.open()
    small = Design("grows", [User], [], layout="table-per-entity")
    connect(small, engine).create(user(1))
    class_first = Design("grows", [Account, User], [], layout="table-per-entity")
    thief = user(2)
    thief.email = "u1@example.com"
    with pytest.raises(UniqueTaken):
        connect(class_first, engine).create(thief)


def test_one_entity_with_guards_and_records_can_be_scanned() -> None:
    db = connect(Design("one", [User]))
    db.create(user(1))
    assert [each.user_id for each in db.scan(User, allow=True)] == ["u1"]


def test_a_value_is_handed_over_in_one_transaction(target: Target) -> None:
    db = target.connect(shop())
    one, two = user(1), user(2)
    db.create(one)
    two.email = one.email
    with db.transaction() as tx:
        tx.delete(User, user_id="u1")
        tx.create(two)
    assert db.get(User, user_id="u2", consistent=True) == two
    three = user(3)
    three.email = two.email
    with pytest.raises(UniqueTaken):
        db.create(three)


def test_what_has_expired_is_in_nobodys_way() -> None:
    clock = VirtualClock()
    db = connect(DESIGN, clock=clock)
    db.create(Member(member_id="m1", email="e@example.com"))
    clock.advance(4000)
    db.create(Member(member_id="m2", email="e@example.com"))
    db.delete(Member, member_id="m1")  # its guard is another's by now
    db.put(Member(member_id="m3", score=1))
    clock.advance(4000)
    db.put(Member(member_id="m3", score=2))
    with db.update(Member, member_id="m2", or_create=True) as m:
        m.score += 5
    found = db.get(Member, member_id="m2")
    assert found is not None and found.score == 5 and found.email is None
    assert db.count(member("m1")) == 0 and db.count(member("m2")) == 1
    clock.advance(4000)
    assert db.count(member("m2")) == 0


def test_a_guard_made_by_an_update_expires_with_its_item() -> None:
    clock = VirtualClock()
    db = connect(DESIGN, clock=clock)
    with db.update(Member, member_id="m1", or_create=True) as m:
        m.email = "e@example.com"
    clock.advance(4000)
    db.create(Member(member_id="m2", email="e@example.com"))


# --- updates that create, remove, and are sent again --------------------------------------------------------


def test_an_update_that_creates_stores_the_defaults(target: Target) -> None:
    db = target.connect(DESIGN)
    with db.update(Account, number="a", or_create=True, returns="old") as a:
        a.balance += 1
    assert [each.number for each in db.fetch(accounts_in("open"))] == ["a"]
    with db.update(Account, number="a", when=Account.state == "open") as a:
        a.state = "closed"
    with db.update(Account, number="a") as a:
        del a.state
    assert [each.number for each in db.fetch(accounts_in("open"))] == ["a"]


class Losing:
    """A transport that carries the first write of a kind out and says nothing of it, as a network may."""

    parallel = False

    def __init__(self, engine: Engine, operation: str, error: ServiceError) -> None:
        self._inner = EngineTransport(engine)
        self._operation = operation
        self._error = error

    def call(
        self, operation: str, request: Mapping[str, Any], *, idempotent: bool = True, **more: Any
    ) -> dict[str, Any]:
        answer = self._inner.call(operation, request)
        if operation == self._operation:
            self._operation = ""
            self._error.after_unknown = True
            raise self._error
        return answer

    def close(self) -> None:
        self._inner.close()


class Document(Entity):
    doc_id: str = ident()
    scan: bytes = large(compress=None, offload_over_bytes=2_000, default=b"")
    parts: dict[str, str] = large(default=None)  # type: ignore[assignment]


def test_a_blob_whose_write_may_have_happened_is_kept(tmp_path: Path) -> None:
    engine = Engine.open()
    design = Design("docs", [Document])
    db = connect(design, engine, blobs=FolderStore(tmp_path))
    losing = Db(
        db.context, Runner(Losing(engine, "PutItem", Throttled("slow down")), db.context.clock)
    )
    with pytest.raises(Throttled):
        losing.put(Document(doc_id="d", scan=b"x" * 5000, parts={}))
    found = db.get(Document, doc_id="d")
    assert found is not None and found.scan == b"x" * 5000


def test_a_dictionary_that_looks_packed_is_not(tmp_path: Path) -> None:
    db = connect(Design("docs", [Document]), blobs=FolderStore(tmp_path))
    there = Document(doc_id="d", parts={"stator": "zstd", "data": "x"})
    db.put(there)
    assert db.get(Document, doc_id="d") == there


def test_actions_on_list_places_count_as_relative() -> None:
    from stator.tables.writes.recorder import Recorder, Recording

    of = connect(DESIGN).context.schema.of(Account)
    recording = Recording(of)
    del Recorder(recording).moves[0]  # type: ignore[attr-defined]
    assert recording.relative


# --- times and versions -------------------------------------------------------------------------------------


def test_an_upsert_keeps_index_keys_and_times_in_step(target: Target) -> None:
    clock = VirtualClock(datetime(2026, 11, 1, tzinfo=UTC).timestamp())
    db = target.connect(DESIGN, clock=clock)
    db.upsert(Note(note_id="n1", topic="t"))
    clock.advance(60)
    db.upsert(Note(note_id="n2", topic="t"))
    clock.advance(60)
    again = db.upsert(Note(note_id="n1", topic="t", text="changed"))
    assert again.text == "changed"
    assert [each.note_id for each in db.fetch(newest_notes("t"))] == ["n2", "n1"]
    db.upsert(again)
    assert len(list(db.scan(Note, allow=True))) == 2


def test_objects_are_brought_up_to_date_by_every_kind_of_update(target: Target) -> None:
    db = target.connect(DESIGN)
    there = Member(member_id="m1", email="e@example.com")
    db.create(there)
    with db.transaction() as tx, tx.update(there) as m:
        m.score = 3
    assert (there.rev, there.score) == (2, 3)
    change = db.update(there, returns="old")
    with change as m:
        m.score = 4
    assert (there.rev, there.score) == (3, 4)
    assert change.result is not None and change.result.score == 3
    db.put(there)
    assert there.rev == 4


def test_an_expiry_taken_away_stays_away() -> None:
    db = connect(DESIGN)
    there = Member(member_id="m1")
    db.create(there)
    there.expires = None
    db.put(there)
    assert there.expires is None


def test_a_token_does_it_once_whatever_is_stamped(target: Target) -> None:
    db = target.connect(DESIGN)
    for _ in range(3):
        with db.transaction(token="note-1") as tx:
            tx.create(Note(note_id="n1", topic="t"))
            with tx.update(Account, number="a", or_create=True) as a:
                a.balance += 1
        time.sleep(0.002)
    found = db.get(Account, number="a", consistent=True)
    assert found is not None and found.balance == 1
    with pytest.raises(IdempotentParameterMismatch), db.transaction(token="note-1") as tx:
        tx.create(Note(note_id="n2", topic="t"))


# --- pages --------------------------------------------------------------------------------------------------


def test_a_declared_limit_holds_for_pages_and_counts(target: Target) -> None:
    db = target.connect(DESIGN)
    db.write_many(Note(note_id=f"n{n}", topic="t") for n in range(8))
    assert len(list(db.fetch(three_notes("t")))) == 3
    page = db.page(three_notes("t"), limit=2)
    assert len(page) == 2
    rest = db.page(three_notes("t"), limit=2, cursor=page.cursor)
    assert (len(rest), rest.cursor) == (1, None)
    assert db.count(three_notes("t")) == 3


def test_a_first_time_to_live_can_be_added_later() -> None:
    engine = Engine.open()
    connect(Design("later", [Product]), engine)
    db = connect(Design("later", [Product, Session]), engine)
    assert db.ensure(TableSettings(deletion_protection=True))
    assert db.ensure(TableSettings(deletion_protection=True)) == []


# --- models of other libraries ------------------------------------------------------------------------------


class FrozenModel(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)
    item_id: str
    owner: str = ""
    count: int = 0
    rev: int = 0


class Struct(msgspec.Struct, frozen=True):
    item_id: str
    count: int = 0
    seen: datetime | None = None


Frozen = adapt(FrozenModel, ident="item_id", markers={"rev": version()})
Packed = adapt(Struct, ident="item_id")


@read(rps=500)
def frozen(item_id: str) -> Query[FrozenModel]:
    return find(Frozen).where(Frozen.item_id == item_id)


@write(rps=5)
def change_owner() -> object:
    return updates(Frozen.owner)


@read(rps=5)
def by_owner(owner: str) -> Query[FrozenModel]:
    return find(Frozen).where(Frozen.owner == owner)


def test_models_that_cannot_change_are_written_and_updated() -> None:
    db = connect(Design("models", [Frozen, Packed], [by_owner, frozen, change_owner]))  # type: ignore[list-item]
    there = Frozen(item_id="a", owner="o")
    db.put(there)
    stored = db.get(Frozen, item_id="a")
    assert stored is not None and (stored.rev, there.rev) == (1, 0)
    with db.update(stored) as m:
        m.count += 2
    assert [each.count for each in db.fetch(by_owner("o"))] == [2]
    with db.update(Packed, item_id="b", or_create=True) as p:
        p.count += 1
    assert db.get(Packed, item_id="b") == Struct("b", 1)


def test_a_marker_that_is_not_honoured_is_refused() -> None:
    class Secret(Entity):
        secret_id: str = ident()
        text: str = encrypted(default="")

    with pytest.raises(DesignError, match="encrypted"):
        connect(Design("secrets", [Secret]))


# --- processes, sockets and time ----------------------------------------------------------------------------


def _in_a_fork(db: Db, answers: Any) -> None:
    answers.put(len(db.get_many(Product, [f"s{n}" for n in range(250)])))


def test_threads_work_in_a_fork(target: Target) -> None:
    if target.kind != "http":
        pytest.skip("only calls over a network run in threads")
    db = target.connect(shop())
    db.write_many(Product(sku=f"s{n}") for n in range(250))
    db.get_many(Product, [f"s{n}" for n in range(250)])
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    child = context.Process(target=_in_a_fork, args=(db, answers))
    child.start()
    assert answers.get(timeout=30) == 250
    child.join()


def test_many_open_files_are_no_obstacle(target: Target) -> None:
    if target.kind != "http":
        pytest.skip("only for sockets")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 3000:
        pytest.skip("this machine allows too few open files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 3000), hard))
    opened = [socket.socket() for _ in range(1100)]
    try:
        db = target.connect(shop())
        db.put(Product(sku="s1"))
        time.sleep(1.1)
        assert db.get(Product, sku="s1") is not None
    finally:
        for each in opened:
            each.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_deadline_is_for_the_whole_answer() -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000
    dripped: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def drip() -> None:
            here, _ = listener.accept()
            with here:
                here.recv(65536)
                try:
                    for letter in answer:
                        here.sendall(bytes([letter]))
                        dripped.append(letter)
                        time.sleep(0.02)
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        db = connect(
            shop(), address, access_key_id="a", secret_access_key="b", max_attempts=1, proxy=None
        )
        with pytest.raises((DeadlineExceeded, ReplyLost)):
            db.within(0.3).get(Product, sku="s1")
        db.close()
        thread.join()
    assert len(dripped) < len(answer)  # it gave up before the answer was there


def test_a_blob_store_that_fails_raises_its_own_error_awaited(tmp_path: Path) -> None:
    class Broken(FolderStore):
        def put(self, key: str, content: bytes) -> None:
            raise OSError("the store is down")

    async def main() -> None:
        async with connect_async(Design("docs", [Document]), blobs=Broken(tmp_path)) as db:
            with pytest.raises(OSError, match="down"):
                await db.put(Document(doc_id="d", scan=b"x" * 5000, parts={}))

    asyncio.run(main())


def test_raw_calls_say_whether_they_may_be_repeated() -> None:
    seen: list[tuple[str, bool, bool]] = []

    class Watching(EngineTransport):
        def call(
            self,
            operation: str,
            request: Mapping[str, Any],
            *,
            idempotent: bool = True,
            **more: Any,
        ) -> dict[str, Any]:
            seen.append((operation, idempotent, "ClientRequestToken" in request))
            return super().call(operation, request)

    engine = Engine.open()
    db = connect(shop(), engine)
    watched = Db(db.context, Runner(Watching(engine), db.context.clock))
    of = db.context.schema.of(Product)
    key = of.key_from({"sku": "s1"})
    update = {
        "TableName": "shop",
        "Key": key,
        "UpdateExpression": "ADD n :n",
        "ExpressionAttributeValues": {":n": {"N": "1"}},
    }
    watched.call("UpdateItem", update)
    watched.call("UpdateItem", update, idempotent=True)
    watched.call("TransactWriteItems", {"TransactItems": [{"Update": update}]})
    assert seen == [
        ("UpdateItem", False, False),
        ("UpdateItem", True, False),
        ("TransactWriteItems", True, True),
    ]


def test_the_shop_of_the_other_tests_has_an_index_by_status() -> None:
    db = connect(shop())
    there = order(1, total=Decimal(3))
    db.put(there)
    with db.transaction() as tx, tx.update(there) as o:
        o.status = Status.SHIPPED
    assert there.status is Status.SHIPPED
    assert [each.order_id for each in db.fetch(orders_in_status(Status.SHIPPED, T0))] == ["o001"]
    assert isinstance(db.first(orders_of_user("u1")), Order)
