"""Usage metering and billing: counters by the hour, invoices, keys. The second expert's."""

from datetime import date, datetime
from decimal import Decimal
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Only,
    Query,
    attr,
    counter,
    created,
    creates,
    distinct,
    find,
    ident,
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
    customer_ref: str = unique()
    name: str
    plan: Literal["free", "growth", "enterprise"]
    created_at: datetime = created()


class ApiKey(Entity):
    key_hash: str = ident()
    tenant_id: str
    label: str
    created_at: datetime = created()
    revoked: bool = False
    scopes: set[str]


class HourlyUsage(Entity):
    tenant_id: str = ident()
    meter: str = ident()
    hour: datetime = ident()
    units: int = counter()
    errors: int = counter()
    expires: datetime | None = ttl(days=400, default=None)


class DailyUsage(Entity):
    tenant_id: str = ident()
    day: date = ident()
    meter: str = ident()
    units: int
    errors: int


class Invoice(Entity):
    tenant_id: str = ident()
    month: str = ident()
    invoice_no: str = unique()
    status: Literal["draft", "open", "paid", "void"] = "draft"
    due_at: datetime
    total: Decimal
    address: str


class InvoiceLine(Entity):
    tenant_id: str = ident()
    month: str = ident()
    meter: str = ident()
    units: int
    price: Decimal
    amount: Decimal


@read(rps=100)
def tenant(tenant_id: str) -> Query[Tenant]:
    return find(Tenant).where(Tenant.tenant_id == tenant_id)


@read(rps=2)
def tenant_by_ref(customer_ref: str) -> Query[Tenant]:
    return find(Tenant).where(Tenant.customer_ref == customer_ref)


@read(rps=6000)
def check_key(key_hash: str) -> Query[ApiKey]:
    return find(ApiKey).where(ApiKey.key_hash == key_hash)


@read(rps=5, returns=5)
def keys_of(tenant_id: str) -> Only[tuple[str, str, datetime]]:
    return (
        find(ApiKey)
        .where(ApiKey.tenant_id == tenant_id)
        .newest_first(ApiKey.created_at)
        .only(ApiKey.key_hash, ApiKey.label, ApiKey.created_at)
    )


@read(rps=200, returns=720)
def usage_between(tenant_id: str, meter: str, start: datetime, end: datetime) -> Query[HourlyUsage]:
    return find(HourlyUsage).where(
        HourlyUsage.tenant_id == tenant_id,
        HourlyUsage.meter == meter,
        attr(HourlyUsage.hour).between(start, end),
    )


@read(rps=80, returns=300)
def days_of(tenant_id: str, start: date, end: date) -> Query[DailyUsage]:
    return find(DailyUsage).where(
        DailyUsage.tenant_id == tenant_id, attr(DailyUsage.day).between(start, end)
    )


@read(rps=1500)
def quota(tenant_id: str, meter: str, hour: datetime) -> Query[HourlyUsage]:
    return find(HourlyUsage).where(
        HourlyUsage.tenant_id == tenant_id, HourlyUsage.meter == meter, HourlyUsage.hour == hour
    )


@read(rps=20, returns=11)
def invoice_page(tenant_id: str, month: str) -> Bundle2[Invoice, InvoiceLine]:
    return together(Invoice, InvoiceLine).where(
        Invoice.tenant_id == tenant_id, Invoice.month == month
    )


@read(rps=30, returns=12)
def invoices_of(tenant_id: str) -> Only[tuple[str, str, Decimal]]:
    mine = (
        find(Invoice)
        .where(Invoice.tenant_id == tenant_id)
        .order_by(Invoice.month, descending=True)
        .limit(12)
    )
    return mine.only(Invoice.month, Invoice.status, Invoice.total)


@read(rps=3)
def invoice_by_number(invoice_no: str) -> Query[Invoice]:
    return find(Invoice).where(Invoice.invoice_no == invoice_no)


