"""One total: the plan, the cost report, the documents and the explanations agree to the cent."""

from __future__ import annotations

import copy
from datetime import datetime
from typing import Any

import pytest

from stator import (
    Design,
    Entity,
    Query,
    attr,
    connect,
    creates,
    deletes,
    find,
    ident,
    read,
    share,
    soft_delete,
    unique,
    updates,
    write,
)
from stator.design.cost.billed_plan import billed_plan
from stator.design.cost.report import cost
from stator.design.documents.document import document_of
from stator.design.plan.plan import Plan
from stator.design.table_settings import ProvisionedCapacity, TableSettings

from . import models, shop


class Account(Entity):
    account_id: str = ident()
    email: str = unique()
    handle: str | None = unique(default=None)
    name: str = ""


class Note(Entity):
    note_id: str = ident()
    slug: str = unique()
    text: str = ""
    deleted_at: datetime | None = soft_delete()


@read(rps=5)
def account_by_email(email: str) -> Query[Account]:
    return find(Account).where(Account.email == email)


@read(rps=3, returns=4)
def accounts_named(name: str) -> Query[Account]:
    return find(Account).where(Account.name == name)


@write(rps=10)
def sign_up() -> object:
    return creates(Account)


@write(rps=2)
def change_email() -> object:
    return updates(Account.email)


@write(rps=3)
def rename() -> object:
    return updates(Account.name)


@write(rps=1)
def close() -> object:
    return deletes(Account)


@write(rps=4)
def bin_note() -> object:
    return deletes(Note)


@write(rps=6)
def sign_up_with_note() -> object:
    return creates(Account), creates(Note)


ACCOUNTS: list[Any] = [
    account_by_email,
    accounts_named,
    sign_up,
    change_email,
    rename,
    close,
    bin_note,
    sign_up_with_note,
]


def accounts(**more: Any) -> Design:
    return Design(
        "accounts",
        [Account, Note],
        ACCOUNTS,
        volumes={Account: 50_000, Note: 200_000},
        writes={Note: 7},
        **more,
    )


DESIGNS: dict[str, Any] = {
    "accounts": accounts,
    "accounts in tables": lambda: accounts(layout="table-per-entity"),
    "shop": models.shop,
    "shop in aggregates": lambda: models.shop("aggregate"),
    "social": models.social,
    "routers": models.routers,
    "small shop": lambda: shop.shop,
}


SETTINGS: dict[str, TableSettings | None] = {
    "none": None,
    "empty": TableSettings(),
    "no recovery": TableSettings(point_in_time_recovery=False),
    "recovery": TableSettings(point_in_time_recovery=True),
    "infrequent access": TableSettings(table_class="STANDARD_INFREQUENT_ACCESS"),
    "provisioned": TableSettings(capacity=ProvisionedCapacity(100, 100)),
    "everything": TableSettings(
        table_class="STANDARD_INFREQUENT_ACCESS",
        capacity=ProvisionedCapacity(100, 100, target=0.5),
        point_in_time_recovery=True,
    ),
}


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("name", DESIGNS)
def test_plan_cost_documents_and_explanations_have_one_total(name: str, settings: str) -> None:
    design: Design = copy.copy(DESIGNS[name]())
    design.settings = SETTINGS[settings]
    plan, priced, document = design.plan(), design.cost(), document_of(design)
    total = plan.dollars_per_month
    assert float(priced.total) == pytest.approx(total, abs=0.005)
    assert float(document.total) == pytest.approx(total, abs=0.005)
    tables = sum(
        each.storage_dollars_per_month + each.other_dollars_per_month for each in plan.tables
    )
    assert sum(each.dollars_per_month for each in plan.patterns) + tables == pytest.approx(
        total, abs=0.005
    )
    by_pattern = priced.by_pattern()
    for pattern in plan.patterns:
        assert float(by_pattern.get(pattern.name, 0)) == pytest.approx(
            pattern.dollars_per_month, abs=0.005
        ), pattern.name
    indexes = priced.by_index()
    for table in plan.tables:
        for index in table.indexes:
            assert float(indexes.get(f"{table.name}/{index.name}", 0)) == pytest.approx(
                index.dollars_per_month, abs=0.005
            ), index.name


