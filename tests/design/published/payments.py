"""Recurring payments.

Sources: aws-samples/aws-dynamodb-examples,
schema_design/SchemaExamples/RecurringPayments/README.md, and "Recurring payments schema design in
DynamoDB" in the developer guide. Subscriptions and receipts are stored under their account. Two
indexes serve the daily jobs, by the date a reminder or a payment is due. The published indexes
project a few attributes. Patterns here return whole subscriptions, so both designs are priced with
all attributes.
"""

from __future__ import annotations

import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from stator import Entity, Query, creates, find, ident, per, read, ttl, updates, write

from .model import Difference, Keys, Model, Wanted, index_shapes, indexes_of

START = datetime(2023, 5, 1, tzinfo=UTC)
DAY = date(2023, 5, 28)


class Account(Entity):
    account_id: str = ident()
    email: str


class Subscription(Entity):
    account_id: str = ident()
    subscription_id: str = ident()
    sku: str = ident()
    email: str
    payment_day: int
    payment_amount: Decimal
    next_payment: date
    last_payment: date
    next_reminder: date
    last_reminder: date


class Receipt(Entity):
    account_id: str = ident()
    processed_at: datetime = ident()
    sku: str = ident()
    amount: Decimal
    expires: datetime | None = ttl(days=365, default=None)


@read(rps=20)
def account(account_id: str) -> Query[Account]:
    return find(Account).where(Account.account_id == account_id)


@read(rps=50, returns=2)
def subscriptions_of(account_id: str) -> Query[Subscription]:
    return find(Subscription).where(Subscription.account_id == account_id)


@read(rps=50)
def subscription(account_id: str, subscription_id: str, sku: str) -> Query[Subscription]:
    return find(Subscription).where(
        Subscription.account_id == account_id,
        Subscription.subscription_id == subscription_id,
        Subscription.sku == sku,
    )


@read(rps=50, returns=12)
def receipts_of(account_id: str) -> Query[Receipt]:
    return find(Receipt).where(Receipt.account_id == account_id).newest_first(Receipt.processed_at)


@read(rps=0.01, returns=2_000)
def due_reminders(day: date) -> Query[Subscription]:
    return find(Subscription).where(Subscription.next_reminder == day)


@read(rps=0.01, returns=2_000)
def due_payments(day: date) -> Query[Subscription]:
    return find(Subscription).where(Subscription.next_payment == day)


@write(rps=1)
def subscribe() -> object:
    return creates(Subscription)


@write(rps=5)
def process_payment() -> object:
    return creates(Receipt), updates(Subscription.next_payment, Subscription.last_payment)


@write(rps=5)
def remind() -> object:
    return updates(Subscription.next_reminder, Subscription.last_reminder)


def objects(chance: random.Random) -> list[Any]:
    found: list[Any] = []
    for at in range(12):
        found.append(Account(account_id=f"{at}", email=f"{at}@x.org"))
        for number in range(2):
            due = DAY + timedelta(days=chance.randrange(3))
            found.append(
                Subscription(
                    account_id=f"{at}",
                    subscription_id=f"sub{number}",
                    sku="999",
                    email=f"{at}@x.org",
                    payment_day=due.day,
                    payment_amount=Decimal("9.99"),
                    next_payment=due,
                    last_payment=due - timedelta(days=30),
                    next_reminder=due - timedelta(days=2),
                    last_reminder=due - timedelta(days=32),
                )
            )
        for month in range(4):
            when = START + timedelta(days=30 * month, hours=at)
            found.append(
                Receipt(account_id=f"{at}", processed_at=when, sku="999", amount=Decimal("9.99"))
            )
    return found


MODEL = Model(
    name="payments",
    entities=(Account, Subscription, Receipt),
    patterns=(
        account,
        subscriptions_of,
        subscription,
        receipts_of,
        due_reminders,
        due_payments,
        subscribe,
        process_payment,
        remind,
    ),
    volumes={Account: 1_000_000, Subscription: per(Account, 2), Receipt: per(Subscription, 12)},
    keys={
        Account: Keys(("ACC#{account_id}", "ACC")),
        Subscription: Keys(
            ("ACC#{account_id}", "SUB#{subscription_id}#SKU#{sku}"),
            {
                "GSI-1": ("{next_reminder}", "{last_reminder}"),
                "GSI-2": ("{next_payment}", "{last_payment}"),
            },
        ),
        Receipt: Keys(("ACC#{account_id}", "REC#{processed_at}#SKU#{sku}")),
    },
    plain=frozenset({"GSI-1", "GSI-2"}),
    paths={
        "account": Wanted("GetItem", "table", ("account_id",)),
        "subscriptions_of": Wanted("Query", "table", ("account_id",)),
        "subscription": Wanted("GetItem", "table", ("account_id",)),
        "receipts_of": Wanted("Query", "table", ("account_id",), ("processed_at",)),
        "due_reminders": Wanted("Query", "index", ("next_reminder",)),
        "due_payments": Wanted("Query", "index", ("next_payment",)),
    },
    objects=objects,
    calls=(
        ("account", {"account_id": "3"}),
        ("subscriptions_of", {"account_id": "1"}),
        ("subscription", {"account_id": "11", "subscription_id": "sub1", "sku": "999"}),
        ("receipts_of", {"account_id": "10"}),
        ("due_reminders", {"day": DAY}),
        ("due_payments", {"day": DAY}),
    ),
    differences={
        "Subscription": Difference(
            "No pattern orders what is due by the last payment or reminder, so those are not in "
            "a key. The indexes hold only keys: reading what is due once a day costs less than "
            "writing whole subscriptions at every change.",
            lambda ours, theirs: (
                [each.projection for each in indexes_of(ours)] == ["KEYS_ONLY", "KEYS_ONLY"]
                and {sort for _, sort in index_shapes(ours, Subscription)} == {()}
                and {sort for _, sort in index_shapes(theirs, Subscription)}
                == {("last_payment",), ("last_reminder",)}
            ),
        ),
    },
)