@read(rps=0.05, returns=100)
def overdue(now: datetime) -> Query[Invoice]:
    return (
        find(Invoice)
        .where(Invoice.status == "open", Invoice.due_at < now)
        .oldest_first(Invoice.due_at)
        .limit(100)
    )


@write(rps=4000)
def record() -> object:
    return updates(HourlyUsage.units, HourlyUsage.errors)


@write(rps=120)
def first_of_hour() -> object:
    return creates(HourlyUsage)


@write(rps=5)
def roll_up() -> object:
    return creates(DailyUsage)


@write(rps=0.02)
def issue_invoice() -> object:
    return creates(Invoice), creates(InvoiceLine, times=10)


@write(rps=0.02)
def send_invoice() -> object:
    return updates(Invoice.status, before=Invoice.status == "draft", after=Invoice.status == "open")


@write(rps=0.02)
def pay_invoice() -> object:
    return updates(Invoice.status, before=Invoice.status == "open", after=Invoice.status == "paid")


@write(rps=0.05)
def new_key() -> object:
    return creates(ApiKey)


design = Design(
    "metering",
    [Tenant, ApiKey, HourlyUsage, DailyUsage, Invoice, InvoiceLine],
    [
        tenant,
        tenant_by_ref,
        check_key,
        keys_of,
        usage_between,
        days_of,
        quota,
        invoice_page,
        invoices_of,
        invoice_by_number,
        overdue,
        record,
        first_of_hour,
        roll_up,
        issue_invoice,
        send_invoice,
        pay_invoice,
        new_key,
    ],
    volumes={
        Tenant: 40_000,
        ApiKey: per(Tenant, 5),
        HourlyUsage: 4_000_000_000,
        DailyUsage: 300_000_000,
        Invoice: per(Tenant, 30),
        InvoiceLine: per(Invoice, 10),
    },
    sizes={
        Tenant: 350,
        ApiKey: 300,
        HourlyUsage: 150,
        DailyUsage: 130,
        Invoice: 450,
        InvoiceLine: 160,
    },
    facts=[
        distinct(HourlyUsage.meter, values=20),
        distinct(HourlyUsage.tenant_id, HourlyUsage.meter, values=400_000),
        distinct(DailyUsage.tenant_id, values=40_000),
        distinct(DailyUsage.meter, values=20),
        share(Invoice.status == "open", 0.02),
        share(Invoice.status == "draft", 0.005),
    ],
)

EXPECTED = {
    "no_index_has": ["units"],
    "entities": {
        "Tenant": {"partition": ["tenant_id"], "sort": []},
        "ApiKey": {"partition": ["key_hash"], "sort": []},
        "HourlyUsage": {"partition": ["tenant_id", "meter"], "sort": ["hour"]},
        "DailyUsage": {
            "partition": ["tenant_id", "meter"],
            "sort": ["day"],
            "or": [{"partition": ["tenant_id"], "sort": ["day", "meter"]}],
        },
        "Invoice": {"partition": ["tenant_id", "month"], "sort": []},
        "InvoiceLine": {"partition": ["tenant_id", "month"], "sort": ["meter"]},
    },
    "patterns": {
        "tenant": {"by": "base"},
        "tenant_by_ref": {"by": "guard"},
        "check_key": {"by": "base"},
        "keys_of": {
            "by": "index",
            "partition": ["tenant_id"],
            "sort": ["created_at"],
            "projection": "INCLUDE",
        },
        "usage_between": {"by": "base"},
        "days_of": {"by": "base"},
        "quota": {"by": "base"},
        "invoice_page": {"by": "base"},
        "invoices_of": {
            "by": "index",
            "partition": ["tenant_id"],
            "sort": ["month"],
            "projection": "INCLUDE",
        },
        "overdue": {"by": "index", "partition": ["status"], "sort": ["due_at"]},
    },
}
WHY = {
    "HourlyUsage": ("4,000 updates a second: no index on it. "),
    "invoices_of": (
        "The lines lie with the invoice, so the list needs an index of its own; it is tiny. "
    ),
}
