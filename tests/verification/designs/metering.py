"""Usage metering: customers, raw usage records, daily totals, invoices."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from enum import Enum

from stator import (
    Count,
    Design,
    Entity,
    Query,
    attr,
    creates,
    find,
    ident,
    largest,
    per,
    read,
    share,
    ttl,
    updates,
    version,
    write,
)


class Plan(Enum):
    FREE = "free"
    TEAM = "team"
    ENTERPRISE = "enterprise"


class Customer(Entity):
    customer_id: str = ident()
    plan: Plan
    name: str


class UsageRecord(Entity):
    customer_id: str = ident()
    at: datetime = ident()
    record_id: str = ident()
    meter: str
    quantity: Decimal
    expires_at: datetime | None = ttl(days=90, default=None)


class DailyTotal(Entity):
    customer_id: str = ident()
    meter: str = ident()
    day: date = ident()
    quantity: Decimal
    rev: int = version()


class Invoice(Entity):
    invoice_id: str = ident()
    customer_id: str
    month: str
    status: str
    total: Decimal


@read(rps=20, returns=2_000)
def usage_between(customer_id: str, start: datetime, end: datetime) -> Query[UsageRecord]:
    return find(UsageRecord).where(
        UsageRecord.customer_id == customer_id, attr(UsageRecord.at).between(start, end)
    )


@read(rps=2, returns=400)
def usage_of_meter(customer_id: str, meter: str, start: datetime) -> Query[UsageRecord]:
    return (
        find(UsageRecord)
        .where(UsageRecord.customer_id == customer_id, UsageRecord.at >= start)
        .filter(UsageRecord.meter == meter)
    )


@read(rps=50, returns=30)
def daily(customer_id: str, meter: str, start: date) -> Query[DailyTotal]:
    return find(DailyTotal).where(
        DailyTotal.customer_id == customer_id, DailyTotal.meter == meter, DailyTotal.day >= start
    )


@read(rps=10)
def invoices_of(customer_id: str) -> Query[Invoice]:
    return find(Invoice).where(Invoice.customer_id == customer_id).order_by(Invoice.month)


@read(rps=1, returns=100)
def overdue() -> Query[Invoice]:
    return find(Invoice).where(Invoice.status == "overdue").limit(100)


@read(rps=0.1)
def overdue_count() -> Count[Invoice]:
    return find(Invoice).where(Invoice.status == "overdue").count()


@read(rps=0.1, returns=50)
def enterprise_customers() -> Query[Customer]:
    return find(Customer).where(Customer.plan == Plan.ENTERPRISE)


@write(rps=2000)
def add_total() -> object:
    return updates(DailyTotal.quantity)


@write(rps=5)
def pay() -> object:
    return updates(Invoice.status)


@write(rps=1)
def issue() -> object:
    return creates(Invoice), updates(Customer.plan, times=0.25)


metering = Design(
    "metering",
    [Customer, UsageRecord, DailyTotal, Invoice],
    [
        usage_between, usage_of_meter, daily, invoices_of, overdue, overdue_count,
        enterprise_customers, add_total, pay, issue,
    ],
    volumes={
        Customer: 5_000, UsageRecord: per(Customer, 60_000), DailyTotal: per(Customer, 6 * 365),
        Invoice: per(Customer, 24),
    },
    writes={UsageRecord: 1_500},
    facts=[share(Invoice.status == "overdue", 0.01), largest(UsageRecord.customer_id, 0.2)],
)  # fmt: skip