@pytest.mark.parametrize("settings", SETTINGS)
def test_the_price_basis_is_shown(settings: str) -> None:
    design = accounts(settings=SETTINGS[settings])
    basis = str(design.cost().basis)
    assert document_of(design).basis.startswith(f"{basis}, us-east-1, ")
    assert ("Infrequent" in basis) == (settings in ("infrequent access", "everything"))
    assert ("provisioned" in basis) == (settings in ("provisioned", "everything"))


def test_another_region_has_one_total_too() -> None:
    design = accounts(settings=TableSettings(capacity=ProvisionedCapacity(10, 10)))
    total = design.cost(region="eu-central-1").total
    assert total != design.cost().total
    plan = billed_plan(design.plan(), design, "eu-central-1")
    assert plan.dollars_per_month == pytest.approx(float(total), abs=0.005)
    document = document_of(design, region="eu-central-1")
    assert document.total == total
    assert "eu-central-1" in document.basis


@pytest.mark.parametrize("name", DESIGNS)
def test_a_plan_read_from_its_lock_costs_the_same(name: str) -> None:
    design: Design = DESIGNS[name]()
    plan = Plan.from_json(design.plan().to_json())
    assert cost(plan, facts=design).total == design.cost().total


# --- the engine -----------------------------------------------------------------------------------


def spent(design: Design, do: Any) -> tuple[float, float]:
    """The read and write units that a function takes, the guards of unique values included."""
    with connect(design, measure=True) as db:
        db.create(Account(account_id="a1", email="a@x.org", handle="ann"))
        db.create(Note(note_id="n1", slug="first"))
        assert db.meter is not None
        db.meter.by_label.clear()
        do(db)
        used = db.meter.by_label.values()
        return sum(each.read_units for each in used), sum(each.write_units for each in used)


def change(db: Any) -> None:
    with db.update(Account, account_id="a1") as account:
        account.email = "b@x.org"


def rename_it(db: Any) -> None:
    with db.update(Account, account_id="a1") as account:
        account.name = "Ann"


CHANGES: list[tuple[str, Any]] = [
    ("sign_up", lambda db: db.create(Account(account_id="a2", email="c@x.org", handle="cy"))),
    ("change_email", change),
    ("rename", rename_it),
    ("close", lambda db: db.delete(Account, account_id="a1")),
    ("bin_note", lambda db: db.delete(Note, note_id="n1")),
]


@pytest.mark.parametrize(("name", "do"), CHANGES, ids=[each[0] for each in CHANGES])
def test_the_engine_bills_a_write_as_the_plan_says(name: str, do: Any) -> None:
    design = accounts(facts=[share(attr(Account.handle).exists(), 1.0)])
    plan = design.plan()
    uses = [use for use in plan.uses if use.pattern == name]
    rate = plan.pattern(name).requests_per_second
    planned = tuple(
        sum(use.units for use in uses if use.kind == kind) / rate for kind in ("read", "write")
    )
    assert spent(design, do) == pytest.approx(planned)


def test_guards_are_stored_in_the_table_of_the_design_itself() -> None:
    plan = accounts().plan()
    guards = {each.entity: each.count for each in plan.stored if each.is_guard}
    assert guards == {"Account": 75_000, "Note": 200_000}  # half of the handles are a guess
    assert {each.table for each in plan.stored if each.is_guard} == {"accounts-stator"}


def test_the_share_of_items_in_a_sparse_index_is_a_guess_of_its_writes() -> None:
    class Task(Entity):
        task_id: str = ident()
        due: datetime | None = None

    @read(rps=5)
    def due_at(due: datetime) -> Query[Task]:
        return find(Task).where(Task.due == due)

    @write(rps=5)
    def add() -> object:
        return creates(Task)

    def guesses(*facts: Any) -> tuple[str, ...]:
        volumes: dict[Any, float] = {Task: 1_000}
        return Design("tasks", [Task], [due_at, add], volumes=volumes, facts=facts).plan().guesses

    half = (
        "Task.due: 50% of the items have it is a guess; declare share(attr(Task.due).exists(), ...)"
    )
    assert half in guesses()
    assert half not in guesses(share(attr(Task.due).exists(), 0.1))
