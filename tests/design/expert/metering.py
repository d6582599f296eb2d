"""Usage metering: tenants, meters, hourly usage, invoices. The largest tenant makes 30 % of it."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    attr,
    counter,
    creates,
    distinct,
    find,
    ident,
    largest,
    per,
    read,
    share,
    together,
    ttl,
    unique,
    updates,
    write,
)


class Tenant(Entity):
    tenant_id: str = ident()
    billing_email: str = unique()
    plan: Literal["free", "team", "business", "enterprise"]
    name: str


class ApiKey(Entity):
    key_hash: str = ident()
    tenant_id: str
    created_at: datetime


class Meter(Entity):
    tenant_id: str = ident()
    meter_id: str = ident()
    unit: str


class HourlyUsage(Entity):
    tenant_id: str = ident(stored="t")
    meter_id: str = ident(stored="m")
    hour: datetime = ident(stored="h")
    quantity: int = counter(stored="q")
    expires: datetime | None = ttl(days=120, default=None, stored="x")


class DailyUsage(Entity):
    tenant_id: str = ident()
    day: date = ident()
    meter_id: str = ident()
    quantity: int


class Invoice(Entity):
    tenant_id: str = ident()
    period: str = ident()  # 2026-03
    number: str = unique()
    total: Decimal
    issued_at: datetime
    unpaid_due: date | None = None  # present until it is paid: 3 % of all invoices


class InvoiceLine(Entity):
    tenant_id: str = ident()
    period: str = ident()
    meter_id: str = ident()
    quantity: int
    amount: Decimal


@read(rps=15_000)
def tenant_of_key(key_hash: str) -> Query[ApiKey]:
    return find(ApiKey).where(ApiKey.key_hash == key_hash)


@read(rps=2, returns=3)
def keys_of_tenant(tenant_id: str) -> Query[ApiKey]:
    return find(ApiKey).where(ApiKey.tenant_id == tenant_id)


@read(rps=400)
def tenant(tenant_id: str) -> Query[Tenant]:
    return find(Tenant).where(Tenant.tenant_id == tenant_id)


@read(rps=1)
def tenant_by_email(billing_email: str) -> Query[Tenant]:
    return find(Tenant).where(Tenant.billing_email == billing_email)


@read(rps=50, returns=20)
def meters_of(tenant_id: str) -> Query[Meter]:
    return find(Meter).where(Meter.tenant_id == tenant_id)


@read(rps=120, returns=168)
def hours_of_meter(
    tenant_id: str, meter_id: str, start: datetime, end: datetime
) -> Query[HourlyUsage]:
    return (
        find(HourlyUsage)
        .where(
            HourlyUsage.tenant_id == tenant_id,
            HourlyUsage.meter_id == meter_id,
            HourlyUsage.hour >= start,
            HourlyUsage.hour < end,
        )
        .oldest_first(HourlyUsage.hour)
    )


@read(rps=2_000)
def one_hour(tenant_id: str, meter_id: str, hour: datetime) -> Query[HourlyUsage]:
    return find(HourlyUsage).where(
        HourlyUsage.tenant_id == tenant_id,
        HourlyUsage.meter_id == meter_id,
        HourlyUsage.hour == hour,
    )


@read(rps=40, returns=600)
def days_of_tenant(tenant_id: str, first: date, last: date) -> Query[DailyUsage]:
    return find(DailyUsage).where(
        DailyUsage.tenant_id == tenant_id, DailyUsage.day >= first, DailyUsage.day <= last
    )


@read(rps=20, returns=12)
def invoices_of(tenant_id: str) -> Query[Invoice]:
    return (
        find(Invoice).where(Invoice.tenant_id == tenant_id).newest_first(Invoice.period).limit(12)
    )


@read(rps=15, returns=21)
def invoice_page(tenant_id: str, period: str) -> Bundle2[Invoice, InvoiceLine]:
    return together(Invoice, InvoiceLine).where(
        Invoice.tenant_id == tenant_id, Invoice.period == period
    )


@read(rps=2)
def invoice_by_number(number: str) -> Query[Invoice]:
    return find(Invoice).where(Invoice.number == number)


@read(rps=0.01, returns=720)
def overdue_on(unpaid_due: date) -> Query[Invoice]:
    return find(Invoice).where(Invoice.unpaid_due == unpaid_due)


@write(rps=9_000)
def count_usage() -> object:
    return updates(HourlyUsage.quantity)


@write(rps=85)
def start_hour() -> object:
    return creates(HourlyUsage)


@write(rps=7)
def roll_up_day() -> object:
    return creates(DailyUsage)


@write(rps=0.5)
def bill() -> object:
    return creates(Invoice), creates(InvoiceLine, times=20)


@write(rps=0.4)
def pay() -> object:
    return updates(Invoice.unpaid_due)


design = Design(
    "metering",
    [Tenant, ApiKey, Meter, HourlyUsage, DailyUsage, Invoice, InvoiceLine],
    [
        tenant_of_key,
        keys_of_tenant,
        tenant,
        tenant_by_email,
        meters_of,
        hours_of_meter,
        one_hour,
        days_of_tenant,
        invoices_of,
        invoice_page,
        invoice_by_number,
        overdue_on,
        count_usage,
        start_hour,
        roll_up_day,
        bill,
        pay,
    ],
    facts=[
        largest(HourlyUsage.tenant_id, 0.30),
        largest(DailyUsage.tenant_id, 0.30),
        share(attr(Invoice.unpaid_due).exists(), 0.03),
        distinct(Invoice.unpaid_due, values=30),
    ],
    volumes={
        Tenant: 30_000,
        ApiKey: per(Tenant, 3),
        Meter: per(Tenant, 20),
        HourlyUsage: per(Meter, 1_500),
        DailyUsage: per(Meter, 700),
        Invoice: per(Tenant, 24),
        InvoiceLine: per(Invoice, 20),
    },
    sizes={
        Tenant: 600,
        ApiKey: 180,
        Meter: 160,
        HourlyUsage: 90,
        DailyUsage: 110,
        Invoice: 400,
        InvoiceLine: 150,
    },
)

EXPECTED = {
    "max_indexes": 2,
    "entities": {
        "Tenant": {"partition": ["tenant_id"], "sort": []},
        "ApiKey": {"partition": ["key_hash"], "sort": []},
        "Meter": {"partition": ["tenant_id"], "sort": ["meter_id"]},
        "HourlyUsage": {"partition": ["tenant_id", "meter_id"], "sort": ["hour"]},
        "DailyUsage": {"partition": ["tenant_id"], "sort": ["day", "meter_id"]},
        "Invoice": {
            "partition": ["tenant_id", "period"],
            "sort": [],
            "or": [{"partition": ["tenant_id"], "sort": ["period"]}],
        },
        "InvoiceLine": {
            "partition": ["tenant_id", "period"],
            "sort": ["meter_id"],
            "or": [{"partition": ["tenant_id"], "sort": ["period", "meter_id"]}],
        },
    },
    "patterns": {
        "tenant_of_key": {"by": "base"},
        "keys_of_tenant": {"by": "index", "partition": ["tenant_id"], "sort": []},
        "tenant": {"by": "base"},
        "tenant_by_email": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["billing_email"], "sort": []}],
        },
        "meters_of": {"by": "base"},
        "hours_of_meter": {"by": "base"},
        "one_hour": {"by": "base"},
        "days_of_tenant": {"by": "base"},
        "invoices_of": {
            "by": "index",
            "partition": ["tenant_id"],
            "sort": ["period"],
            "or": [{"by": "base"}],
        },
        "invoice_page": {"by": "base"},
        "invoice_by_number": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["number"], "sort": []}],
        },
        "overdue_on": {"by": "index", "partition": ["unpaid_due"], "sort": [], "sparse": True},
    },
    "no_index_on": ["HourlyUsage"],
}
WHY = {
    "HourlyUsage": "30 % of 9,000 updates a second is 2,700 on one tenant. Tenant and meter in the "
    "partition spread them over that tenant's meters; tenant alone, or tenant+hour, would be hot.",
    "DailyUsage": "The dashboard over all meters reads a rolled-up entity that is written 7 "
    "times a "
    "second; an index on the hourly items by tenant would repeat the heat and triple the bill.",
    "invoices_of": "Invoices are written rarely, so the index is nearly free, and it keeps "
    "the lines "
    "out of the list. A base of tenant_id / period with the lines under the same prefix is the "
    "book's other answer.",
    "overdue_on": "A date as partition is right here: a nightly job asks for exactly one day.",
}
