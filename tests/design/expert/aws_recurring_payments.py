"""Published: AWS's recurring payments schema."""

from datetime import date, datetime

from stator import (
    Design,
    Entity,
    Query,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    updates,
    write,
)

SOURCE = (
    "AWS developer guide, recurring payments. From memory; confidence high. Subscriptions and "
    "receipts are "
    "in the account's partition; two indexes whose partition is a date: next reminder, next "
    "payment."
)


class Account(Entity):
    account_id: str = ident()
    email: str
    name: str


class Subscription(Entity):
    account_id: str = ident()
    subscription_id: str = ident()
    sku: str
    payment_day: int
    amount_cents: int
    next_payment: date
    last_payment: date | None = None
    next_reminder: date
    last_reminder: date | None = None
    payment_details: str
    created_at: datetime


class Receipt(Entity):
    account_id: str = ident()
    processed_at: datetime = ident()
    subscription_id: str = ident()
    amount_cents: int
    details: str


@read(rps=50)
def account(account_id: str) -> Query[Account]:
    return find(Account).where(Account.account_id == account_id)


@read(rps=40, returns=3)
def subscriptions_of(account_id: str) -> Query[Subscription]:
    return find(Subscription).where(Subscription.account_id == account_id)


@read(rps=30)
def subscription(account_id: str, subscription_id: str) -> Query[Subscription]:
    return find(Subscription).where(
        Subscription.account_id == account_id, Subscription.subscription_id == subscription_id
    )


@read(rps=15, returns=12)
def receipts_of(account_id: str) -> Query[Receipt]:
    return (
        find(Receipt)
        .where(Receipt.account_id == account_id)
        .newest_first(Receipt.processed_at)
        .limit(12)
    )


@read(rps=0.001, returns=60_000)
def payments_due_on(day: date) -> Query[Subscription]:
    return find(Subscription).where(Subscription.next_payment == day)


@read(rps=0.001, returns=60_000)
def reminders_due_on(day: date) -> Query[Subscription]:
    return find(Subscription).where(Subscription.next_reminder == day)


@write(rps=0.05)
def subscribe() -> object:
    return creates(Subscription)


@write(rps=0.7)
def pay() -> object:
    return (
        updates(Subscription.next_payment, Subscription.last_payment, Subscription.next_reminder),
        creates(Receipt),
    )


@write(rps=0.7)
def remind() -> object:
    return updates(Subscription.last_reminder)


design = Design(
    "aws_recurring_payments",
    [Account, Subscription, Receipt],
    [
        account,
        subscriptions_of,
        subscription,
        receipts_of,
        payments_due_on,
        reminders_due_on,
        subscribe,
        pay,
        remind,
    ],
    facts=[
        distinct(Subscription.next_payment, values=31),
        distinct(Subscription.next_reminder, values=31),
    ],
    volumes={Account: 600_000, Subscription: per(Account, 3), Receipt: per(Subscription, 24)},
    sizes={Account: 300, Subscription: 450, Receipt: 400},
)

EXPECTED = {
    "max_indexes": 2,
    "published_indexes": 2,
    "entities": {
        "Account": {"partition": ["account_id"], "sort": []},
        "Subscription": {"partition": ["account_id"], "sort": ["subscription_id"]},
        "Receipt": {"partition": ["account_id"], "sort": ["processed_at", "subscription_id"]},
    },
    "patterns": {
        "account": {"by": "base"},
        "subscriptions_of": {"by": "base"},
        "subscription": {"by": "base"},
        "receipts_of": {"by": "base"},
        "payments_due_on": {
            "by": "index",
            "partition": ["next_payment"],
            "sort": [],
            "or": [{"by": "index", "partition": ["next_payment"], "sort": ["last_payment"]}],
        },
        "reminders_due_on": {
            "by": "index",
            "partition": ["next_reminder"],
            "sort": [],
            "or": [{"by": "index", "partition": ["next_reminder"], "sort": ["last_reminder"]}],
        },
    },
    "no_index_on": ["Receipt"],
}
WHY = {
    "payments_due_on": "AWS sorts by the last payment, so that a job that is repeated skips "
    "what is "
    "done; without that in the pattern, the date alone is the key.",
}
