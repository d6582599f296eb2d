"""Lookups by a unique field through its guard, where that is cheaper than an index."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import orjson

from stator import Design, Entity, Query, find, ident, read, soft_delete, ttl, unique
from stator.design.export.iam import policy
from stator.design.plan.plan import Plan
from tests.targets import Target


class Account(Entity):
    account_id: str = ident()
    email: str = unique()
    number: int | None = unique(default=None)
    expires: datetime | None = ttl(default=None)
    removed_at: datetime | None = soft_delete()


@read(rps=1)
def by_email(email: str) -> Query[Account]:
    return find(Account).where(Account.email == email)


@read(rps=1, consistent=True)
def by_number(number: int) -> Query[Account]:
    return find(Account).where(Account.number == number)


DESIGN = Design(
    "accounts",
    [Account],
    [by_email, by_number],
    volumes={Account: 1_000_000},
    writes={Account: 10},
)


def test_the_plan_has_no_index_and_looks_the_guard_up() -> None:
    plan = DESIGN.plan()
    assert plan.tables[0].indexes == ()
    planned = plan.pattern("by_email")
    assert (planned.operation, planned.units_per_call) == ("GetItem", 1.0)
    assert planned.request(email="a@b") == {
        "TableName": "accounts-stator",
        "Key": {"PK": {"S": "UNIQUE#Account#email#a@b"}, "SK": {"S": "GUARD"}},
    }
    assert plan.pattern("by_number").units_per_call == 2.0
    assert Plan.from_json(plan.to_json()) == plan


def test_an_index_serves_a_lookup_that_runs_often() -> None:
    @read(rps=5_000)
    def by_email(email: str) -> Query[Account]:
        return find(Account).where(Account.email == email)

    plan = Design("accounts", [Account], [by_email], volumes={Account: 10_000}).plan()
    assert plan.pattern("by_email").index == "GSI1"


def test_a_locked_index_stays() -> None:
    @read(rps=5_000)
    def by_email(email: str) -> Query[Account]:
        return find(Account).where(Account.email == email)

    often = Design("accounts", [Account], [by_email], volumes={Account: 10_000})
    seldom = Design("accounts", [Account], [globals()["by_email"]], volumes={Account: 1_000_000})
    seldom.lock = often.plan()
    assert seldom.plan().pattern("by_email").index == "GSI1"


def test_items_are_found_by_their_unique_values(target: Target) -> None:
    db = target.connect(DESIGN)
    long = "x" * 1500
    db.create(Account(account_id="a", email="a@b", number=7))
    db.create(Account(account_id="b", email=long))
    assert db.first(by_email("a@b")) == db.get(Account, account_id="a")
    assert db.first(by_email(long)) == db.get(Account, account_id="b")
    assert db.all(by_email("nobody")) == []
    assert db.count(by_email("a@b")) == 1
    assert [each.account_id for each in db.page(by_number(7), limit=5)] == ["a"]
    assert db.all(by_email("a@b").only(Account.account_id)) == [("a",)]
    with db.update(Account, account_id="a") as account:
        account.email = "c@d"
    assert db.all(by_email("a@b")) == []
    assert [each.account_id for each in db.fetch(by_email("c@d"))] == ["a"]
    db.delete(Account, account_id="a")
    assert db.all(by_email("c@d")) == []
    db.restore(Account, account_id="a")
    assert [each.account_id for each in db.fetch(by_email("c@d"))] == ["a"]


def test_expired_items_are_not_found(target: Target) -> None:
    db = target.connect(DESIGN)
    past = datetime.now(UTC) - timedelta(hours=1)
    db.create(Account(account_id="a", email="a@b", expires=past))
    assert db.all(by_email("a@b")) == []


def test_a_guard_that_is_behind_its_item_finds_nothing(target: Target) -> None:
    """As an eventually consistent read of the guard may be."""
    db = target.connect(DESIGN)
    db.create(Account(account_id="a", email="new@b"))
    request = db.context.schema.plan.pattern("by_email").request(email="old@b")
    owner = db.context.schema.plan.entity(Account).base_key(account_id="a")
    item = request["Key"] | {"owner": {"S": orjson.dumps(owner).decode()}}
    db.call("PutItem", {"TableName": request["TableName"], "Item": item})
    assert db.all(by_email("old@b")) == []


def test_a_policy_allows_the_lookup() -> None:
    document = orjson.loads(policy(DESIGN.plan(), patterns=("by_email",)).text)
    allowed = {
        (action, statement["Resource"].rsplit("/", 1)[-1])
        for statement in document["Statement"]
        for action in statement["Action"]
    }
    assert allowed == {
        ("dynamodb:GetItem", "accounts-stator"),
        ("dynamodb:BatchGetItem", "accounts"),
    }
